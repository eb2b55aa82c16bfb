#pragma once

// Every form of send and receive, written once for `channel`, `send_only` and `receive_only`.
//
// A null end (a default-constructed view) is never ready, as a nil channel in Go: a blocking call
// on it waits until its deadline or stop. A call without either is a broken contract, and so are
// the awaited and the batch calls, which need a channel.

#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/queue/detail/queue_core.hpp"
#include "sluice/queue/detail/ring_store.hpp"

namespace sluice::detail {

// The queue core inside a channel.
template <class T>
class channel_core final : public queue_core<T, ring_store<T>> {
  using base = queue_core<T, ring_store<T>>;
  using store = ring_store<T>;

 public:
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "a channel moves items between two parties at once: T's move must not throw");

  explicit channel_core(queue_options<T>&& o, std::size_t capacity, std::size_t weight_max)
      : base("sluice::channel", std::move(o), base::zero_capacity::rendezvous, capacity,
             weight_max != 0 ? store::weights::kept : store::weights::none) {}
};

// A wait on a null end: only its limits end it.
class never_op {
 public:
  bool ready() const noexcept { return false; }
  bool attempt() const noexcept { return false; }
  enlisted enlist(waiter& waiting) noexcept {
    return waiting.commit() ? enlisted::waiting : enlisted::ended;
  }
  bool woken() const noexcept { return false; }
  void retract() const noexcept {}
  spin_budget& spin() noexcept { return spin_; }
  status result(status ended) const noexcept { return ended; }
  wait_report::subject wait_subject() const noexcept {
    return {nullptr, "sluice::channel", "null channel"};
  }

 private:
  spin_budget spin_;
};

inline status wait_on_null(const wait_limits& limits) {
  check(!limits.deadline.is_never() || limits.stop.stop_possible(), "sluice::channel",
        "a deadline or a stop_token for a wait on a null channel, which would never end",
        limits.at);
  return block_on(never_op(), limits);
}

// End provides `channel_core<T>* core() const`.
template <class End, class T>
class channel_sends {
 public:
  // Waits until the item is received (capacity 0) or buffered. Returns ok, closed, or by the
  // overflow policy full or dropped. Moves from `item` only on ok and dropped.
  status send(T&& item, call_site at = {}) {
    return core() ? core()->push(std::move(item), at) : wait_on_null(at);
  }
  status send(const T& item, call_site at = {}) { return send(T(item), at); }
  // Within the limits; then also timed_out and stopped.
  status send(T&& item, const wait_limits& limits) {
    return core() ? core()->push(std::move(item), limits) : wait_on_null(limits);
  }
  status send(const T& item, const wait_limits& limits) { return send(T(item), limits); }

  // Never waits: returns full if there is neither capacity nor a waiting receiver.
  status try_send(T&& item) {
    return core() ? core()->try_push(std::move(item)) : status(status::full);
  }
  status try_send(const T& item) { return try_send(T(item)); }

  // co_await returns a status. `item` must stay valid until then; moved from only on success.
  auto async_send(T& item, wait_limits limits = {}) {
    return checked_core(limits.at).async_push(item, std::move(limits));
  }
  auto async_send(T&& item, wait_limits limits = {}) {
    return checked_core(limits.at).async_push(std::move(item), std::move(limits));
  }

  batch_result send_all(std::span<T> items, const wait_limits& limits = {}) {
    return checked_core(limits.at).push_all(items, limits);
  }

  // Stops sends; buffered items can still be received. Returns false if it was closed already.
  bool close() { return core() != nullptr && core()->close(); }

 private:
  channel_core<T>* core() const noexcept { return static_cast<const End&>(*this).core(); }
  channel_core<T>& checked_core(const call_site& at) const noexcept {
    check(core() != nullptr, "sluice::channel", "a channel to send to", at);
    return *core();
  }
};

template <class End, class T>
class channel_receives {
  static outcome<T> next(channel_receives& from, const call_site& at) { return from.receive(at); }

 public:
  // Waits for an item. Returns `closed` once the channel is closed and drained.
  outcome<T> receive(call_site at = {}) {
    return core() ? core()->pop(at) : outcome<T>(wait_on_null(at));
  }
  // Within the limits; then also timed_out and stopped.
  outcome<T> receive(const wait_limits& limits) {
    return core() ? core()->pop(limits) : outcome<T>(wait_on_null(limits));
  }
  // Never waits: `empty` if there is no item.
  outcome<T> try_receive() { return core() ? core()->try_pop() : outcome<T>(status::empty); }

  // co_await returns an outcome<T>.
  auto async_receive(wait_limits limits = {}) {
    return checked_core(limits.at).async_pop(std::move(limits));
  }

  // Waits for one item, then takes further available items, `max` in all.
  outcome<std::vector<T>> receive_some(std::size_t max, const wait_limits& limits = {}) {
    return checked_core(limits.at).pop_some(max, limits);
  }
  // co_await returns an outcome<std::vector<T>>.
  auto async_receive_some(std::size_t max, wait_limits limits = {}) {
    return checked_core(limits.at).async_pop_some(max, std::move(limits));
  }

  // for (auto& item : channel) takes items until the channel is closed and drained.
  using iterator = taking_iterator<channel_receives, T, &channel_receives::next>;
  iterator begin(call_site at = {}) { return iterator(*this, at); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  channel_core<T>* core() const noexcept { return static_cast<const End&>(*this).core(); }
  channel_core<T>& checked_core(const call_site& at) const noexcept {
    check(core() != nullptr, "sluice::channel", "a channel to receive from", at);
    return *core();
  }
};

}  // namespace sluice::detail
