#pragma once

// A value that is accessible only under its lock: rules out the forgotten lock, the
// read-modify-write in two steps and the check-then-act.
//
// Use it for every mutable value that several threads share. Lock = `mutex` fits most;
// `shared_mutex` admits many readers at a time, `fair_mutex` serves in order, `spin_lock` is for
// the shortest sections. std's locks work too, with the forms that they have. Prefer `snapshot<T>`
// when readers must never wait, and `counter` for plain counting.
//
// Guarantees: the lock's own. A whole step goes into `with`, or into the lifetime of an access.
// An access is false when the lock was not taken; its status is then `timed_out`, `stopped`, or
// `empty` after a try. It cannot be copied, nor taken from a temporary; `with` cannot return a
// reference. Through a const guarded, and by `read`, the value is constant.
// `when` and `lock_when` wait, with the lock released, until a predicate on the value holds: every
// release of a non-const access makes the waiters check again. (Not with a spin_lock, under which
// no thread should sleep.) The predicate must depend only on the value.
// Cancel safety: as the lock's; a `lock_when` that failed does not hold the lock.
// Cost: the lock, the value, and about 56 bytes for the waiters of `when`; no allocation.
//
//     guarded<std::map<id, job>> jobs;
//     jobs.with([&](auto& map) { map.erase(done); });
//     if (auto held = jobs.try_lock_for(5ms)) held->clear();
//     const auto next = jobs.when([](auto& map) { return !map.empty(); }, take_first);
//     auto held = co_await jobs.async_lock();

#include <chrono>
#include <concepts>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/sync/detail/guarded_access.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

template <class T, class Lock>
class guarded;

namespace detail {

template <class L>
struct lock_all_member;

template <class G>
inline constexpr bool is_guarded = false;
template <class T, class Lock>
inline constexpr bool is_guarded<guarded<T, Lock>> = true;
template <class T, class Lock>
inline constexpr bool is_guarded<const guarded<T, Lock>> = true;

// Converts the result of a lock call: std's locks return bool, the library's a status.
inline status lock_status(bool taken, status otherwise) noexcept {
  return taken ? status(status::ok) : otherwise;
}
inline status lock_status(status ended, status) noexcept { return ended; }

// Calls a user's function with the value. Its result must not give access to the value.
template <class F, class T>
auto call_guarded(F&& f, T& value) {
  using result = std::invoke_result_t<F, T&>;
  static_assert(!std::is_reference_v<result> &&
                    !std::is_convertible_v<result, const volatile std::remove_const_t<T>*>,
                "a reference to the guarded value would outlive the lock: return a copy");
  return std::invoke(std::forward<F>(f), value);
}

}  // namespace detail

