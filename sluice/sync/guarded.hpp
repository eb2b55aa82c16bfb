#pragma once

// A value that cannot be touched without its lock: rules out the forgotten lock, the
// read-modify-write in two steps and the check-then-act.
//
// Use it for every mutable value that several threads share. Lock = `mutex` fits most;
// `shared_mutex` gives many readers at a time, `fair_mutex` turns in order, `spin_lock` the
// shortest sections. std's locks work too, with the forms that they have. Prefer `snapshot<T>`
// when readers must never wait, and `counter` for mere counting.
//
// Guarantees: those of the lock. A whole step goes into `with`, or into the life of an access.
// An access is false when the lock was not taken, and then knows why: `timed_out`, `stopped`, or
// `empty` from a try. It cannot be copied, nor taken from a temporary; a reference cannot be
// returned out of `with`. Through a const guarded, and by `read`, the value is constant.
// `when` and `lock_when` wait, with the lock released, until a predicate on the value holds: every
// release of a non-const access asks those who wait again. (Not with a spin_lock, under which
// nobody should sleep.) The predicate must depend on nothing but the value.
// Cancel safety: as the lock's; a `lock_when` that failed does not hold the lock.
// Cost: the lock, the value, and about 56 bytes for those who wait in `when`; no allocation.
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

// std's locks say bool, ours a status.
inline status lock_status(bool taken, status otherwise) noexcept {
  return taken ? status(status::ok) : otherwise;
}
inline status lock_status(status ended, status) noexcept { return ended; }

