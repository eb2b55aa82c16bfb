#include "jobs/cli/testing/program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::testing {
namespace {

using sluice::testing::eventually;

constexpr int patience_ms = 60'000;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Returns this program's environment without variables that change the behaviour of `sluice`, and
// `more`.
std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (char** at = ::environ; *at != nullptr; ++at) {
    const std::string one = *at;
    if (!one.starts_with("SLUICE_") && !one.starts_with("NO_COLOR=") && !one.starts_with("TERM=")) {
      all.push_back(one);
    }
  }
  all.emplace_back("TERM=xterm");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string names_of(const std::vector<std::pair<std::string, int>>& sockets) {
  std::string all;
  for (const auto& [name, socket] : sockets) all += (all.empty() ? "" : ":") + name;
  return all;
}

// Adds a failure if `sluice` crashed, so that the output of the test shows the report. `sent` is
// the last signal of the test itself.
void expect_no_crash(int status, int sent, const std::string& err) {
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool crashed = number == SIGSEGV || number == SIGABRT || number == SIGBUS ||
                       number == SIGILL || number == SIGFPE;
  if (crashed && number != sent) {
    ADD_FAILURE() << "sluice crashed (signal " << number << "); its standard error:\n" << err;
  } else if (err.find("Sanitizer") != std::string::npos ||
             err.find("contract broken on ") != std::string::npos) {
    ADD_FAILURE() << "sluice reported a fault; its standard error:\n" << err;
  }
}

std::string open_terminal(int& ours) {
  ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  EXPECT_GE(ours, 0);
  EXPECT_EQ(::grantpt(ours), 0);
  EXPECT_EQ(::unlockpt(ours), 0);
  std::array<char, 128> name{};
  EXPECT_EQ(::ptsname_r(ours, name.data(), name.size()), 0);
  return name.data();
}

}  // namespace

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string make_file(const temporary_folder& in, const std::string& name,
                      const std::string& text) {
  const std::string path = in.file(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

program::program(const std::vector<std::string>& words, const start_options& o) {
  std::vector<std::string> command = {o.called.empty() ? SLUICE_PROGRAM : o.called};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<std::string> environment = environment_with(o.environment);
  if (!o.sockets.empty()) {
    // LISTEN_PID is known only in the process itself.
    const std::string start = R"(export LISTEN_PID=$$; exec "$0" "$@")";
    command.insert(command.begin(), {"/bin/sh", "-c", start});
    environment.push_back("LISTEN_FDS=" + std::to_string(o.sockets.size()));
    environment.push_back("LISTEN_FDNAMES=" + names_of(o.sockets));
  }
  const std::string in = make_file(folder_, "in", o.input);
  const std::string out = o.on_terminal ? open_terminal(terminal_) : folder_.file("out");

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, (o.has_keyboard ? out : in).c_str(),
                                     O_RDONLY | O_NOCTTY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(),
                                     O_WRONLY | O_CREAT | O_NOCTTY, 0644);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, folder_.file("err").c_str(),
                                     O_WRONLY | O_CREAT, 0644);
  for (std::size_t i = 0; i < o.sockets.size(); ++i) {
    ::posix_spawn_file_actions_adddup2(&files, o.sockets[i].second, static_cast<int>(3 + i));
  }
  // A shell starts background jobs with SIGINT and SIGQUIT ignored. Reset both, because this test
  // may be such a job.
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGINT);
  ::sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawn(&pid_, command.front().c_str(), &files, &attributes,
                                   pointers(command).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  EXPECT_EQ(failed, 0) << std::strerror(failed);
  handle_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  EXPECT_GE(handle_, 0) << std::strerror(errno);
}

program::~program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    expect_no_crash(status, signal_, err());
  }
  ::close(handle_);
  if (terminal_ >= 0) ::close(terminal_);
}

void program::signal(int number) const {
  signal_ = number;
  ASSERT_GT(pid_, 0) << "it has ended";
  EXPECT_EQ(::kill(pid_, number), 0);
}

void program::limit_files(std::optional<std::uint64_t> bytes_max) const {
  rlimit now{};
  ASSERT_EQ(::prlimit(pid_, RLIMIT_FSIZE, nullptr, &now), 0);
  now.rlim_cur = bytes_max ? *bytes_max : now.rlim_max;
  EXPECT_EQ(::prlimit(pid_, RLIMIT_FSIZE, &now, nullptr), 0);
}

bool program::has_ended() const {
  pollfd file{handle_, POLLIN, 0};
  return ::poll(&file, 1, 0) == 1;
}

std::string program::out() const {
  if (terminal_ < 0) return text_of(folder_.file("out"));
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t n = ::read(terminal_, part.data(), part.size());
    if (n <= 0) return text;  // EIO: the other end is closed
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

void program::type(const std::string& keys) const {
  EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void program::resize(unsigned short columns, unsigned short rows) const {
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(::ioctl(terminal_, TIOCSWINSZ, &size), 0);
  // It is no process's controlling terminal, so the kernel does not send the signal.
  signal(SIGWINCH);
}

bool program::terminal_is_raw() const {
  termios now{};
  EXPECT_EQ(::tcgetattr(terminal_, &now), 0);
  return (now.c_lflag & (ICANON | ECHO)) == 0;
}

// Reads the terminal while waiting: the program blocks when the terminal's buffer is full.
bool program::wait_for_end(std::string& shown) const {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  std::array<pollfd, 2> files = {pollfd{handle_, POLLIN, 0}, pollfd{terminal_, POLLIN, 0}};
  while (std::chrono::steady_clock::now() < give_up) {
    ::poll(files.data(), files.size(), patience_ms);
    if (files[0].revents != 0) return true;
    if (terminal_ >= 0) shown += out();
  }
  return false;
}

ended program::wait() {
  std::string shown;  // on its terminal
  if (!wait_for_end(shown)) {
    ADD_FAILURE() << "it does not end; its standard error:\n" << err();
    ::kill(pid_, SIGKILL);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  pid_ = 0;
  expect_no_crash(status, signal_, err());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, shown + out(), err()};
}

ended run_sluice(const std::vector<std::string>& words, const start_options& o) {
  return program(words, o).wait();
}

std::vector<std::string> server_program::words_for(const temporary_folder& in,
                                                   const std::vector<std::string>& more) {
  ::unlink(in.file("port").c_str());
  std::vector<std::string> words = {"serve", "--data",      in.file("data"), "--port",
                                    "0",     "--port-file", in.file("port")};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

server_program::server_program(const temporary_folder& in, std::vector<std::string> more,
                               const start_options& o)
    : port_file_(in.file("port")), program_(words_for(in, more), o) {
  eventually([&] { return !text_of(port_file_).empty() || program_.has_ended(); },
             "a server that listens");
  const std::string port = text_of(port_file_);
  EXPECT_FALSE(port.empty()) << program_.err();
  url_ = "http://127.0.0.1:" + port.substr(0, port.find('\n'));
}

std::uint16_t server_program::port_for(const std::string& protocol) const {
  const std::string text = text_of(port_file_);
  const auto at = text.find("\n" + protocol + " ");
  if (at == std::string::npos) {
    ADD_FAILURE() << "no port of " << protocol << " in: " << text;
    return 0;
  }
  return static_cast<std::uint16_t>(std::stoul(text.substr(at + protocol.size() + 2)));
}

ended server_program::run(std::vector<std::string> words, start_options o) const {
  o.environment.push_back("SLUICE_URL=" + url_);
  return run_sluice(words, o);
}

ended server_program::stop() {
  program_.signal(SIGTERM);
  return program_.wait();
}

}  // namespace sluice::jobs::cli::testing
