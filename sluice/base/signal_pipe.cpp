#include "sluice/base/signal_pipe.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "sluice/base/check.hpp"

namespace sluice::seam {
namespace {

constexpr char came = 's';
constexpr char closed = 'c';

// What the handler may touch: lock-free, and of the process.
std::atomic<int> handler_writes_to{-1};
struct sigaction before {};

void handle(int) {
  const int kept = errno;
  const int file = handler_writes_to.load(std::memory_order_relaxed);
  // A pipe that is full holds enough of them already.
  if (file >= 0) [[maybe_unused]]
    const auto written = ::write(file, &came, 1);
  errno = kept;
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
  check(::sigaction(signal_, &action, &before) == 0, "sluice::signal_pipe",
        "a signal that can be caught");
}

signal_pipe::~signal_pipe() {
  ::sigaction(signal_, &before, nullptr);
  handler_writes_to.store(-1);
  ::close(write_);
  ::close(read_);
}

bool signal_pipe::wait() noexcept {
  char what = closed;
  ssize_t got = 0;
  do {
    got = ::read(read_, &what, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1 && what == came) return true;
  close();  // for the next one that waits
  return false;
}

void signal_pipe::close() noexcept {
  [[maybe_unused]] const auto written = ::write(write_, &closed, 1);
}

}  // namespace sluice::seam
