#include "jobs/worker/process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <stop_token>
#include <string_view>

#include "jobs/json/codec.hpp"
#include "jobs/worker/detail/child_process.hpp"
#include "jobs/worker/detail/error_lines.hpp"
#include "jobs/worker/json_codec.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/timers.hpp"

extern char** environ;

namespace sluice::jobs {
namespace {

using detail::child_end;
using detail::child_process;
using detail::child_start;
using detail::pipe_reader;
using detail::unique_fd;

constexpr int check_within_ms = 10'000;  // for a shell that only checks a command

// Wakes a thread that is blocked in poll.
class wake_up {
 public:
  wake_up() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  bool works() const noexcept { return static_cast<bool>(fd_); }
  int fd() const noexcept { return fd_.get(); }
  void wake() const noexcept { (void)!eventfd_write(fd_.get(), 1); }
  void take() const noexcept {
    eventfd_t count = 0;
    (void)!eventfd_read(fd_.get(), &count);
  }
  // Called when kill_after has passed since SIGTERM. The release pairs with the acquire below.
  void kill_now() noexcept {
    kill_is_due_.store(true, release);
    wake();
  }
  bool kill_is_due() const noexcept { return kill_is_due_.load(acquire); }

 private:
  unique_fd fd_;
  atomic<bool> kill_is_due_{false};
};

error not_found(std::string message) {
  return {error_code::not_found, std::move(message)};
}

// Replaces invalid UTF-8 by U+FFFD, as the JSON encoder does.
std::string clean_utf8(std::string_view text) {
  return decode<std::string>(encode(text)).value();
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

result<std::string> find_program(const std::string& name, const std::string& directory) {
  if (name.empty()) return error{error_code::invalid, "the command is empty"};
  if (name.find('/') != std::string::npos) {
    const bool is_relative = !directory.empty() && name.front() != '/';
    const std::string path = is_relative ? directory + "/" + name : name;
    if (is_program(path)) return name;
    return not_found("no executable program " + quoted(path) + ": check the path and its mode");
  }
  const char* const set = std::getenv("PATH");
  const std::string_view all = set != nullptr ? set : "/usr/local/bin:/usr/bin:/bin";
  for (std::string_view left = all; !left.empty();) {
    const std::string_view folder = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(left.size(), folder.size() + 1));
    std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    if (is_program(path)) return path;
  }
  return not_found("no program " + quoted(name) + " in PATH (" + std::string(all) + ")");
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

void set_variable(std::vector<std::string>& all, std::string_view name, std::string_view value) {
  const std::string start = std::string(name) + "=";
  std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(start); });
  // A NUL would end the value early.
  std::string entry = start + std::string(value);
  std::erase(entry, '\0');
  all.push_back(std::move(entry));
}

// Runs a shell that only checks a command. Returns whether it accepted the command.
result<bool> shell_accepts(std::vector<std::string> argv, std::string& complaint) {
  pipe_reader out(pipe_reader::keep::first, 4096);
  pipe_reader err(pipe_reader::keep::first, 4096);
  auto child = child_process::start({.file = "/bin/sh",
                                     .argv = std::move(argv),
                                     .environment = own_environment(),
                                     .directory = {},
                                     .input = {}},
                                    out, err);
  if (!child) return child.error();
  pollfd ends{.fd = child->pidfd(), .events = POLLIN, .revents = 0};
  while (poll(&ends, 1, check_within_ms) < 0 && errno == EINTR) {
  }
  if ((ends.revents & POLLIN) == 0) child->signal_group(SIGKILL);
  err.read_rest();
  complaint = clean_utf8(err.kept());
  const child_end end = child->reap();
  if (end.ended_by == child_end::kind::unknown) {
    return error{error_code::io_error, "cannot run /bin/sh: " + detail::describe(end)};
  }
  return end.is_success();
}

std::string_view type_of(const child_end& end) {
  switch (end.ended_by) {
    case child_end::kind::exit:
      return "exit_code";
    case child_end::kind::signal:
      return "signal";
    case child_end::kind::unknown:
      break;
  }
  return "unknown_end";
}

// Returns the command's first word if it is a plain program name, else an empty string.
std::string first_word(std::string_view command) {
  const auto from = command.find_first_not_of(" \t\n");
  if (from == std::string_view::npos) return {};
  command.remove_prefix(from);
  const std::string_view word = command.substr(0, command.find_first_of(" \t\n;&|"));
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-+/").find(c) != std::string_view::npos;
  };
  return std::ranges::all_of(word, is_plain) ? std::string(word) : std::string();
}

