#include "jobs/worker/detail/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

// Missing in the headers of glibc 2.36.
extern "C" {
#include <sys/pidfd.h>
}

namespace sluice::jobs::detail {
namespace {

error system_error(std::string action, int number) {
  return {error_code::io_error, std::move(action) + ": " + std::string(strerrordesc_np(number))};
}

// Moves a descriptor above the standard three: if this program's own are closed, new descriptors
// get these numbers, and posix_spawn would leave close-on-exec set on them.
unique_fd above_standard(unique_fd fd) {
  if (fd.get() > STDERR_FILENO || !fd) return fd;
  return unique_fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

struct pipe_ends {
  unique_fd read;
  unique_fd write;
};

result<pipe_ends> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  pipe_ends ends{above_standard(unique_fd(fds[0])), above_standard(unique_fd(fds[1]))};
  if (!ends.read || !ends.write) return system_error("cannot make a pipe", errno);
  // Non-blocking on this side only: the child expects a blocking pipe.
  if (fcntl(ends.read.get(), F_SETFL, O_NONBLOCK) != 0) {
    return system_error("cannot set up a pipe", errno);
  }
  return ends;
}

// Writes the text to a file in memory. Unlike a pipe it needs no writer thread, and a child that
// does not read it causes no SIGPIPE.
result<unique_fd> make_input(std::string_view text) {
  unique_fd file = above_standard(unique_fd(memfd_create("sluice-job-args", MFD_CLOEXEC)));
  if (!file) return system_error("cannot make a file for standard input", errno);
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = write(file.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("cannot write standard input", errno);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return system_error("cannot rewind its input", errno);
  return file;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Attributes and file actions for posix_spawn; freed by the destructor.
class spawn_plan {
 public:
  spawn_plan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    // Resets the signal handling of the child to the default.
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);  // a new group
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  spawn_plan(const spawn_plan&) = delete;
  spawn_plan& operator=(const spawn_plan&) = delete;
  ~spawn_plan() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

std::string describe(const child_end& end) {
  if (end.ended_by == child_end::kind::unknown) {
    return "exit status unknown: " + std::string(strerrordesc_np(end.code)) +
           "; this program ignores SIGCHLD, or waits for children that it did not start";
  }
  if (end.ended_by == child_end::kind::exit) return "exit code " + std::to_string(end.code);
  const char* const name = sigabbrev_np(end.code);
  std::string text = "signal ";
  text += name != nullptr ? "SIG" + std::string(name) : std::to_string(end.code);
  if (end.dumped_core) text += " (core dumped)";
  return text;
}

void pipe_reader::add(std::string_view read) {
  if (on_read_) on_read_(read);
  if (kept_part_ == keep::first) {
    const std::size_t taken = std::min(read.size(), most_ - kept_.size());
    kept_ += read.substr(0, taken);
    cut_ = cut_ || taken < read.size();
    return;
  }
  kept_ += read;
  if (kept_.size() > most_) {
    cut_ = true;
    kept_.erase(0, kept_.size() - most_);
  }
}

bool pipe_reader::read_some(std::size_t up_to) {
  std::array<char, 16 << 10> buffer;
  const ssize_t got = read(fd_.get(), buffer.data(), std::min(up_to, buffer.size()));
  if (got > 0) {
    add({buffer.data(), static_cast<std::size_t>(got)});
    return true;
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) fd_.reset();
  return got < 0 && errno == EINTR;
}

void pipe_reader::read_rest() {
  if (!fd_) return;
  const int holds = fcntl(fd_.get(), F_GETPIPE_SZ);
  auto left = static_cast<std::size_t>(std::max(holds, 1 << 16));
  while (fd_ && left > 0) {
    const std::size_t step = std::min<std::size_t>(left, 4096);
    if (!read_some(step)) break;
    left -= step;
  }
  fd_.reset();
}

result<child_process> child_process::start(const child_start& settings, pipe_reader& out,
                                           pipe_reader& err) {
  auto input = make_input(settings.input);
  if (!input) return input.error();
  auto out_pipe = make_pipe();
  if (!out_pipe) return out_pipe.error();
  auto err_pipe = make_pipe();
  if (!err_pipe) return err_pipe.error();

  spawn_plan plan;
  posix_spawn_file_actions_adddup2(&plan.actions, input->get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&plan.actions, out_pipe->write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&plan.actions, err_pipe->write.get(), STDERR_FILENO);
  // The command inherits no other descriptor of this process.
  posix_spawn_file_actions_addclosefrom_np(&plan.actions, STDERR_FILENO + 1);
  if (!settings.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&plan.actions, settings.directory.c_str());
  }
  const auto argv = pointers_to(settings.argv);
  const auto environment = pointers_to(settings.environment);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, settings.file.c_str(), &plan.actions, &plan.attributes,
                                 argv.data(), environment.data());
  if (failed != 0) return system_error("cannot start " + settings.file, failed);

  child_process child(pid, unique_fd(pidfd_open(pid, 0)));
  if (!child.pidfd_) return system_error("cannot watch " + settings.file, errno);  // kills it
  out.read_from(std::move(out_pipe->read));
  err.read_from(std::move(err_pipe->read));
  return child;
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}

child_process::~child_process() {
  if (pid_ == 0) return;
  signal_group(SIGKILL);
  (void)reap();
}

int child_process::wait_for_end(siginfo_t& info, int options) const noexcept {
  // By pid only if there is no pidfd, which happens only directly after the start.
  const idtype_t by = pidfd_ ? P_PIDFD : P_PID;
  const auto which = static_cast<id_t>(pidfd_ ? pidfd_.get() : pid_);
  while (waitid(by, which, &info, WEXITED | options) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

void child_process::signal_group(int signal) const noexcept {
  if (pid_ == 0) return;
  siginfo_t info{};
  const bool is_unreaped = wait_for_end(info, WNOHANG | WNOWAIT) == 0;
  if (is_unreaped) kill(-pid_, signal);
}

child_end child_process::reap() {
  siginfo_t info{};
  const int failed = wait_for_end(info, 0);
  pid_ = 0;
  if (failed != 0) return {.ended_by = child_end::kind::unknown, .code = failed};
  if (info.si_code == CLD_EXITED) {
    return {.ended_by = child_end::kind::exit, .code = info.si_status};
  }
  return {.ended_by = child_end::kind::signal,
          .code = info.si_status,
          .dumped_core = info.si_code == CLD_DUMPED};
}

}  // namespace sluice::jobs::detail
