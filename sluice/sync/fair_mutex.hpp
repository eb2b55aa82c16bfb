#pragma once

// Mutual exclusion in order of arrival: no waiter is overtaken, so none starves, and the longest
// wait is bounded by the number of earlier waiters.
//
// Use it when the spread of waiting times matters more than throughput. Prefer `mutex`, where a
// running thread may overtake a sleeping one and which is therefore much faster under contention:
// here every contended unlock has to wake the next waiter, and the lock is idle until that waiter
// runs.
//
// Guarantees: unlock synchronizes with the next lock. It hands the lock itself to the party that
// has waited longest, thread or coroutine; neither lock nor try_lock can overtake it. The mutex
// records its owner: locking it again, unlocking it from another thread, or destroying it while it
// is held or waited for is a broken contract and ends the program with the reason. A hold taken by
// `async_lock` belongs to the coroutine and may be released on any thread.
// Cancel safety: a wait that timed out or was stopped does not hold the lock and has left the list;
// later waiters move up.
// Cost: 32 bytes; uncontended one compare-and-swap each way (./bench sync). No allocation.
//
//     sluice::fair_mutex turn;
//     const sluice::lock_guard hold(turn);                 // or std::unique_lock, std::scoped_lock
//     if (turn.try_lock_for(5ms)) { work(); turn.unlock(); }
//     auto held = co_await turn.async_lock(limits);

#include <cstddef>
#include <cstdint>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/detail/lock_calls.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class fair_mutex : public detail::lock_calls<fair_mutex> {
 public:
  class lock_op;
  static constexpr const char* type_name = "sluice::fair_mutex";

  fair_mutex() = default;
  explicit fair_mutex(named as) { wait_report::set_name(this, as.name()); }
  fair_mutex(const fair_mutex&) = delete;
  fair_mutex& operator=(const fair_mutex&) = delete;
  ~fair_mutex();

  void lock(call_site at = {}) {
    if (!take_free(seam::thread_number())) lock_slowly(at);
    if (wait_report::is_on()) [[unlikely]] report_taken(at);
  }
  using lock_calls::lock;

  bool try_lock(call_site at = {}) noexcept {
    const bool taken = take_free(seam::thread_number());
    if (taken && wait_report::is_on()) [[unlikely]] report_taken(at, by_try::yes);
    return taken;
  }

  void unlock(call_site at = {}) noexcept {
    wait_report::gave(this);
    auto owner = seam::thread_number();
    // release: pairs with the acquire of the next owner.
    if (!word_.compare_exchange_strong(owner, 0, release, relaxed)) unlock_slowly(owner, at);
  }

  // Returns true if the calling thread holds the lock (never for a coroutine's hold).
  bool held_by_me() const noexcept {
    return (word_.load(relaxed) & owner_mask) == seam::thread_number();
  }

  // The number of waiters in the list.
  std::size_t waiting() const noexcept;

 private:
  // word_: 0 if free, and then the list is empty, because unlock hands over directly;
  // else bits 0..23 the owner's thread number, or owner_mask if a coroutine holds it;
  // bit 31 set while the list is not empty, so that unlock checks the list.
  static constexpr std::uint32_t owner_mask = 0x00ff'ffff;
  static constexpr std::uint32_t coroutine = owner_mask;
  static constexpr std::uint32_t has_waiters = 0x8000'0000;

  bool take_free(std::uint32_t me) noexcept {
    std::uint32_t free = 0;
    return word_.compare_exchange_strong(free, me, acquire, relaxed);
  }
  void lock_slowly(const call_site& at);
  void unlock_slowly(std::uint32_t seen, call_site at) noexcept;

  atomic<std::uint32_t> word_{0};
  spin_budget spin_;
  mutable spin_lock guard_;
  wait_list waiters_;  // protected by guard_
};

class fair_mutex::lock_op : public detail::lock_op_base {
 public:
  enum owner_kind : std::uint8_t { by_thread, by_coroutine };

  // `at`, if it is not null, must live as long as this.
  explicit lock_op(fair_mutex& m, owner_kind kind = by_thread,
                   const call_site* at = nullptr) noexcept
      : mutex_(m), at_(at) {
    node_.owner = kind == by_thread ? seam::thread_number() : coroutine;
  }

  bool ready() const noexcept { return mutex_.word_.load(relaxed) == 0; }
  bool spins_linked() const noexcept { return true; }  // only linked waiters are handed the lock
  bool attempt() noexcept { return mutex_.take_free(node_.owner); }
  enlisted enlist(waiter& waiting) noexcept;
  wait_report::subject wait_subject() const noexcept {
    return {&mutex_, type_name, "lock", wait_report::served_by::holders};
  }
  bool woken() const noexcept { return true; }  // always handed the lock
  void retract() noexcept;
  spin_budget& spin() noexcept { return mutex_.spin_; }

 private:
  friend class fair_mutex;
  struct node : wait_node {
    std::uint32_t owner = 0;
  };

  fair_mutex& mutex_;
  const call_site* const at_;
  node node_;
};

}  // namespace sluice