std::string_view trimmed(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

std::optional<payload> result_of(const std::string& output) {
  const std::string_view text = trimmed(output);
  if (text.empty()) return std::nullopt;
  if (json::check_json(text)) return payload{std::string(text), content_type::json};
  const std::string clean = clean_utf8(output);
  if (clean != output) return payload{output, content_type::bytes};
  std::string_view line = output;
  if (line.ends_with('\n')) line.remove_suffix(1);
  return encode(line);
}

// Sleeps until the command has ended, and signals it when the job is to stop.
class supervision {
 public:
  supervision(job_context& ctx, milliseconds kill_after, clock& on)
      : context_(ctx), kill_after_(kill_after), clock_(on) {}
  supervision(const supervision&) = delete;
  supervision& operator=(const supervision&) = delete;
  ~supervision() {
    if (kill_.valid()) kill_.cancel();
  }

  bool works() const noexcept { return wake_up_->works(); }

  child_end run(child_process& child, pipe_reader& out, pipe_reader& err) {
    const std::stop_callback on_stop(context_.stop_token(), [this] { wake_up_->wake(); });
    for (;;) {
      std::array<pollfd, 4> fds = {{{child.pidfd(), POLLIN, 0},
                                    {wake_up_->fd(), POLLIN, 0},
                                    {out.fd(), POLLIN, 0},
                                    {err.fd(), POLLIN, 0}}};  // poll ignores a descriptor of -1
      if (poll(fds.data(), fds.size(), -1) < 0) continue;
      if (fds[2].revents != 0) out.read_some(pipe_step);
      if (fds[3].revents != 0) err.read_some(pipe_step);
      if (fds[1].revents != 0) wake_up_->take();
      if (fds[0].revents != 0) break;
      stop_if_requested(child);
    }
    // After a stop, the command's children are killed, too. The command is not reaped yet, so its
    // group number is still valid.
    if (terminated_) child.signal_group(SIGKILL);
    out.read_rest();
    err.read_rest();
    return child.reap();
  }

 private:
  static constexpr std::size_t pipe_step = 16 << 10;

  void stop_if_requested(const child_process& child) {
    if (!context_.stop_requested()) return;
    if (!terminated_) {
      terminated_ = true;
      child.signal_group(SIGTERM);
      // Shared: the timer may fire while the command ends on its own.
      kill_ = after(kill_after_, clock_).then([shared = wake_up_] { shared->kill_now(); });
    }
    if (wake_up_->kill_is_due()) child.signal_group(SIGKILL);
  }

  job_context& context_;
  const milliseconds kill_after_;
  clock& clock_;
  const std::shared_ptr<wake_up> wake_up_ = std::make_shared<wake_up>();
  bool terminated_ = false;
  future<void> kill_;
};

}  // namespace

struct process_command::settings {
  std::string file;
  std::vector<std::string> argv;
  process_options options;
  std::string description;
};

