#pragma once

// One writer or many readers: those who only look do not keep each other out.
//
// Use it when reads are frequent and take a while (a lookup in a large map). Prefer `mutex` for
// short sections: entering as a reader is itself a write to shared memory. Prefer `snapshot<T>`
// when readers can work on a whole copy: they then never wait.
//
// Guarantees: phase fair. A writer in line holds back readers that come later, so writers do not
// starve; a writer who leaves lets in all readers in line by then, so readers do not starve either:
// a reader in line waits for at most one writer, and writers go in the order of the line. Hand-over
// is direct, nobody overtakes the line; a thread tries for a moment before it joins it, and only in
// that moment may others be faster. Whoever leaves synchronizes with whoever is let in.
// It knows its writer: locking (either way) what one holds exclusively, unlocking what another
// thread holds or nobody does, and destruction while held or waited for are broken contracts.
// There is no upgrade from reading to writing, as two who tried it would wait for each other:
// `std::shared_lock` has no such call, and a thread that waits here while it reads here is a
// broken contract too: it could wait for itself for ever. Release, lock, and look again.
// A thread's hold is released by that thread; a coroutine's (from async_...) on any.
// Cancel safety: a wait that timed out or was stopped holds nothing and holds nobody back.
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
#include "sluice/sync/lock_calls.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class shared_mutex : public lock_calls<shared_mutex> {
 public:
  class lock_op;
  class lock_shared_op;
  class hold_shared_op;
  static constexpr const char* type_name = "sluice::shared_mutex";

  shared_mutex() = default;
  explicit shared_mutex(named as) { watch::set_name(this, as.name()); }
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;
  ~shared_mutex();

  void lock(call_site at = {});
  using lock_calls::lock;
  bool try_lock(call_site at = {}) noexcept {
    const bool taken = take_free(seam::thread_number());
    if (taken && watch::is_on()) [[unlikely]] tell_taken(at, by_try::yes);
    return taken;
  }
  void unlock(call_site at = {}) noexcept;

  void lock_shared(call_site at = {});
  status lock_shared(std::stop_token stop, call_site at = {}) {
    return lock_shared_within({{}, std::move(stop), at});
  }
  bool try_lock_shared(call_site at = {}) noexcept;
  void unlock_shared(call_site at = {}) noexcept;

  template <class Rep, class Period>
  timed_lock_status try_lock_shared_for(std::chrono::duration<Rep, Period> wait,
                                        call_site at = {}) {
    return lock_shared_within({deadline::after(wait), {}, at});
  }
  template <class Rep, class Period>
  timed_lock_status try_lock_shared_for(std::chrono::duration<Rep, Period> wait,
                                        std::stop_token stop, call_site at = {}) {
    return lock_shared_within({deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  timed_lock_status try_lock_shared_until(std::chrono::time_point<Clock, Duration> when,
                                          call_site at = {}) {
    return lock_shared_within({deadline::at(when), {}, at});
  }
  template <class Clock, class Duration>
  timed_lock_status try_lock_shared_until(std::chrono::time_point<Clock, Duration> when,
                                          std::stop_token stop, call_site at = {}) {
    return lock_shared_within({deadline::at(when), std::move(stop), at});
  }
  status lock_shared_within(const wait_limits& limits);

  // co_await gives outcome<std::shared_lock<shared_mutex>>.
  awaitable<hold_shared_op> async_lock_shared(wait_limits limits = {});

  // True when the calling thread holds it exclusively (never for a coroutine's hold).
  bool held_by_me() const noexcept { return writer(word_.load(relaxed)) == seam::thread_number(); }
  // How many wait right now: to write, to read, both.
  std::size_t waiting_to_lock() const noexcept;
  std::size_t waiting_to_share() const noexcept;
  std::size_t waiting() const noexcept;

 private:
  // word_: 0 free, and then nobody waits, because whoever leaves hands over directly.
  // Bits 0..23: the writer's thread number, or writer_mask when a coroutine writes; 0 none.
  // Bit 31: set while a list is not empty: newcomers join, and the last to leave looks there.
  // Bits 32..63: how many readers are inside; 0 while there is a writer.
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

  // All with guard_ held.
  word let_readers_in(wake_batch& wakes) noexcept;  // how many
  bool let_writer_in(wake_batch& wakes) noexcept;
  void leave_list(wait_node& node) noexcept;
  void mark_waiters() noexcept;
  word waiters_bit() const noexcept;

  atomic<word> word_{0};
  spin_budget spin_;
  mutable spin_lock guard_;
  wait_list writers_;  // protected by guard_
  wait_list readers_;  // protected by guard_; not empty only while a writer is inside or waits
};

class shared_mutex::lock_op : public lock_op_base {
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
  enlisted enlist(waiter& who) noexcept;
  watch::subject about() const noexcept {
    return {&mutex_, type_name, "lock", watch::served_by::holders};
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

class shared_mutex::lock_shared_op : public lock_op_base {
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
  enlisted enlist(waiter& who) noexcept;
  watch::subject about() const noexcept {
    return {&mutex_, type_name, "lock_shared", watch::served_by::holders};
  }
  bool woken() const noexcept { return true; }  // always let in by who wakes it
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
  void taken_by(watch::party who, const call_site& at) const noexcept {
    watch::took({.object = lock_,
                 .type = type_name,
                 .how = watch::held_as::shared,
                 .by = who,
                 .at = at,
                 .awaited = true});
  }

 private:
  shared_mutex* lock_;
};

inline auto shared_mutex::async_lock_shared(wait_limits limits) -> awaitable<hold_shared_op> {
  return awaitable<hold_shared_op>(std::move(limits), *this);
}

}  // namespace sluice
