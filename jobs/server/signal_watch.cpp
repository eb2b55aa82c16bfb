#include "jobs/server/signal_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "sluice/base/check.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs {
namespace {

timespec time_left(deadline until) {
  using namespace std::chrono;
  const auto left = std::max(time_point::duration::zero(), until.when() - seam::now());
  return {.tv_sec = duration_cast<seconds>(left).count(), .tv_nsec = (left % seconds(1)).count()};
}

}  // namespace

signal_watch::signal_watch(std::initializer_list<int> numbers) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : numbers) ::sigaddset(&set, number);
  check(::pthread_sigmask(SIG_BLOCK, &set, &before_) == 0, "sluice::jobs::signal_watch",
        "signals that can be blocked");
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  interrupts_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  check(signals_ >= 0 && interrupts_ >= 0, "sluice::jobs::signal_watch", "two free descriptors");
}

signal_watch::~signal_watch() {
  ::close(signals_);
  ::close(interrupts_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

signal_watch::woken signal_watch::wait(deadline until) {
  for (;;) {
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) == sizeof info) {
      return {woken::by::signal, static_cast<int>(info.ssi_signo)};
    }
    std::uint64_t count = 0;
    if (::read(interrupts_, &count, sizeof count) == sizeof count) return {woken::by::interrupt, 0};
    if (until.passed()) return {woken::by::deadline, 0};
    std::array<pollfd, 2> files = {pollfd{signals_, POLLIN, 0}, pollfd{interrupts_, POLLIN, 0}};
    const timespec left = until.is_never() ? timespec{} : time_left(until);
    ::ppoll(files.data(), files.size(), until.is_never() ? nullptr : &left, nullptr);
  }
}

void signal_watch::interrupt() noexcept {
  const std::uint64_t one = 1;
  // Fails only if 2^64 - 1 interrupts are pending; one more would change nothing.
  [[maybe_unused]] const auto written = ::write(interrupts_, &one, sizeof one);
}

}  // namespace sluice::jobs