// Calls a user's function with the value; what comes back must not lead around the lock.
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
  // With a name for its lock, and for the waits for a change.
  template <class... Args>
    requires std::constructible_from<T, Args...>
  explicit guarded(named as, Args&&... args)
    requires std::constructible_from<Lock, named>
      : lock_(as), signal_(as), value_(std::forward<Args>(args)...) {}
  guarded(const guarded&) = delete;
  guarded& operator=(const guarded&) = delete;

  // One whole step under the lock; gives what `f(T&)` gives. (Not constrained: to ask whether a
  // generic lambda takes a const T would be to compile its body with one.)
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

  access lock(call_site at = {}) & { return wrap(held(at)); }
  const_access lock(call_site at = {}) const& { return wrap(held(at)); }
  access try_lock() & { return take<access>(*this, lock_.try_lock(), status::empty); }
  const_access try_lock() const& {
    return take<const_access>(*this, lock_.try_lock(), status::empty);
  }

  access lock(std::stop_token stop) &
    requires requires(Lock& l, std::stop_token s) { l.lock(s); }
  {
    return take<access>(*this, lock_.lock(std::move(stop)), status::stopped);
  }
  // `limit...` is optionally a stop_token.
  template <class Rep, class Period, class... Limit>
  access try_lock_for(std::chrono::duration<Rep, Period> wait, Limit... limit) &
    requires requires(Lock& l) { l.try_lock_for(wait, limit...); }
  {
    return take<access>(*this, lock_.try_lock_for(wait, limit...), status::timed_out);
  }
  template <class Clock, class Duration, class... Limit>
  access try_lock_until(std::chrono::time_point<Clock, Duration> when, Limit... limit) &
    requires requires(Lock& l) { l.try_lock_until(when, limit...); }
  {
    return take<access>(*this, lock_.try_lock_until(when, limit...), status::timed_out);
  }
  access lock_within(const wait_limits& limits) &
    requires requires(Lock& l) { l.lock_within(limits); }
  {
    return take<access>(*this, lock_.lock_within(limits), status::timed_out);
  }
  const_access lock_within(const wait_limits& limits) const&
    requires requires(Lock& l) { l.lock_within(limits); }
  {
    return take<const_access>(*this, lock_.lock_within(limits), status::timed_out);
  }
  // co_await gives an access.
  auto async_lock(wait_limits limits = {}) &
    requires requires(Lock& l) { l.async_lock(limits); }
  {
    const auto start = [&] { return lock_.async_lock(std::move(limits)); };
    return detail::access_await<access, guarded, decltype(start())>(*this, start);
  }

  // Waits until `holds(const T&)`, then does `f(T&)` in the same step; gives what `f` gives.
  template <std::predicate<const T&> Predicate, std::invocable<T&> F>
  auto when(Predicate holds, F&& f, call_site at = {}) &
    requires waits
  {
    const auto held = lock_when(std::move(holds), at);
    return detail::call_guarded(std::forward<F>(f), *held);
  }
  template <std::predicate<const T&> Predicate>
  access lock_when(Predicate holds, call_site at = {}) &
    requires waits
  {
    return access::when(lock(at), at, std::move(holds));
  }
  template <std::predicate<const T&> Predicate>
  access lock_when(Predicate holds, std::stop_token stop) &
    requires waits
  {
    return lock_when_within({{}, std::move(stop)}, std::move(holds));
  }
  template <class Rep, class Period, std::predicate<const T&> Predicate>
  access try_lock_when_for(std::chrono::duration<Rep, Period> wait, Predicate holds,
                           std::stop_token stop = {}) &
    requires waits
  {
    return lock_when_within({deadline::after(wait), std::move(stop)}, std::move(holds));
  }
  template <class Clock, class Duration, std::predicate<const T&> Predicate>
  access try_lock_when_until(std::chrono::time_point<Clock, Duration> when, Predicate holds,
                             std::stop_token stop = {}) &
    requires waits
  {
    return lock_when_within({deadline::at(when), std::move(stop)}, std::move(holds));
  }
  template <std::predicate<const T&> Predicate>
  access lock_when_within(const wait_limits& limits, Predicate holds) &
    requires waits && requires(Lock& l) { l.lock_within(limits); }
  {
    return access::when(lock_within(limits), limits, std::move(holds));
  }

  // Together with other readers, when the lock can be shared.
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
    if constexpr (requires { lock_.lock_shared(at); }) {
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
  read_access read(std::stop_token stop) const&
    requires requires(Lock& l, std::stop_token s) { l.lock_shared(s); }
  {
    return take<read_access>(*this, lock_.lock_shared(std::move(stop)), status::stopped);
  }
  template <class Rep, class Period, class... Limit>
  read_access try_read_for(std::chrono::duration<Rep, Period> wait, Limit... limit) const&
    requires requires(Lock& l) { l.try_lock_shared_for(wait, limit...); }
  {
    return take<read_access>(*this, lock_.try_lock_shared_for(wait, limit...), status::timed_out);
  }
  template <class Clock, class Duration, class... Limit>
  read_access try_read_until(std::chrono::time_point<Clock, Duration> when, Limit... limit) const&
    requires requires(Lock& l) { l.try_lock_shared_until(when, limit...); }
  {
    return take<read_access>(*this, lock_.try_lock_shared_until(when, limit...),
                             status::timed_out);
  }
  read_access read_within(const wait_limits& limits) const&
    requires requires(Lock& l) { l.lock_shared_within(limits); }
  {
    return take<read_access>(*this, lock_.lock_shared_within(limits), status::timed_out);
  }
  // co_await gives a read_access.
  auto async_read(wait_limits limits = {}) const&
    requires requires(Lock& l) { l.async_lock_shared(limits); }
  {
    const auto start = [&] { return lock_.async_lock_shared(std::move(limits)); };
    return detail::access_await<read_access, const guarded, decltype(start())>(*this, start);
  }

  // An access would outlive the temporary it belongs to.
  void lock(auto&&...) const&& = delete;
  void try_lock(auto&&...) const&& = delete;
  void lock_within(auto&&...) const&& = delete;
  void with(auto&&) const&& = delete;
  void with_read(auto&&) const&& = delete;
  void read(auto&&...) const&& = delete;
  void try_read(auto&&...) const&& = delete;
  void try_read_for(auto&&...) const&& = delete;
  void try_read_until(auto&&...) const&& = delete;
  void read_within(auto&&...) const&& = delete;
  void async_read(auto&&...) const&& = delete;

  // How many wait: for the lock, and for the value to change.
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
    if constexpr (requires { lock_.lock(at); }) {
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

  // An access to what has just been locked, or to nothing.
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
