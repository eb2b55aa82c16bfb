#pragma once

// Mutual exclusion: one party at a time, the others asleep.
//
// Use it, best inside `guarded<T>`, for critical sections that may take long or block. Prefer
// `spin_lock` for a few instructions, `fair_mutex` when waiters must be served in order,
// `shared_mutex` when most sections only read.
//
// Guarantees: unlock synchronizes with the next lock. A running thread may overtake a sleeping
// one, which keeps the lock busy, but a thread that has waited a millisecond is handed the lock
// next, so no thread starves. Coroutines are handed the lock when they reach the front of the list.
// The mutex records its owner: locking it again, unlocking it from another thread, or destroying it
// while it is held or waited for is a broken contract and ends the program with the reason. A hold
// taken by `async_lock` belongs to the coroutine and may be released on any thread.
// Cancel safety: a wait that timed out or was stopped does not hold the lock.
// Cost: 32 bytes; uncontended one compare-and-swap each way (./bench sync: within 1.3x of
// std::mutex). No allocation.
//
//     sluice::mutex m;
//     const sluice::lock_guard hold(m);                    // or std::unique_lock, std::scoped_lock
//     if (m.try_lock_for(5ms)) { work(); m.unlock(); }
//     auto held = co_await m.async_lock({deadline::after(1s)});

#include <cstdint>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/detail/lock_calls.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class mutex : public detail::lock_calls<mutex> {
 public:
  class lock_op;
  static constexpr const char* type_name = "sluice::mutex";

  mutex() = default;
  explicit mutex(named as) { wait_report::set_name(this, as.name()); }
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  ~mutex();

  void lock(call_site at = {}) {
    if (!take_free(seam::thread_number())) lock_slowly(at);
    if (wait_report::is_on()) [[unlikely]] report_taken(at);
  }
  using lock_calls::lock;

  bool try_lock(call_site at = {}) noexcept {
    const bool taken = try_take(seam::thread_number());
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
  // word_: bits 0..23 the owner's thread number, 0 if free, owner_mask if a coroutine holds it;
  // bit 31 set while the list is not empty, so that unlock checks the list.
  static constexpr std::uint32_t owner_mask = 0x00ff'ffff;
  static constexpr std::uint32_t coroutine = owner_mask;
  static constexpr std::uint32_t has_waiters = 0x8000'0000;

  bool take_free(std::uint32_t me) noexcept {
    std::uint32_t free = 0;
    return word_.compare_exchange_strong(free, me, acquire, relaxed);
  }
  bool try_take(std::uint32_t me) noexcept;
  void lock_slowly(const call_site& at);
  void unlock_slowly(std::uint32_t seen, call_site at) noexcept;

  atomic<std::uint32_t> word_{0};
  spin_budget spin_;
  mutable spin_lock guard_;
  wait_list waiters_;  // protected by guard_
};

class mutex::lock_op : public detail::lock_op_base {
 public:
  enum owner_kind : std::uint8_t { by_thread, by_coroutine };

  // `at`, if it is not null, must live as long as this.
  explicit lock_op(mutex& m, owner_kind kind = by_thread, const call_site* at = nullptr) noexcept
      : mutex_(m), me_(kind == by_thread ? seam::thread_number() : coroutine), at_(at) {}

  bool ready() const noexcept { return (mutex_.word_.load(relaxed) & owner_mask) == 0; }
  bool attempt() noexcept { return mutex_.try_take(me_); }
  enlisted enlist(waiter& waiting) noexcept;
  wait_report::subject wait_subject() const noexcept {
    return {&mutex_, type_name, "lock", wait_report::served_by::holders};
  }
  bool woken() noexcept;
  void retract() noexcept;
  spin_budget& spin() noexcept { return mutex_.spin_; }

 private:
  friend class mutex;
  void check_not_owner(bool is_not) const noexcept {
    check_object(is_not, &mutex_, type_name, "not to be locked again by the thread that holds it",
                 at_);
  }
  struct node : wait_node {
    std::uint32_t owner = 0;
    bool hand_over = false;  // unlock must hand it the lock: a coroutine, or a starving thread
    bool given = false;      // the lock was handed over
  };

  mutex& mutex_;
  const std::uint32_t me_;
  const call_site* const at_;
  node node_;
  time_point first_wait_{};
};

}  // namespace sluice
