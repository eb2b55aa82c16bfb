#pragma once

// One writer or many readers at a time.
//
// Use it when reads are frequent and take a while (a lookup in a large map). Prefer `mutex` for
// short sections: entering as a reader is itself a write to shared memory. Prefer `snapshot<T>`
// when readers can work on a whole copy: they then never wait.
//
// Guarantees: phase fair. A waiting writer blocks readers that arrive later, so writers do not
// starve; a leaving writer admits all readers waiting by then, so readers do not starve either:
// a reader waits for at most one writer, and writers are served in order. Hand-over is direct, and
// waiters in the list are not overtaken. A thread first tries without joining the list; only then
// can another party overtake it. Leaving synchronizes with the parties it admits.
// The mutex records its writer: locking it (either way) in the thread that holds it exclusively,
// unlocking it without that hold, and destroying it while it is held or waited for are broken
// contracts. A read lock cannot be upgraded, because two upgrades would wait for each other: a
// thread that waits here while it reads here is a broken contract as well, since it could block
// itself. Release, lock, and check again.
// A thread's hold is released by that thread; a coroutine's (from async_...) on any.
// Cancel safety: a wait that timed out or was stopped holds nothing and blocks no other party.
// Cost: 48 bytes; uncontended one compare-and-swap each way, for readers and writers. No
// allocation. (./bench sync)
//
//     sluice::shared_mutex m;
//     { const std::shared_lock reading(m); look(); }
//     { const std::unique_lock writing(m, 5ms); if (writing) change(); }
//     auto reading = co_await m.async_lock_shared(limits);

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/detail/lock_calls.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class shared_mutex : public detail::lock_calls<shared_mutex> {
 public:
  class lock_op;
  class lock_shared_op;
  class hold_shared_op;
  static constexpr const char* type_name = "sluice::shared_mutex";

  shared_mutex() = default;
  explicit shared_mutex(named as) { wait_report::set_name(this, as.name()); }
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;
  ~shared_mutex();

  void lock(call_site at = {});
  using lock_calls::lock;
  bool try_lock(call_site at = {}) noexcept {
    const bool taken = take_free(seam::thread_number());
    if (taken && wait_report::is_on()) [[unlikely]] report_taken(at, by_try::yes);
    return taken;
  }
  void unlock(call_site at = {}) noexcept;

  void lock_shared(call_site at = {});
  // Blocks until a shared hold is taken, within the limits. Returns ok, timed_out or stopped.
  status lock_shared(const wait_limits& limits);
  bool try_lock_shared(call_site at = {}) noexcept;
  void unlock_shared(call_site at = {}) noexcept;

  // As std's SharedTimedLockable.
  template <class Rep, class Period>
  timed_lock_status try_lock_shared_for(std::chrono::duration<Rep, Period> wait,
                                        call_site at = {}) {
    return lock_shared({wait, {}, at});
  }
  template <class Clock, class Duration>
  timed_lock_status try_lock_shared_until(std::chrono::time_point<Clock, Duration> when,
                                          call_site at = {}) {
    return lock_shared({when, {}, at});
  }

  // co_await returns outcome<std::shared_lock<shared_mutex>>.
  auto async_lock_shared(wait_limits limits = {});

  // Returns true if the calling thread holds it exclusively (never for a coroutine's hold).
  bool held_by_me() const noexcept { return writer(word_.load(relaxed)) == seam::thread_number(); }
  // The number of waiters in the lists: writers, readers, both.
  std::size_t waiting_to_lock() const noexcept;
  std::size_t waiting_to_share() const noexcept;
  std::size_t waiting() const noexcept;

 private:
  // word_: 0 if free, and then the lists are empty, because leaving hands over directly.
  // Bits 0..23: the writer's thread number, or writer_mask if a coroutine writes; 0 for none.
  // Bit 31: set while a list is not empty: newcomers join it, and the last to leave checks it.
  // Bits 32..63: the number of readers inside; 0 while there is a writer.
  using word = std::uint64_t;
  static constexpr word writer_mask = 0x00ff'ffff;
  static constexpr word coroutine = writer_mask;
  static constexpr word has_waiters = 0x8000'0000;
  static constexpr word one_reader = word{1} << 32;
  static constexpr word writer(word seen) noexcept { return seen & writer_mask; }
  static constexpr word readers(word seen) noexcept { return seen >> 32; }

  bool take_free(word me) noexcept {
    word free = 0;
    return word_.compare_exchange_strong(free, me, acquire, relaxed);
  }
  void entered_shared(const call_site& at, by_try tried) noexcept;
  bool enter_shared() noexcept;
  void leave_shared(call_site at) noexcept;
  void leave_shared_slowly() noexcept;
  void unlock_slowly(word seen, call_site at) noexcept;
  void check_not_held(word seen, word me, const call_site* at) const noexcept;

  // All must hold guard_.
  word admit_readers(wake_batch& wakes) noexcept;  // returns how many
  bool admit_writer(wake_batch& wakes) noexcept;
  void leave_list(wait_node& node) noexcept;
  void mark_waiters() noexcept;
  word waiters_bit() const noexcept;

  atomic<word> word_{0};
  spin_budget spin_;
  mutable spin_lock guard_;
  wait_list writers_;  // protected by guard_
  wait_list readers_;  // protected by guard_; not empty only while a writer is inside or waits
};