template <class T, class Lock = mutex>
class guarded {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "guarded is for a plain value type");
  static constexpr bool waits = !std::is_same_v<Lock, spin_lock>;
  using signal = std::conditional_t<waits, detail::change_signal, detail::no_signal>;

 public:
  using access = detail::guarded_access<T, std::unique_lock<Lock>, signal>;
  using const_access = detail::guarded_access<const T, std::unique_lock<Lock>, signal>;
  using read_access =
      detail::guarded_access<const T, std::shared_lock<Lock>, const detail::no_signal>;

  guarded()
    requires std::default_initializable<T>
  = default;
  explicit guarded(T value) : value_(std::move(value)) {}
  template <class... Args>
    requires(sizeof...(Args) > 0 && std::constructible_from<T, Args...>)
  explicit guarded(std::in_place_t, Args&&... args) : value_(std::forward<Args>(args)...) {}
  // Names the lock and the condition of `when`.
  template <class... Args>
    requires std::constructible_from<T, Args...>
  explicit guarded(named as, Args&&... args)
    requires std::constructible_from<Lock, named>
      : lock_(as), signal_(as), value_(std::forward<Args>(args)...) {}
  guarded(const guarded&) = delete;
  guarded& operator=(const guarded&) = delete;

  // Calls `f(T&)` under the lock and returns its result. (Not constrained: checking whether a
  // generic lambda takes a const T would compile its body with one.)
  template <class F>
  auto with(F&& f, call_site at = {}) & {
    const auto held = lock(at);
    return detail::call_guarded(std::forward<F>(f), *held);
  }
  template <class F>
  auto with(F&& f, call_site at = {}) const& {
    const auto held = lock(at);
    return detail::call_guarded(std::forward<F>(f), *held);
  }

  // Blocks until the lock is held.
  access lock(call_site at = {}) & { return wrap(held(at)); }
  const_access lock(call_site at = {}) const& { return wrap(held(at)); }
  // Never waits: the access is empty if the lock is not free.
  access try_lock() & { return take<access>(*this, lock_.try_lock(), status::empty); }
  const_access try_lock() const& {
    return take<const_access>(*this, lock_.try_lock(), status::empty);
  }

  // Blocks until the lock is held, within the limits. The access is empty if its status is
  // timed_out or stopped.
  access lock(const wait_limits& limits) &
    requires requires(Lock& l) { l.lock(limits); }
  {
    return take<access>(*this, lock_.lock(limits), status::timed_out);
  }
  const_access lock(const wait_limits& limits) const&
    requires requires(Lock& l) { l.lock(limits); }
  {
    return take<const_access>(*this, lock_.lock(limits), status::timed_out);
  }
  // As std's timed locks.
  template <class Rep, class Period>
  access try_lock_for(std::chrono::duration<Rep, Period> wait) &
    requires requires(Lock& l) { l.try_lock_for(wait); }
  {
    return take<access>(*this, lock_.try_lock_for(wait), status::timed_out);
  }
  template <class Clock, class Duration>
  access try_lock_until(std::chrono::time_point<Clock, Duration> when) &
    requires requires(Lock& l) { l.try_lock_until(when); }
  {
    return take<access>(*this, lock_.try_lock_until(when), status::timed_out);
  }
  // co_await returns an access.
  auto async_lock(wait_limits limits = {}) &
    requires requires(Lock& l) { l.async_lock(limits); }
  {
    const auto start = [&] { return lock_.async_lock(std::move(limits)); };
    return detail::access_await<access, guarded, decltype(start())>(*this, start);
  }

  // Blocks until `holds(const T&)` is true, then calls `f(T&)` in the same step and returns its
  // result.
  template <std::predicate<const T&> Predicate, std::invocable<T&> F>
  auto when(Predicate holds, F&& f, call_site at = {}) &
    requires waits
  {
    const auto held = lock_when(std::move(holds), at);
    return detail::call_guarded(std::forward<F>(f), *held);
  }
  // Blocks until `holds(const T&)` is true. Returns an access that holds the lock.
  template <std::predicate<const T&> Predicate>
  access lock_when(Predicate holds, call_site at = {}) &
    requires waits
  {
    return access::when(lock(at), at, std::move(holds));
  }
  // Within the limits. The access is empty if its status is timed_out or stopped.
  template <std::predicate<const T&> Predicate>
  access lock_when(Predicate holds, const wait_limits& limits) &
    requires waits && requires(Lock& l) { l.lock(limits); }
  {
    return access::when(lock(limits), limits, std::move(holds));
  }

  // The read calls share the lock with other readers.
  template <std::invocable<const T&> F>
  auto with_read(F&& f, call_site at = {}) const&
    requires requires(Lock& l) { l.lock_shared(); }
  {
    const auto held = read(at);
    return detail::call_guarded(std::forward<F>(f), *held);
  }
  read_access read(call_site at = {}) const&
    requires requires(Lock& l) { l.lock_shared(); }
  {
    if constexpr (requires { { lock_.lock_shared(at) } -> std::same_as<void>; }) {
      lock_.lock_shared(at);
      return wrap(std::shared_lock<Lock>(lock_, std::adopt_lock));
    } else {
      return wrap(std::shared_lock<Lock>(lock_));
    }
  }
  read_access try_read() const&
    requires requires(Lock& l) { l.try_lock_shared(); }
  {
    return take<read_access>(*this, lock_.try_lock_shared(), status::empty);
  }
  // Within the limits. The access is empty if its status is timed_out or stopped.
  read_access read(const wait_limits& limits) const&
    requires requires(Lock& l) { l.lock_shared(limits); }
  {
    return take<read_access>(*this, lock_.lock_shared(limits), status::timed_out);
  }
  // As std's shared timed locks.
  template <class Rep, class Period>
  read_access try_read_for(std::chrono::duration<Rep, Period> wait) const&
    requires requires(Lock& l) { l.try_lock_shared_for(wait); }
  {
    return take<read_access>(*this, lock_.try_lock_shared_for(wait), status::timed_out);
  }
  template <class Clock, class Duration>
  read_access try_read_until(std::chrono::time_point<Clock, Duration> when) const&
    requires requires(Lock& l) { l.try_lock_shared_until(when); }
  {
    return take<read_access>(*this, lock_.try_lock_shared_until(when), status::timed_out);
  }
  // co_await returns a read_access.
  auto async_read(wait_limits limits = {}) const&
    requires requires(Lock& l) { l.async_lock_shared(limits); }
  {
    const auto start = [&] { return lock_.async_lock_shared(std::move(limits)); };
    return detail::access_await<read_access, const guarded, decltype(start())>(*this, start);
  }

  // An access would outlive the temporary it belongs to.
  void lock(auto&&...) const&& = delete;
  void try_lock(auto&&...) const&& = delete;
  void with(auto&&) const&& = delete;
  void with_read(auto&&) const&& = delete;
  void read(auto&&...) const&& = delete;
  void try_read(auto&&...) const&& = delete;
  void try_read_for(auto&&...) const&& = delete;
  void try_read_until(auto&&...) const&& = delete;
  void async_read(auto&&...) const&& = delete;

  // The number of waiters for the lock, and for the value to change.
  std::size_t waiting() const noexcept
    requires requires(const Lock& l) { l.waiting(); }
  {
    return lock_.waiting();
  }
  std::size_t waiting_for_change() const noexcept
    requires waits
  {
    return signal_.waiting();
  }

 private:
  template <class>
  friend struct detail::lock_all_member;
  template <class, class, class>
  friend class detail::access_await;

  std::unique_lock<Lock> held(const call_site& at) const {
    if constexpr (requires { { lock_.lock(at) } -> std::same_as<void>; }) {
      lock_.lock(at);
      return std::unique_lock<Lock>(lock_, std::adopt_lock);
    } else {
      return std::unique_lock<Lock>(lock_);
    }
  }
  access wrap(std::unique_lock<Lock> hold) noexcept {
    return access(std::move(hold), value_, signal_);
  }
  const_access wrap(std::unique_lock<Lock> hold) const noexcept {
    return const_access(std::move(hold), value_, signal_);
  }
  read_access wrap(std::shared_lock<Lock> hold) const noexcept {
    return read_access(std::move(hold), value_, no_signal_);
  }

  // Returns an access to the value if the lock was taken, else an empty one.
  template <class Access, class Self, class Result>
  static Access take(Self& self, Result taken, status otherwise) noexcept {
    const auto ended = detail::lock_status(taken, otherwise);
    if (!ended) return Access(ended);
    using hold = std::conditional_t<std::is_same_v<Access, read_access>, std::shared_lock<Lock>,
                                    std::unique_lock<Lock>>;
    return self.wrap(hold(self.lock_, std::adopt_lock));
  }

  static constexpr detail::no_signal no_signal_{};

  mutable Lock lock_;
  [[no_unique_address]] mutable signal signal_;
  T value_{};  // protected by lock_
};

}  // namespace sluice
