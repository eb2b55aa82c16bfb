#pragma once

// Takes several locks at once, in any order of the arguments, without deadlock.
//
// Use it when one step touches several guarded values: move money between two accounts, merge two
// tables. Prefer one lock around both when they are always used together.
//
// Guarantees: takes any mix of this library's locks, std's, and `guarded<T>`s, whose holds are
// their accesses. All are held on return, or none. It never waits while it holds a lock: it waits
// for one, tries the others, and if one of these is taken, releases all and waits for that one
// next. A random pause in between keeps two callers from colliding for ever.
// Passing the same lock twice is a broken contract. If a lock's own `lock` throws, no lock stays
// held.
// A stop that was already requested wins; a deadline that has passed still allows one try.
// Cancel safety: after `timed_out`, `stopped` or `empty` no lock is held.
// Cost: no allocation. Waiting for a lock of this library parks; a std lock with a deadline or a
// stop_token is polled with growing pauses, because it supports neither.
// Limits: exclusive locks only.
//
//     auto [payer, payee] = lock_all(a, b);               // guarded<account> a, b
//     payer->balance -= 5;
//     payee->balance += 5;
//
//     if (auto held = lock_all(10ms, mutex_, other_mutex_)) work();

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <mutex>
#include <span>
#include <stop_token>
#include <tuple>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice {

namespace detail {

// One lock of the set, without its type.
struct any_lock {
  void* lock;
  void (*wait)(void*);
  // Null if the lock supports no limits: it is then polled.
  status (*wait_limited)(void*, const wait_limits&);
  bool (*try_once)(void*);
  void (*unlock)(void*);
};

// Takes all locks or none. Without limits, always returns ok.
status take_all(std::span<const any_lock> locks, const wait_limits& limits);
// Returns the index of the first lock that could not be taken, or the size of the set if all are
// held.
std::size_t try_all(std::span<const any_lock> locks);

template <class L>
any_lock erase(L& lock) noexcept {
  any_lock erased{
      .lock = &lock,
      .wait = [](void* l) { static_cast<L*>(l)->lock(); },
      .wait_limited = nullptr,
      .try_once = [](void* l) -> bool { return static_cast<L*>(l)->try_lock(); },
      .unlock = [](void* l) { static_cast<L*>(l)->unlock(); },
  };
  if constexpr (requires(const wait_limits& limits) { lock.lock(limits); }) {
    erased.wait_limited = [](void* l, const wait_limits& limits) -> status {
      return static_cast<L*>(l)->lock(limits);
    };
  }
  return erased;
}

// How to lock a member of the set, and the type of its hold.
template <class L>
struct lock_all_member {
  using hold = std::unique_lock<L>;
  static any_lock erased(L& lock) noexcept { return erase(lock); }
  static hold adopt(L& lock) noexcept { return hold(lock, std::adopt_lock); }
};
template <class T, class L>
struct lock_all_member<guarded<T, L>> {
  using hold = typename guarded<T, L>::access;
  static any_lock erased(guarded<T, L>& g) noexcept { return erase(g.lock_); }
  static hold adopt(guarded<T, L>& g) noexcept {
    return g.wrap(std::unique_lock<L>(g.lock_, std::adopt_lock));
  }
};
template <class T, class L>
struct lock_all_member<const guarded<T, L>> {
  using hold = typename guarded<T, L>::const_access;
  static any_lock erased(const guarded<T, L>& g) noexcept { return erase(g.lock_); }
  static hold adopt(const guarded<T, L>& g) noexcept {
    return g.wrap(std::unique_lock<L>(g.lock_, std::adopt_lock));
  }
};

template <class L>
concept locked_by_all = requires(L& l) {
  l.lock();
  { l.try_lock() } -> std::convertible_to<bool>;
  l.unlock();
} || is_guarded<L>;

template <class... L>
using holds_of = std::tuple<typename lock_all_member<L>::hold...>;

template <class... L>
auto erase_all(L&... locks) noexcept {
  return std::array<any_lock, sizeof...(L)>{lock_all_member<L>::erased(locks)...};
}
template <class... L>
holds_of<L...> adopt_all(L&... locks) noexcept {
  return holds_of<L...>(lock_all_member<L>::adopt(locks)...);
}

}  // namespace detail

// Blocks until all locks are held, within the limits. Returns an outcome of the tuple of holds.
template <detail::locked_by_all... L>
  requires(sizeof...(L) > 0)
[[nodiscard]] outcome<detail::holds_of<L...>> lock_all(const wait_limits& limits, L&... locks) {
  const auto set = detail::erase_all(locks...);
  if (const auto ended = detail::take_all(set, limits); !ended) return ended;
  return detail::adopt_all(locks...);
}

// Blocks until all locks are held. Returns the tuple of holds, in the order of the arguments.
template <detail::locked_by_all... L>
  requires(sizeof...(L) > 0)
[[nodiscard]] detail::holds_of<L...> lock_all(L&... locks) {
  return *lock_all(wait_limits{}, locks...);
}
// Never waits: `empty` if a lock is not free.
template <detail::locked_by_all... L>
  requires(sizeof...(L) > 0)
[[nodiscard]] outcome<detail::holds_of<L...>> try_lock_all(L&... locks) {
  const auto set = detail::erase_all(locks...);
  if (detail::try_all(set) != set.size()) return status::empty;
  return detail::adopt_all(locks...);
}

}  // namespace sluice
