#include "sluice/sync/waiter.hpp"

#include <optional>
#include <utility>

#include "sluice/base/work.hpp"

namespace sluice {
namespace {

constinit thread_local sleep_observer* this_observer = nullptr;

class asleep {
 public:
  asleep() noexcept {
    if (observer_ != nullptr) observer_->falls_asleep();
  }
  asleep(const asleep&) = delete;
  asleep& operator=(const asleep&) = delete;
  ~asleep() {
    if (observer_ != nullptr) observer_->woke_up();
  }

 private:
  sleep_observer* const observer_ = this_observer;
};

struct end_on_stop {
  waiter& self;
  void operator()() const noexcept {
    if (self.end(waiter::state::stopped)) self.wake();
  }
};

// Ends a thread's wait at a time of a clock that is not the kernel's.
class thread_timer final : public timer {
 public:
  explicit thread_timer(waiter& waiting) noexcept : waiting_(waiting) {}
  bool claim() noexcept override { return waiting_.end(waiter::state::timed_out); }
  void fire() noexcept override { waiting_.wake(); }

 private:
  waiter& waiting_;
};

}  // namespace

void wake_batch::wake_all() noexcept {
  const run_scope coroutines_last;
  while (first_ != nullptr) {
    waiter& next = *first_;
    first_ = next.next_to_wake_;  // before waking: it may be destroyed then
    next.wake();
  }
}

sleep_observer* observe_sleep(sleep_observer* observer) noexcept {
  return std::exchange(this_observer, observer);
}

const sleep_observer* this_sleep_observer() noexcept {
  return this_observer;
}

void report_helping() noexcept {
  if (this_observer != nullptr) this_observer->helps_out();
}

bool thread_waiter::spin(std::uint32_t times) noexcept {
  if (times == 0) return false;
  for (; times > 0 && !is_woken(); --times) seam::pause();
  for (int left = seam::yields_before_sleep; left > 0 && !is_woken(); --left) seam::yield();
  return is_woken();
}

waiter::state thread_waiter::park(const wait_limits& limits) noexcept {
  if (is_woken()) return ended_by();
  const asleep observed;
  if (limits.stop.stop_possible()) {
    // Its destructor waits for a callback that is running, so `this` outlives it.
    const std::stop_callback on_stop(limits.stop, end_on_stop{*this});
    sleep(limits.deadline);
  } else {
    sleep(limits.deadline);
  }
  return ended_by();
}

void thread_waiter::sleep(const deadline& until) noexcept {
  if (until.is_never()) {
    sleep_until_woken();
  } else if (until.on() == nullptr) {
    while (!is_woken()) {
      if (parker_.park_until(until.when())) continue;
      // If a notifier or a stop has already ended the wait, it is about to wake this thread.
      if (!end(state::timed_out)) sleep_until_woken();
      return;
    }
  } else {
    thread_timer alarm(*this);
    const bool armed = until.on()->arm(alarm, until.when());
    if (!armed && end(state::timed_out)) return;
    sleep_until_woken();
    if (armed) until.on()->disarm(alarm);
  }
}

}  // namespace sluice
