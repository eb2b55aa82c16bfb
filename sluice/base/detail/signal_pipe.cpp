#include "sluice/base/detail/signal_pipe.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "sluice/base/check.hpp"

namespace sluice::seam {
namespace {

constexpr char arrived = 's';
constexpr char closed = 'c';

// Lock-free, so that the signal handler may read it.
std::atomic<int> handler_writes_to{-1};
struct sigaction previous_action {};

void handle(int) {
  const int saved_errno = errno;
  const int file = handler_writes_to.load(std::memory_order_relaxed);
  // If the pipe is full, it already contains unread signals.
  if (file >= 0) [[maybe_unused]]
    const auto written = ::write(file, &arrived, 1);
  errno = saved_errno;
}

}  // namespace

signal_pipe::signal_pipe(int signal) : signal_(signal) {
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC) == 0, "sluice::signal_pipe", "two free file descriptors");
  read_ = ends[0];
  write_ = ends[1];
  ::fcntl(write_, F_SETFL, O_NONBLOCK);
  int none = -1;
  check(handler_writes_to.compare_exchange_strong(none, write_), "sluice::signal_pipe",
        "one at a time in the process");
  struct sigaction action {};
  action.sa_handler = &handle;
  action.sa_flags = SA_RESTART;
  check(::sigaction(signal_, &action, &previous_action) == 0, "sluice::signal_pipe",
        "a signal that can be caught");
}

signal_pipe::~signal_pipe() {
  ::sigaction(signal_, &previous_action, nullptr);
  handler_writes_to.store(-1);
  ::close(write_);
  ::close(read_);
}

bool signal_pipe::wait() noexcept {
  char event = closed;
  ssize_t got = 0;
  do {
    got = ::read(read_, &event, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1 && event == arrived) return true;
  close();  // the byte is consumed: writes another one for the next waiter
  return false;
}

void signal_pipe::close() noexcept {
  [[maybe_unused]] const auto written = ::write(write_, &closed, 1);
}

}  // namespace sluice::seam
