#pragma once

// Waits for the first of several sends and receives that can go ahead, does exactly that one, and
// tells which it was.
//
// Guarantees: threads and coroutines alike; any number of channels, any mix, the same channel more
// than once. Fair: among cases that are ready each is equally likely. A case that was not chosen
// consumed nothing and gave nothing. A receive case is ready also when its channel is closed and
// drained, a send case when its channel is closed: the handler hears `closed`. A send case on a
// channel that rejects is always ready, and may hear `full`; one on a channel that drops is a
// broken contract. A case on a null end is never ready. The handler of the chosen case runs on the
// caller (for `async_select`: where the coroutine resumes) after every lock is released.
// Cancel safety: a select that timed out or was stopped did nothing.
// Cost: ready at once, one short lock; otherwise all channels are locked once in address order to
// stand in every line. No allocation up to 16 cases.
// Waiting for nothing but null channels without deadline or stop is a broken contract.
//
//     auto r = select(on_receive(orders, [&](outcome<order> o) { book(o); }),
//                     on_send(log, line, [&](status s) { note(s); }));
//     if (r.index == 0) ++booked;
//     r = try_select(on_receive(orders, book));  // never waits: `empty`, as Go's default
//     r = try_select_for(50ms, on_receive(orders, book));  // or timed_out
//     r = select(stop, on_receive(orders, book));          // or stopped
//     r = co_await async_select({}, on_receive(orders, book));
//
// Known trouble: g++ 12 destroys twice a lambda that stands inside a co_await expression and holds
// anything with a destructor. Make such a case before, by name, and await a select of it.

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/channel/channel.hpp"
#include "sluice/channel/select_case.hpp"

namespace sluice {

struct [[nodiscard]] selected {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  sluice::status status = sluice::status::empty;  // ok: a case was chosen
  std::size_t index = none;                       // which, counted from 0
  explicit operator bool() const noexcept { return static_cast<bool>(status); }
};

// A receive on a channel or a receive_only. The handler takes an outcome<T>.
template <class Channel, class Handler>
auto on_receive(Channel& from, Handler handler) {
  using T = typename Channel::value_type;
  return receive_case<T, Handler>(receive_only<T>(from), std::move(handler));
}
template <class T, class Handler>
auto on_receive(receive_only<T>&& from, Handler handler) {
  return receive_case<T, Handler>(from, std::move(handler));
}

// A send on a channel or a send_only. An lvalue item stays the caller's unless it is sent; it must
// stay in place during the select. The handler, if any, takes a status.
template <class Channel, class Item, class Handler>
auto on_send(Channel&& to, Item&& item, Handler handler) {
  using T = typename std::remove_cvref_t<Channel>::value_type;
  if constexpr (std::is_same_v<Item, T&>) {
    return send_case<T, Handler>(send_only<T>(to), item, std::move(handler));
  } else {
    return send_case<T, Handler>(send_only<T>(to), T(std::forward<Item>(item)),
                                 std::move(handler));
  }
}
template <class Channel, class Item>
auto on_send(Channel&& to, Item&& item) {
  return on_send(std::forward<Channel>(to), std::forward<Item>(item), [](status) {});
}

// The wait behind every form of select (see wait.hpp).
class select_op {
 public:
  explicit select_op(std::span<select_case* const> cases) noexcept : cases_(cases) {}

  bool ready() const noexcept;
  bool attempt();                // case by case
  bool attempt_at_one_moment();  // false: there was a moment at which none was ready
  enlisted enlist(waiter& who);
  bool woken();
  void retract();
  bool spins_linked() const noexcept;
  spin_budget& spin() noexcept;
  selected result(status ended);
  // Any of these ends the wait.
  std::size_t about(watch::subject* out, std::size_t room) const noexcept;
  void check_can_end(const wait_limits& limits) const noexcept;

 private:
  class random_order;
  bool can_be_ready() const noexcept;
  void note_uses() const noexcept;
  enum class looked : std::uint8_t { well, in_vain, away };  // away: its lock was in use
  looked attempt_case(std::size_t index, bool wait_for_lock);
  bool attempt_locked(random_order& order, wake_batch& wakes);  // all locks held
  void lock_all();
  void unlock_all();

  static constexpr std::size_t few = 16;

  std::span<select_case* const> cases_;
  std::size_t chosen_ = selected::none;
  waiter* who_ = nullptr;
  std::size_t lock_count_ = 0;               // 0: not sorted yet
  std::array<spin_lock*, few> few_locks_;    // the first lock_count_ are set
  std::vector<spin_lock*> many_locks_;       // in their place for more
};

// For a number of cases known at run time.
selected select_within(const wait_limits& limits, std::span<select_case* const> cases);
selected try_select(std::span<select_case* const> cases);

template <class C>
concept select_alternative = std::derived_from<std::remove_cvref_t<C>, select_case>;

template <select_alternative... Cases>
selected select_within(const wait_limits& limits, Cases&&... cases) {
  const std::array<select_case*, sizeof...(Cases)> all{&cases...};
  return select_within(limits, std::span<select_case* const>(all));
}
template <select_alternative... Cases>
selected select(Cases&&... cases) {
  return select_within(wait_limits{}, cases...);
}
template <select_alternative... Cases>
selected select(std::stop_token stop, Cases&&... cases) {
  return select_within(wait_limits{{}, std::move(stop)}, cases...);
}
template <select_alternative... Cases>
selected try_select(Cases&&... cases) {
  const std::array<select_case*, sizeof...(Cases)> all{&cases...};
  return try_select(std::span<select_case* const>(all));
}
template <class Rep, class Period, select_alternative... Cases>
selected try_select_for(std::chrono::duration<Rep, Period> wait, Cases&&... cases) {
  return select_within(wait_limits{deadline::after(wait), {}}, cases...);
}
template <class Clock, class Duration, select_alternative... Cases>
selected try_select_until(std::chrono::time_point<Clock, Duration> when, Cases&&... cases) {
  return select_within(wait_limits{deadline::at(when), {}}, cases...);
}

namespace detail {

// Keeps the list of cases in the awaitable; the cases themselves live in the full expression.
template <std::size_t N>
class async_select_op : private std::array<select_case*, N>, public select_op {
  using list = std::array<select_case*, N>;

 public:
  explicit async_select_op(const list& cases)
      : list(cases), select_op(std::span<select_case* const>(static_cast<list&>(*this))) {}
};

}  // namespace detail

// co_await gives a `selected`. Await it in the expression that makes the cases.
template <select_alternative... Cases>
auto async_select(wait_limits limits, Cases&&... cases) {
  constexpr auto count = sizeof...(Cases);
  const std::array<select_case*, count> all{&cases...};
  select_op(std::span<select_case* const>(all)).check_can_end(limits);
  return awaitable<detail::async_select_op<count>>(std::move(limits), all);
}

}  // namespace sluice