result<process_command> process_command::shell(std::string command, options o) {
  std::string complaint;
  auto accepted = shell_accepts({"sh", "-n", "-c", command}, complaint);
  if (!accepted) return accepted.error();
  if (!*accepted || trimmed(command).empty()) {
    return error{error_code::invalid,
                 "/bin/sh cannot parse the command " + quoted(command) + ": " + complaint};
  }
  if (const std::string word = first_word(command); !word.empty()) {
    const std::string where = o.directory.empty() ? "." : o.directory;
    auto known = shell_accepts(
        {"sh", "-c", "cd -- \"$2\" && command -v -- \"$1\" > /dev/null", "sh", word, where},
        complaint);
    if (!known) return known.error();
    if (!*known) {
      return not_found("command " + quoted(word) + " of " + quoted(command) +
                       " not found, neither in PATH nor as a path");
    }
  }
  settings s{.file = "/bin/sh",
             .argv = {"sh", "-c", command},
             .options = std::move(o),
             .description = std::move(command)};
  return process_command(std::make_shared<const settings>(std::move(s)));
}

result<process_command> process_command::program(std::vector<std::string> argv, options o) {
  if (argv.empty()) return error{error_code::invalid, "the command is empty"};
  auto file = find_program(argv.front(), o.directory);
  if (!file) return file.error();
  settings s{.file = std::move(*file), .argv = {}, .options = std::move(o), .description = {}};
  for (const std::string& word : argv) {
    s.description += (s.description.empty() ? "" : " ") + word;
  }
  s.argv = std::move(argv);
  return process_command(std::make_shared<const settings>(std::move(s)));
}

const std::string& process_command::describe() const noexcept {
  return settings_->description;
}

job_outcome process_command::run(job_context& ctx) const {
  const process_options& o = settings_->options;
  const auto failed = [](std::string type, std::string message) {
    return job_outcome{.failed = failure{.type = std::move(type), .message = std::move(message)}};
  };
  auto environment = own_environment();
  for (const auto& [name, value] : o.environment) set_variable(environment, name, value);
  const job_spec& spec = ctx.whole().spec;
  set_variable(environment, "SLUICE_JOB_ID", std::to_string(ctx.id()));
  set_variable(environment, "SLUICE_JOB_KIND", ctx.kind());
  set_variable(environment, "SLUICE_JOB_QUEUE", ctx.queue());
  set_variable(environment, "SLUICE_JOB_ATTEMPT", std::to_string(ctx.attempt()));
  set_variable(environment, "SLUICE_JOB_METADATA", ctx.metadata());
  set_variable(environment, "SLUICE_JOB_TIME_LIMIT_MS", std::to_string(spec.time_limit.count()));
  set_variable(environment, "SLUICE_JOB_ARGS_TYPE",
               spec.args.type == content_type::json ? "json" : "bytes");

  const bool keeps_output = o.standard_output == process_options::output::result;
  pipe_reader out(pipe_reader::keep::first, keeps_output ? o.output_bytes_max : 0);
  pipe_reader err(pipe_reader::keep::last, o.error_tail_bytes);
  const bool logs = o.standard_error == process_options::errors::logged;
  detail::error_lines lines(ctx, logs ? detail::lines_to::log : detail::lines_to::nowhere);
  err.on_read([&lines](std::string_view read) { lines.add(read); });
  supervision watch(ctx, o.kill_after, (o.time != nullptr ? *o.time : real_time()).timers());
  if (!watch.works()) return failed("start", "cannot make an eventfd: too many open files");
  auto child = child_process::start({.file = settings_->file,
                                     .argv = settings_->argv,
                                     .environment = std::move(environment),
                                     .directory = o.directory,
                                     .input = spec.args.data},
                                    out, err);
  if (!child) return failed("start", child.error().message);
  const child_end end = watch.run(*child, out, err);
  lines.end();

  if (end.is_success()) {
    if (!keeps_output) return {};
    if (!out.was_cut()) return {.result = result_of(out.kept())};
    return failed("output_too_large", "standard output, the job's result, is larger than " +
                                          std::to_string(o.output_bytes_max) + " bytes");
  }
  std::string message = detail::describe(end);
  const std::string tail = clean_utf8(trimmed(detail::without_progress(err.kept())));
  if (!tail.empty()) message += (err.was_cut() ? ": ..." : ": ") + tail;
  return failed(std::string(type_of(end)), std::move(message));
}

}  // namespace sluice::jobs
