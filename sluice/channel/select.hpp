#pragma once

// Waits for the first of several sends and receives that can proceed, does exactly that one, and
// returns its index.
//
// Guarantees: for threads and coroutines; any number of channels, in any mix, the same channel more
// than once. Fair: every ready case is equally likely. A case that was not chosen moved no item.
// A receive case is ready also when its channel is closed and drained, a send case when its channel
// is closed: the handler gets `closed`. A send case on a channel with `reject` is always ready, and
// may get `full`; on a channel that drops it is a broken contract. A case on a null end is never
// ready. The handler of the chosen case runs on the caller (for `async_select`: where the coroutine
// resumes) after every lock is released.
// Cancel safety: a select that timed out or was stopped moved no item.
// Cost: if a case is ready, one short lock; otherwise all channels are locked once, in address
// order, to join their lists of waiters. No allocation up to 16 cases.
// A select over null channels only, without deadline or stop, is a broken contract.
//
//     auto r = select(on_receive(orders, [&](outcome<order> o) { book(o); }),
//                     on_send(log, line, [&](status s) { note(s); }));
//     if (r.index == 0) ++booked;
//     r = try_select(on_receive(orders, book));    // never waits: `empty`, as Go's default
//     r = select(50ms, on_receive(orders, book));  // or timed_out
//     r = select(stop, on_receive(orders, book));  // or stopped
//     r = co_await async_select({}, on_receive(orders, book));
//
// Known problem: g++ 12 destroys a lambda twice if it is written inside a co_await expression and
// captures an object with a destructor. Name such a case first, and await a select of it.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/channel/channel.hpp"
#include "sluice/channel/detail/select_cases.hpp"
#include "sluice/channel/select_case.hpp"

namespace sluice {

struct [[nodiscard]] selected {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  sluice::status status = sluice::status::empty;  // ok: a case was chosen
  std::size_t index = none;                       // of the chosen case, from 0
  explicit operator bool() const noexcept { return static_cast<bool>(status); }
};

// A receive on a channel or a receive_only. The handler takes an outcome<T>.
template <class Channel, class Handler>
auto on_receive(Channel& source, Handler handler) {
  using T = typename Channel::value_type;
  return detail::receive_case<T, Handler>(receive_only<T>(source), std::move(handler));
}
template <class T, class Handler>
auto on_receive(receive_only<T>&& source, Handler handler) {
  return detail::receive_case<T, Handler>(source, std::move(handler));
}

// A send on a channel or a send_only. An lvalue item is moved from only if it is sent, and must
// stay valid during the select. The handler, if any, takes a status.
template <class Channel, class Item, class Handler>
auto on_send(Channel&& target, Item&& item, Handler handler) {
  using T = typename std::remove_cvref_t<Channel>::value_type;
  if constexpr (std::is_same_v<Item, T&>) {
    return detail::send_case<T, Handler>(send_only<T>(target), item, std::move(handler));
  } else {
    return detail::send_case<T, Handler>(send_only<T>(target), T(std::forward<Item>(item)),
                                 std::move(handler));
  }
}
template <class Channel, class Item>
auto on_send(Channel&& target, Item&& item) {
  return on_send(std::forward<Channel>(target), std::forward<Item>(item), [](status) {});
}

// The wait behind every form of select (see wait.hpp).
class select_op {
 public:
  explicit select_op(std::span<select_case* const> cases) noexcept : cases_(cases) {}

  bool ready() const noexcept;
  bool attempt();         // case by case
  bool attempt_atomic();  // false: at one moment, no case was ready
  enlisted enlist(waiter& waiting);
  bool woken();
  void retract();
  bool spins_linked() const noexcept;
  spin_budget& spin() noexcept;
  selected result(status ended);
  // Writes up to `max` subjects, any of which can end the wait. Returns their number.
  std::size_t wait_subject(wait_report::subject* out, std::size_t max) const noexcept;
  void check_can_end(const wait_limits& limits) const noexcept;

 private:
  class random_order;
  bool can_be_ready() const noexcept;
  void note_uses() const noexcept;
  enum class attempted : std::uint8_t { taken, not_ready, lock_busy };
  attempted attempt_case(std::size_t index, bool wait_for_lock);
  bool attempt_locked(random_order& order, wake_batch& wakes);  // all locks held
  void lock_all();
  void unlock_all();

  static constexpr std::size_t few = 16;

  std::span<select_case* const> cases_;
  std::size_t chosen_ = selected::none;
  waiter* waiter_ = nullptr;
  std::size_t lock_count_ = 0;               // 0: not sorted yet
  std::array<spin_lock*, few> few_locks_;    // the first lock_count_ are set
  std::vector<spin_lock*> many_locks_;       // used for more
};

// For a number of cases known only at run time.
selected select(const wait_limits& limits, std::span<select_case* const> cases);
selected try_select(std::span<select_case* const> cases);

template <class C>
concept select_alternative = std::derived_from<std::remove_cvref_t<C>, select_case>;

template <select_alternative... Cases>
selected select(const wait_limits& limits, Cases&&... cases) {
  const std::array<select_case*, sizeof...(Cases)> all{&cases...};
  return select(limits, std::span<select_case* const>(all));
}
template <select_alternative... Cases>
selected select(Cases&&... cases) {
  return select(wait_limits{}, cases...);
}
template <select_alternative... Cases>
selected try_select(Cases&&... cases) {
  const std::array<select_case*, sizeof...(Cases)> all{&cases...};
  return try_select(std::span<select_case* const>(all));
}

namespace detail {

// Keeps the list of cases in the awaitable; the cases live in the full expression.
template <std::size_t N>
class async_select_op : private std::array<select_case*, N>, public select_op {
  using list = std::array<select_case*, N>;

 public:
  explicit async_select_op(const list& cases)
      : list(cases), select_op(std::span<select_case* const>(static_cast<list&>(*this))) {}
};

}  // namespace detail

// co_await returns a `selected`. Await it in the full expression that makes the cases.
template <select_alternative... Cases>
auto async_select(wait_limits limits, Cases&&... cases) {
  constexpr auto count = sizeof...(Cases);
  const std::array<select_case*, count> all{&cases...};
  select_op(std::span<select_case* const>(all)).check_can_end(limits);
  return awaitable<detail::async_select_op<count>>(std::move(limits), all);
}

}  // namespace sluice