class shared_mutex::lock_op : public detail::lock_op_base {
 public:
  enum owner_kind : std::uint8_t { by_thread, by_coroutine };

  // `at`, if it is not null, must live as long as this.
  explicit lock_op(shared_mutex& m, owner_kind kind = by_thread,
                   const call_site* at = nullptr) noexcept
      : mutex_(m), at_(at) {
    node_.owner = kind == by_thread ? seam::thread_number() : coroutine;
  }

  bool ready() const noexcept { return mutex_.word_.load(relaxed) == 0; }
  bool attempt() noexcept { return mutex_.take_free(node_.owner); }
  enlisted enlist(waiter& waiting) noexcept;
  wait_report::subject wait_subject() const noexcept {
    return {&mutex_, type_name, "lock", wait_report::served_by::holders};
  }
  bool woken() const noexcept { return true; }  // always handed the lock
  void retract() noexcept;
  spin_budget& spin() noexcept { return mutex_.spin_; }

 private:
  friend class shared_mutex;
  struct node : wait_node {
    word owner = 0;
  };

  shared_mutex& mutex_;
  const call_site* const at_;
  node node_;
};

class shared_mutex::lock_shared_op : public detail::lock_op_base {
 public:
  enum owner_kind : std::uint8_t { by_thread, by_coroutine };

  // `at`, if it is not null, must live as long as this.
  explicit lock_shared_op(shared_mutex& m, owner_kind kind = by_thread,
                          const call_site* at = nullptr) noexcept
      : mutex_(m), me_(kind == by_thread ? seam::thread_number() : coroutine), at_(at) {}

  bool ready() const noexcept {
    return (mutex_.word_.load(relaxed) & (writer_mask | has_waiters)) == 0;
  }
  bool attempt() noexcept { return mutex_.enter_shared(); }
  enlisted enlist(waiter& waiting) noexcept;
  wait_report::subject wait_subject() const noexcept {
    return {&mutex_, type_name, "lock_shared", wait_report::served_by::holders};
  }
  bool woken() const noexcept { return true; }  // always admitted before it is woken
  void retract() noexcept;
  spin_budget& spin() noexcept { return mutex_.spin_; }

 private:
  shared_mutex& mutex_;
  const word me_;
  const call_site* const at_;
  wait_node node_;
};

class shared_mutex::hold_shared_op : public lock_shared_op {
 public:
  explicit hold_shared_op(shared_mutex& m) noexcept : lock_shared_op(m, by_coroutine), lock_(&m) {}

  outcome<std::shared_lock<shared_mutex>> result(status ended) noexcept {
    if (!ended) return ended;
    return std::shared_lock<shared_mutex>(*lock_, std::adopt_lock);
  }
  void taken_by(wait_report::party taker, const call_site& at) const noexcept {
    wait_report::took({.object = lock_,
                 .type = type_name,
                 .mode = wait_report::held_as::shared,
                 .by = taker,
                 .at = at,
                 .awaited = true});
  }

 private:
  shared_mutex* lock_;
};

inline auto shared_mutex::async_lock_shared(wait_limits limits) {
  return awaitable<hold_shared_op>(std::move(limits), *this);
}

}  // namespace sluice
