#pragma once

// Mutual exclusion in order of arrival: nobody overtakes, so nobody starves and the longest wait
// is bounded by the number of those in front.
//
// Use it when the spread of waiting times matters more than throughput. Prefer `mutex`, which
// lets a running thread go before a sleeping one and is therefore much faster under contention:
// here every contended unlock has to wake the next in line, and the lock stands still until that
// one runs.
//
// Guarantees: unlock synchronizes with the next lock. It hands the lock itself to whoever has
// waited longest, thread or coroutine; neither lock nor try_lock gets in between. It knows its
// owner: locking it again, unlocking what another thread holds, or destroying it while held or
// waited for is a broken contract and ends the program with the reason. A hold taken by
// `async_lock` belongs to the coroutine and may be released on any thread.
// Cancel safety: a wait that timed out or was stopped does not hold the lock, and left its place
// in line; those behind it move up.
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
#include "sluice/sync/lock_calls.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class fair_mutex : public lock_calls<fair_mutex> {
 public:
  class lock_op;
  static constexpr const char* type_name = "sluice::fair_mutex";

  fair_mutex() = default;
  explicit fair_mutex(named as) { watch::set_name(this, as.name()); }
  fair_mutex(const fair_mutex&) = delete;
  fair_mutex& operator=(const fair_mutex&) = delete;
  ~fair_mutex();

  void lock(call_site at = {}) {
    if (!take_free(seam::thread_number())) lock_slowly(at);
    if (watch::is_on()) [[unlikely]] tell_taken(at);
  }
  using lock_calls::lock;

  bool try_lock(call_site at = {}) noexcept {
    const bool taken = take_free(seam::thread_number());
    if (taken && watch::is_on()) [[unlikely]] tell_taken(at, by_try::yes);
    return taken;
  }

  void unlock(call_site at = {}) noexcept {
    watch::gave(this);
    auto mine = seam::thread_number();
    // release: pairs with the acquire of whoever takes it next.
    if (!word_.compare_exchange_strong(mine, 0, release, relaxed)) unlock_slowly(mine, at);
  }

  // True when the calling thread holds it (never for a coroutine's hold).
  bool held_by_me() const noexcept {
    return (word_.load(relaxed) & owner_mask) == seam::thread_number();
  }

  // How many stand in line right now.
  std::size_t waiting() const noexcept;

 private:
  // word_: 0 free, and then nobody waits, because an owner who leaves hands over directly;
  // else bits 0..23 the owner's thread number, or owner_mask when a coroutine holds it;
  // bit 31 set while the list is not empty, so that unlock looks there.
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

class fair_mutex::lock_op : public lock_op_base {
 public:
  enum owner_kind : std::uint8_t { by_thread, by_coroutine };

  // `at`, if it is not null, must live as long as this.
  explicit lock_op(fair_mutex& m, owner_kind kind = by_thread,
                   const call_site* at = nullptr) noexcept
      : mutex_(m), at_(at) {
    node_.owner = kind == by_thread ? seam::thread_number() : coroutine;
  }

  bool ready() const noexcept { return mutex_.word_.load(relaxed) == 0; }
  bool spins_linked() const noexcept { return true; }  // only those in line are handed the lock
  bool attempt() noexcept { return mutex_.take_free(node_.owner); }
  enlisted enlist(waiter& who) noexcept;
  watch::subject about() const noexcept {
    return {&mutex_, type_name, "lock", watch::served_by::holders};
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
