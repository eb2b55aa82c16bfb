#pragma once

// The waiting forms of `wait`, written once for every one-way gate of the library: something that
// is closed until it opens, and lets everybody through when it has (event, latch).
//
// A gate derives from `wait_calls<itself>`, has `is_open()` and befriends this class, which keeps
// the waiters. Opening is `open_gate(mark)`: it makes the gate open and wakes everybody.
//
// Guarantees: what happened before the opening is seen by whoever was let through. `mark` runs
// under the gate's lock, and a waiter that was let through may destroy the gate at once.

#include <chrono>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

template <class Gate>
class wait_calls {
 public:
  wait_calls() = default;
  wait_calls(const wait_calls&) = delete;
  wait_calls& operator=(const wait_calls&) = delete;

  void wait(call_site at = {}) {
    const auto ended = wait_within(at);
    check(static_cast<bool>(ended), Gate::type_name, "an unlimited wait to be let through", at);
  }
  // Until open or stopped.
  status wait(std::stop_token stop, call_site at = {}) {
    return wait_within({{}, std::move(stop), at});
  }
  bool try_wait() const noexcept { return self().is_open(); }

  template <class Rep, class Period>
  status try_wait_for(std::chrono::duration<Rep, Period> d, std::stop_token stop = {},
                      call_site at = {}) {
    return wait_within({deadline::after(d), std::move(stop), at});
  }
  template <class Clock, class Duration>
  status try_wait_until(std::chrono::time_point<Clock, Duration> t, std::stop_token stop = {},
                        call_site at = {}) {
    return wait_within({deadline::at(t), std::move(stop), at});
  }
  // With both limits at once; also the form for a deadline on another clock.
  status wait_within(const wait_limits& limits) { return block_on(op(*this), limits); }
  // co_await gives a status.
  auto async_wait(wait_limits limits = {}) { return awaitable<op>(std::move(limits), *this); }

  // How many wait in the list right now.
  std::size_t waiting() const noexcept {
    const std::lock_guard hold(guard_);
    return waiters_.size();
  }

 protected:
  explicit wait_calls(named as) { watch::set_name(static_cast<Gate*>(this), as.name()); }
  ~wait_calls() {
    const std::lock_guard hold(guard_);  // an opening may still be about to let go of it
    check_object(waiters_.empty(), static_cast<Gate*>(this), Gate::type_name,
                 "no waiters at its destruction");
    watch::gone(static_cast<Gate*>(this));
  }

  // Runs `mark` with the list guarded; when it returns true the gate has just opened.
  template <class Mark>
  void open_gate(Mark&& mark) {
    wake_batch wakes;
    const std::lock_guard hold(guard_);
    if (!mark()) return;
    while (auto* const node = claim_front(waiters_)) wakes.add(*node->who);
  }

 private:
  class op {
   public:
    explicit op(wait_calls& gate) noexcept : gate_(gate) {}
    bool ready() const noexcept { return gate_.self().is_open(); }
    bool attempt() noexcept { return ready(); }
    enlisted enlist(waiter& who) noexcept {
      const std::lock_guard hold(gate_.guard_);
      return ready() ? enlisted::finished : join(gate_.waiters_, node_, who);
    }
    bool woken() const noexcept { return true; }  // it was open, even if it is closed again
    void retract() noexcept {
      const std::lock_guard hold(gate_.guard_);
      if (node_.linked()) node_.unlink();
    }
    spin_budget& spin() noexcept { return gate_.spin_; }
    status result(status ended) const noexcept { return ended; }
    // Known are those whose end is waited for, if any (watch::held_as::running).
    watch::subject about() const noexcept {
      return {&gate_.self(), Gate::type_name, "wait", watch::served_by::holders};
    }

   private:
    wait_calls& gate_;
    wait_node node_;
  };

  const Gate& self() const noexcept { return static_cast<const Gate&>(*this); }

  mutable spin_lock guard_;
  spin_budget spin_;
  wait_list waiters_;  // protected by guard_
};

}  // namespace sluice
