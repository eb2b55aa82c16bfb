#include "sluice/sim/detail/spin_guard.hpp"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "sluice/base/check.hpp"
#include "sluice/sim/detail/scheduler.hpp"
#include "sluice/sim/detail/simulated_atomic.hpp"
#include "sluice/sim/detail/source_lines.hpp"

namespace sluice::sim::detail {
namespace {

constexpr int spin_signal = SIGVTALRM;
// The number of consecutive samples with the same step after which a loop is reported.
constexpr int samples_max = 4;

constinit std::uint64_t seen_step = 0;
constinit int samples = 0;

void on_sample(int, siginfo_t*, void* context) {
  // The scheduler is running, or no schedule is.
  if (active == nullptr || !exploring) return;
  const int saved_errno = errno;
  const auto step = active->progress();
  samples = step == seen_step ? samples + 1 : 0;
  seen_step = step;
  if (samples >= samples_max) {
    samples = 0;
    const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    active->fail_in_loop(calls_from_here(reinterpret_cast<const void*>(registers[REG_RIP])));
  }
  errno = saved_errno;
}

}  // namespace

spin_guard::spin_guard(std::chrono::milliseconds limit) : is_on_(limit.count() > 0) {
  if (!is_on_) return;
  prepare_call_stacks();
  samples = 0;
  struct sigaction act {};
  act.sa_sigaction = &on_sample;
  // Runs on the signal stack of catch_faults: a switch to another fiber abandons it like any stack.
  act.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  ::sigaction(spin_signal, &act, &before_);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = spin_signal;
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  sluice::check(::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0, "sluice::sim",
                "a timer that finds loops without a step");
  const auto between = std::max<std::int64_t>(limit.count() / samples_max, 1);
  itimerspec period{};
  period.it_interval.tv_sec = between / 1000;
  period.it_interval.tv_nsec = between % 1000 * 1'000'000;
  period.it_value = period.it_interval;
  ::timer_settime(timer_, 0, &period, nullptr);
}

spin_guard::~spin_guard() {
  if (!is_on_) return;
  ::timer_delete(timer_);
  ::sigaction(spin_signal, &before_, nullptr);
}

}  // namespace sluice::sim::detail
