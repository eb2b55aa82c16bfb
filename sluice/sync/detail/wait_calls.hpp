#pragma once

// Every form of `wait`, written once for the gates of the library: objects that are closed, then
// open and release all waiters (event, latch).
//
// A gate derives from `wait_calls<Gate>`, has `is_open()` and befriends this class, which keeps the
// list of waiters. `open_gate(mark)` opens the gate and wakes all waiters.
//
// Guarantees: the opening happens before the return of every wait that it ends. `mark` runs under
// the gate's lock. A woken waiter may destroy the gate at once.

#include <cstddef>
#include <mutex>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

template <class Gate>
class wait_calls {
 public:
  wait_calls() = default;
  wait_calls(const wait_calls&) = delete;
  wait_calls& operator=(const wait_calls&) = delete;

  // Blocks until the gate is open.
  void wait(call_site at = {}) {
    const auto ended = block_on(op(*this), at);
    check(static_cast<bool>(ended), Gate::type_name, "an unlimited wait to end by the gate", at);
  }
  // Within the limits. Returns ok, timed_out or stopped.
  status wait(const wait_limits& limits) { return block_on(op(*this), limits); }
  bool try_wait() const noexcept { return self().is_open(); }
  // co_await returns a status.
  auto async_wait(wait_limits limits = {}) { return awaitable<op>(std::move(limits), *this); }

  // The number of waiters in the list.
  std::size_t waiting() const noexcept {
    const std::lock_guard hold(guard_);
    return waiters_.size();
  }

 protected:
  explicit wait_calls(named as) { wait_report::set_name(static_cast<Gate*>(this), as.name()); }
  ~wait_calls() {
    const std::lock_guard hold(guard_);  // an opening may still have to release it
    check_object(waiters_.empty(), static_cast<Gate*>(this), Gate::type_name,
                 "no waiters at its destruction");
    wait_report::destroyed(static_cast<Gate*>(this));
  }

  // Calls `mark` under the lock. If it returns true, the gate is now open: wakes all waiters.
  template <class Mark>
  void open_gate(Mark&& mark) {
    wake_batch wakes;
    const std::lock_guard hold(guard_);
    if (!mark()) return;
    while (auto* const node = claim_front(waiters_)) wakes.add(*node->waiting);
  }

 private:
  class op {
   public:
    explicit op(wait_calls& gate) noexcept : gate_(gate) {}
    bool ready() const noexcept { return gate_.self().is_open(); }
    bool attempt() noexcept { return ready(); }
    enlisted enlist(waiter& waiting) noexcept {
      const std::lock_guard hold(gate_.guard_);
      return ready() ? enlisted::finished : link_waiter(gate_.waiters_, node_, waiting);
    }
    bool woken() const noexcept { return true; }  // it was open, even if it is closed again by now
    void retract() noexcept {
      const std::lock_guard hold(gate_.guard_);
      if (node_.linked()) node_.unlink();
    }
    spin_budget& spin() noexcept { return gate_.spin_; }
    status result(status ended) const noexcept { return ended; }
    // Holders are the parties that must finish first, if reported (held_as::running).
    wait_report::subject wait_subject() const noexcept {
      return {&gate_.self(), Gate::type_name, "wait", wait_report::served_by::holders};
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

}  // namespace sluice::detail
