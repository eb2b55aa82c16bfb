#pragma once

// The words of a channel's two ends, written once for `channel`, `send_only` and `receive_only`.
//
// A null end (a default-constructed view) is never ready, as a nil channel in Go: a blocking call
// on it waits until its deadline or stop; one that could wait for ever is a broken contract, and so
// are the awaited and the batch calls, which need a channel.

#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/queue/exchange.hpp"
#include "sluice/queue/ring_store.hpp"

namespace sluice {

namespace detail {

// The exchange inside a channel.
template <class T>
class channel_core final : public exchange<T, ring_store<T>> {
  using base = exchange<T, ring_store<T>>;
  using store = ring_store<T>;

 public:
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "a channel moves items between two parties at once: T's move must not throw");

  explicit channel_core(queue_options<T>&& o, std::size_t capacity, std::size_t weight_max)
      : base("sluice::channel", std::move(o), base::zero_capacity::rendezvous, capacity,
             weight_max != 0 ? store::weights::kept : store::weights::none) {}
};

// A wait on nothing: only its limits end it.
class never_op {
 public:
  bool ready() const noexcept { return false; }
  bool attempt() const noexcept { return false; }
  enlisted enlist(waiter& who) noexcept {
    return who.commit() ? enlisted::waiting : enlisted::ended;
  }
  bool woken() const noexcept { return false; }
  void retract() const noexcept {}
  spin_budget& spin() noexcept { return spin_; }
  status result(status ended) const noexcept { return ended; }
  watch::subject about() const noexcept { return {nullptr, "sluice::channel", "null channel"}; }

 private:
  spin_budget spin_;
};

inline status wait_on_nothing(const wait_limits& limits) {
  check(!limits.deadline.is_never() || limits.stop.stop_possible(), "sluice::channel",
        "a deadline or a stop_token for a wait on a null channel, which would never end",
        limits.at);
  return block_on(never_op(), limits);
}

}  // namespace detail

// End provides `detail::channel_core<T>* core() const`.
template <class End, class T>
class send_calls {
 public:
  // Waits until received (capacity 0) or buffered. ok, closed; full or dropped if the policy says.
  status send(T&& item, call_site place = {}) {
    return at() ? at()->push(std::move(item), place) : within(item, place);
  }
  status send(const T& item, call_site place = {}) { return send(T(item), place); }
  status send(T&& item, std::stop_token stop, call_site place = {}) {
    return within(item, {{}, std::move(stop), place});
  }
  status send(const T& item, std::stop_token stop, call_site place = {}) {
    return send(T(item), std::move(stop), place);
  }

  // Never waits: full when there is neither room nor a receiver.
  status try_send(T&& item) {
    return at() ? at()->try_push(std::move(item)) : status(status::full);
  }
  status try_send(const T& item) { return try_send(T(item)); }

  template <class Rep, class Period>
  status try_send_for(T&& item, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}, call_site place = {}) {
    return within(item, {deadline::after(wait), std::move(stop), place});
  }
  template <class Rep, class Period>
  status try_send_for(const T& item, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}, call_site place = {}) {
    return try_send_for(T(item), wait, std::move(stop), place);
  }
  template <class Clock, class Duration>
  status try_send_until(T&& item, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}, call_site place = {}) {
    return within(item, {deadline::at(when), std::move(stop), place});
  }
  template <class Clock, class Duration>
  status try_send_until(const T& item, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}, call_site place = {}) {
    return try_send_until(T(item), when, std::move(stop), place);
  }
  // Moves from `item` only when it returns ok or dropped.
  status send_within(T& item, const wait_limits& limits) { return within(item, limits); }

  // co_await gives a status. An lvalue is moved from only on success and must stay in place.
  auto async_send(T& item, wait_limits limits = {}) {
    return core_of_awaited(limits.at).async_push(item, std::move(limits));
  }
  auto async_send(T&& item, wait_limits limits = {}) {
    return core_of_awaited(limits.at).async_push(std::move(item), std::move(limits));
  }

  batch_result send_all(std::span<T> items, const wait_limits& limits = {}) {
    return core_of_awaited(limits.at).push_all(items, limits);
  }

  // No more sends; what is buffered can still be received. False: it was closed already.
  bool close() { return at() != nullptr && at()->close(); }

 private:
  detail::channel_core<T>* at() const noexcept { return static_cast<const End&>(*this).core(); }
  detail::channel_core<T>& core_of_awaited(const call_site& place) const noexcept {
    check(at() != nullptr, "sluice::channel", "a channel to send to", place);
    return *at();
  }
  status within(T& item, const wait_limits& limits) {
    return at() ? at()->push_within(item, limits) : detail::wait_on_nothing(limits);
  }
};

template <class End, class T>
class receive_calls {
  static outcome<T> next(receive_calls& from, const call_site& at) { return from.receive(at); }

 public:
  // Waits for an item. closed: closed and drained.
  outcome<T> receive(call_site place = {}) { return at() ? at()->pop(place) : within(place); }
  outcome<T> receive(std::stop_token stop, call_site place = {}) {
    return within({{}, std::move(stop), place});
  }
  outcome<T> try_receive() { return at() ? at()->try_pop() : outcome<T>(status::empty); }

  template <class Rep, class Period>
  outcome<T> try_receive_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop = {},
                             call_site place = {}) {
    return within({deadline::after(wait), std::move(stop), place});
  }
  template <class Clock, class Duration>
  outcome<T> try_receive_until(std::chrono::time_point<Clock, Duration> when,
                               std::stop_token stop = {}, call_site place = {}) {
    return within({deadline::at(when), std::move(stop), place});
  }
  outcome<T> receive_within(const wait_limits& limits) { return within(limits); }

  // co_await gives an outcome<T>.
  auto async_receive(wait_limits limits = {}) {
    return core_of_awaited(limits.at).async_pop(std::move(limits));
  }

  outcome<std::vector<T>> receive_some(std::size_t max, const wait_limits& limits = {}) {
    return core_of_awaited(limits.at).pop_some(max, limits);
  }
  // co_await gives an outcome<std::vector<T>>.
  auto async_receive_some(std::size_t max, wait_limits limits = {}) {
    return core_of_awaited(limits.at).async_pop_some(max, std::move(limits));
  }

  // for (auto& item : channel) ... until it is closed and drained.
  using iterator = taking_iterator<receive_calls, T, &receive_calls::next>;
  iterator begin(call_site at = {}) { return iterator(*this, at); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  detail::channel_core<T>* at() const noexcept { return static_cast<const End&>(*this).core(); }
  detail::channel_core<T>& core_of_awaited(const call_site& place) const noexcept {
    check(at() != nullptr, "sluice::channel", "a channel to receive from", place);
    return *at();
  }
  outcome<T> within(const wait_limits& limits) {
    if (at() == nullptr) return detail::wait_on_nothing(limits);
    return at()->pop_within(limits);
  }
};

}  // namespace sluice
