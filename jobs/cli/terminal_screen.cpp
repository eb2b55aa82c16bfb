#include "jobs/cli/terminal_screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "sluice/base/check.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr std::string_view enter_sequence = "\033[?1049h\033[?25l\033[2J";
constexpr std::string_view leave_sequence = "\033[?25h\033[?1049l";
constexpr std::array crashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int escape_wait_ms = 50;  // a sequence arrives at once, the next key press does not

// The original terminal settings; global because a signal handler has no other access.
termios saved{};
volatile sig_atomic_t is_entered = 0;

void write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd file{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&file, 1, -1);
      continue;
    }
    if (n <= 0) return;  // the terminal is gone; the next read detects it
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Async-signal-safe.
void restore() noexcept {
  if (is_entered == 0) return;
  is_entered = 0;
  write_all(leave_sequence);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

extern "C" void restore_and_crash(int number) {
  restore();
  // SA_RESETHAND has restored the default action.
  ::raise(number);
}

struct sequence {
  std::string_view bytes;
  key code;
};
constexpr std::array<sequence, 14> sequences = {{{"\033[A", key::up},
                                                 {"\033[B", key::down},
                                                 {"\033OA", key::up},
                                                 {"\033OB", key::down},
                                                 {"\033[5~", key::page_up},
                                                 {"\033[6~", key::page_down},
                                                 {"\033[H", key::home},
                                                 {"\033[F", key::end},
                                                 {"\033OH", key::home},
                                                 {"\033OF", key::end},
                                                 {"\033[1~", key::home},
                                                 {"\033[4~", key::end},
                                                 {"\033[7~", key::home},
                                                 {"\033[8~", key::end}}};

// Returns the length of the escape sequence; 0 if it is incomplete.
std::size_t length_of_sequence(std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] == 'O') return text.size() < 3 ? 0 : 3;
  if (text[1] != '[') return 1;  // the escape key, followed by another key
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] >= '@' && text[i] <= '~') return i + 1;
  }
  return 0;
}

}  // namespace

std::vector<key_press> take_keys(std::string& read, more_keys more) {
  std::vector<key_press> keys;
  std::string_view left = read;
  while (!left.empty()) {
    const char c = left.front();
    if (c != '\033') {
      left.remove_prefix(1);
      if (c == '\r' || c == '\n') {
        keys.push_back({key::enter});
      } else if (c == '\177' || c == '\b') {
        keys.push_back({key::erase});
      } else {
        keys.push_back({key::text, c});
      }
      continue;
    }
    std::size_t length = length_of_sequence(left);
    if (length == 0) {
      if (more == more_keys::may_come) break;
      length = left.size();
    }
    const std::string_view bytes = left.substr(0, length);
    left.remove_prefix(length);
    if (length == 1) keys.push_back({key::escape});
    for (const sequence& s : sequences) {
      if (s.bytes == bytes) keys.push_back({s.code});
    }
  }
  read.erase(0, read.size() - left.size());
  return keys;
}

terminal_screen::terminal_screen() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int n : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP}) ::sigaddset(&set, n);
  check(::pthread_sigmask(SIG_BLOCK, &set, &before_) == 0, "sluice::jobs::cli::terminal_screen",
        "signals that can be blocked");
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  check(signals_ >= 0, "sluice::jobs::cli::terminal_screen", "a free descriptor");
  check(::tcgetattr(STDIN_FILENO, &saved) == 0, "sluice::jobs::cli::terminal_screen",
        "a terminal for standard input");
  struct sigaction crash {};
  crash.sa_handler = restore_and_crash;
  crash.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int n : crashes) ::sigaction(n, &crash, nullptr);
  enter();
}

terminal_screen::~terminal_screen() {
  leave();
  for (const int n : crashes) ::signal(n, SIG_DFL);
  ::close(signals_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void terminal_screen::enter() {
  termios raw = saved;
  ::cfmakeraw(&raw);
  raw.c_oflag |= OPOST | ONLCR;  // keeps output of others readable
  is_entered = 1;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_all(enter_sequence);
}

void terminal_screen::leave() {
  restore();
}

// Restores the terminal and stops, as Ctrl-Z does; redraws when continued.
void terminal_screen::suspend() {
  leave();
  ::raise(SIGSTOP);
  enter();
}

screen_size terminal_screen::size() const noexcept {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

void terminal_screen::draw(std::string_view frame) {
  std::string text = "\033[H";
  for (const char c : frame) {
    if (c == '\n') {
      text += "\033[K\r\n";  // erases the rest of the old line without flicker
    } else {
      text += c;
    }
  }
  text += "\033[K\033[J";
  write_all(text);
}

terminal_screen::woken terminal_screen::wait(int other) {
  woken w;
  std::array<pollfd, 3> files = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_, POLLIN, 0},
                                 pollfd{other, POLLIN, 0}};
  const int ready = ::poll(files.data(), files.size(), read_.empty() ? -1 : escape_wait_ms);
  if (ready == 0) {
    w.keys = take_keys(read_, more_keys::none);
    return w;
  }
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGTSTP) {
      suspend();
      w.resized = true;
    } else if (number == SIGWINCH) {
      w.resized = true;
    } else {
      w.ended_by = number;
    }
  }
  if ((files[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    std::array<char, 256> part;
    const ssize_t n = ::read(STDIN_FILENO, part.data(), part.size());
    if (n > 0) read_.append(part.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) w.ended_by = SIGHUP;
    w.keys = take_keys(read_, more_keys::may_come);
  }
  return w;
}

}  // namespace sluice::jobs::cli
