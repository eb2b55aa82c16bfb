#pragma once

// Hands items to a number of workers, each of which deals with one at a time, and lets workers join
// and leave while it runs, with nothing lost.
//
// Use it when who does the work matters: the same worker for the same key, the least loaded, the
// most urgent first. Prefer a `bounded_queue` with several consumers when anybody may do it, and a
// `thread_pool` when the work is a function.
//
// A worker has its own loop (`join()`, then `while (auto item = worker.next())`), or a handler
// that is called on an executor, one item at a time (`join(executor, handler)`). The handle that
// `join` gives is the worker: when it is destroyed, the worker leaves.
//
// Guarantees: any thread may push, join and look; one thread or coroutine at a time uses a worker's
// handle, though any may call its `leave`. Every accepted item is begun exactly once, or dropped by
// the policy, or handed back by `stop`. What a worker has not begun when it leaves goes to the
// others by the same rule, also beyond their capacity; while nobody is there, it waits for the next
// to join. Items of one producer that go to the same worker are begun in their order.
// By key: items of one key are begun in the order in which they were accepted, each after the one
// before it is finished, also when the key moves from one worker to another. A key is whatever 64
// bits `key` gives. Of k workers, one that joins takes about every (k+1)th key, one that leaves
// gives away only its own: the others keep theirs.
// Finished: a handler's item when the handler returns; a loop's when it asks for the next one, or
// when the worker's handle is destroyed.
// Full is an inbox that holds `capacity` items (all inboxes, where the rule may choose; by priority
// there is one for all, of `capacity` times the workers; with no worker, always). Then as
// `overflow` says; drop_oldest and latest drop from the inbox that the item would have gone to (by
// priority, the least urgent: its oldest, its newest). caller_runs is a broken contract.
// Shutdown: `close` refuses further items; when all have been begun, `next` says closed. `drain`
// also waits until they are finished; `stop` hands back those not begun. Neither from a handler,
// which would wait for itself: a broken contract. All workers must be gone before the router; what
// is left then is destroyed.
// An exception of a handler or of `on_drop` goes to `on_error` and changes nothing else. An
// exception of `key` or `priority` goes to the caller of push (docs/concepts/errors.md).
// Cost: one short lock for all; an allocation for each item; a push looks at every worker. Joining
// and leaving by key take time in proportion to what is queued.
//
//     router<order> desk({.rule = routing::by_key, .key = [](auto& o) { return o.account; }});
//     auto ann = desk.join(pool, [](order& o) { book(o); });
//     auto bob = desk.join(pool, [](order& o) { book(o); });
//     desk.push(std::move(o));                     // orders of one account are booked in order
//     bob.leave();                                 // ann goes on with his

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sluice/executor/detail/router_core.hpp"

namespace sluice {

template <class T>
struct router_options {
  routing rule = routing::round_robin;
  std::size_t capacity = 64;  // of each worker's inbox
  sluice::overflow overflow = sluice::overflow::block;
  std::string name = "router";
  std::size_t per_turn = 16;  // items handled before others of the executor come on
  std::function<std::uint64_t(const T&)> key{};      // for by_key
  std::function<std::int64_t(const T&)> priority{};  // for by_priority: larger is more urgent
  std::function<void(T&&)> on_drop{};                // sees what a policy dropped
  std::function<void(std::exception_ptr)> on_error{};  // empty: standard error
};

template <class T>
class router {
  using core_type = detail::router_core;
  struct cell final : detail::routed {
    explicit cell(T&& i) : item(std::move(i)) {}
    T item;
  };
  class push_op;
  class next_op;

 public:
  using options = router_options<T>;
  class worker;

  explicit router(options o)
      : key_(std::move(o.key)), priority_(std::move(o.priority)), core_(core_options(o)) {
    check_named((o.rule == routing::by_key) == static_cast<bool>(key_), "sluice::router",
                core_.name().c_str(), "a key exactly when it routes by key");
    check_named((o.rule == routing::by_priority) == static_cast<bool>(priority_), "sluice::router",
                core_.name().c_str(), "a priority exactly when it routes by priority");
  }

  // A worker with a loop of its own, and one whose handler runs on an executor, which outlives it.
  worker join() { return worker(core_.join(nullptr, {})); }
  template <class Handler>
  worker join(executor& on, Handler handler) {
    return worker(core_.join(&on, [h = std::move(handler)](detail::routed& item) mutable {
      h(static_cast<cell&>(item).item);
    }));
  }

  // Waits for room, as the policy says. ok, closed, full (reject), dropped.
  status push(T&& item) { return push_within(item, {}); }
  status push(const T& item) { return push(T(item)); }
  status push(T&& item, std::stop_token stop) { return push_within(item, std::move(stop)); }
  // Never waits.
  status try_push(T&& item) { return offer(item, nullptr); }
  status try_push(const T& item) { return try_push(T(item)); }
  template <class Rep, class Period>
  status try_push_for(T&& item, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}) {
    return push_within(item, {deadline::after(wait), std::move(stop)});
  }
  template <class Clock, class Duration>
  status try_push_until(T&& item, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}) {
    return push_within(item, {deadline::at(when), std::move(stop)});
  }
  // The general form. The item is the caller's again unless it returns ok or dropped.
  status push_within(T& item, const wait_limits& limits) { return offer(item, &limits); }
  // co_await gives a status. The item is lost if it is not ok.
  auto async_push(T item, wait_limits limits = {}) {
    return awaitable<push_op>(std::move(limits), *this, std::move(item));
  }

  // False: it was closed already.
  bool close() { return core_.close(); }
  bool is_closed() const noexcept { return core_.is_closed(); }
  // Closes, and waits until every item is finished. Somebody must be there to do them.
  void drain() {
    core_.check_outside();
    close();
    const auto ended = core_.wait_end({});
    check(static_cast<bool>(ended), "sluice::router", "an unlimited wait to end");
  }
  // Closes, asks those at work to stop (through stop_token), waits for them, and hands back what
  // had not been begun, in the order in which it was accepted.
  std::vector<T> stop() {
    core_.check_outside();
    std::vector<T> unstarted;
    for (auto& item : core_.stop()) unstarted.push_back(std::move(static_cast<cell&>(*item).item));
    return unstarted;
  }
  // Drains until a limit is reached, then stops. Empty: all is finished.
  std::vector<T> shutdown_within(const wait_limits& limits) {
    core_.check_outside();
    close();
    return core_.wait_end(limits) ? std::vector<T>() : stop();
  }
  // Waits until it is closed and every item is finished. ok, timed_out, stopped.
  status wait_ended(const wait_limits& limits = {}) {
    core_.check_outside();
    return core_.wait_end(limits);
  }
  auto async_wait_ended(wait_limits limits = {}) { return core_.async_wait_end(std::move(limits)); }
  std::stop_token stop_token() const noexcept { return core_.stop_token(); }

  // The id of the worker that a key belongs to right now; 0: nobody is there.
  std::uint64_t owner_of(std::uint64_t key) const { return core_.owner_of(key); }
  router_stats stats() const { return core_.stats(); }
  std::vector<router_worker_stats> workers() const { return core_.worker_stats(); }
  // How many wait for room right now.
  std::size_t waiting_to_push() const noexcept { return core_.waiting_to_push(); }
  const std::string& name() const noexcept { return core_.name(); }

 private:
  static core_type::options core_options(options& o) {
    std::function<void(detail::routed&)> on_drop;
    if (o.on_drop) {
      on_drop = [tell = std::move(o.on_drop)](detail::routed& item) {
        tell(std::move(static_cast<cell&>(item).item));
      };
    }
    return {.rule = o.rule,
            .capacity = o.capacity,
            .overflow = o.overflow,
            .name = std::move(o.name),
            .per_turn = o.per_turn,
            .on_drop = std::move(on_drop),
            .on_error = std::move(o.on_error)};
  }

  // The user's functions are called here, without the lock.
  detail::routed_ptr make_cell(T& item) {
    const auto key = key_ ? key_(item) : 0;
    const auto priority = priority_ ? priority_(item) : 0;
    auto made = std::make_unique<cell>(std::move(item));
    made->key = key;
    made->priority = priority;
    if (priority_) {
      detail::routed::by_urgency alone{made.get()};
      made->node = alone.extract(alone.begin());
    }
    return made;
  }

  status offer(T& item, const wait_limits* limits) {
    if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
    auto made = make_cell(item);
    core_type::push_op op(core_, made);
    const status how = op.attempt()         ? op.result(status::ok)
                       : limits == nullptr ? op.give_up()
                                           : op.result(wait_blocking(op, *limits));
    if (made != nullptr) item = std::move(static_cast<cell&>(*made).item);
    return how;
  }

  const std::function<std::uint64_t(const T&)> key_;
  const std::function<std::int64_t(const T&)> priority_;
  core_type core_;
};

template <class T>
class router<T>::push_op : private detail::routed_ptr, public core_type::push_op {
 public:
  push_op(router& r, T&& item)
      : detail::routed_ptr(r.make_cell(item)),
        core_type::push_op(r.core_, static_cast<detail::routed_ptr&>(*this)) {}
};

template <class T>
class router<T>::next_op : public core_type::next_op {
 public:
  using core_type::next_op::next_op;
  outcome<T> result(status ended) {
    auto got = core_type::next_op::result(ended);
    if (!got) return got.status();
    return std::move(static_cast<cell&>(**got).item);
  }
};

// A worker. Movable; empty when moved from.
template <class T>
class router<T>::worker {
 public:
  // Waits for an item; what it was given before is finished. ok, or closed: the router is closed
  // and all its items have been begun, or this worker has left.
  outcome<T> next() { return next_within({}); }
  outcome<T> next(std::stop_token stop) { return next_within(std::move(stop)); }
  outcome<T> try_next() {
    next_op op(member());
    if (op.attempt()) return op.result(status::ok);
    return status::empty;
  }
  template <class Rep, class Period>
  outcome<T> try_next_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop = {}) {
    return next_within({deadline::after(wait), std::move(stop)});
  }
  template <class Clock, class Duration>
  outcome<T> try_next_until(std::chrono::time_point<Clock, Duration> when,
                            std::stop_token stop = {}) {
    return next_within({deadline::at(when), std::move(stop)});
  }
  outcome<T> next_within(const wait_limits& limits) { return block_on(next_op(member()), limits); }
  // co_await gives an outcome<T>.
  auto async_next(wait_limits limits = {}) {
    return awaitable<next_op>(std::move(limits), member());
  }

  // Gives away what it has not begun, and waits for its handler if that is at work (not in one: a
  // broken contract). Its loop, if it has one, is told closed. Again: nothing.
  void leave() { member().core().leave(member()); }

  std::uint64_t id() const { return stats().id; }
  router_worker_stats stats() const { return member().core().stats_of(member()); }

 private:
  friend class router;
  explicit worker(std::unique_ptr<core_type::member> m) noexcept : member_(std::move(m)) {}
  core_type::member& member() const {
    check(member_ != nullptr, "sluice::router", "a worker that was not moved from");
    return *member_;
  }

  std::unique_ptr<core_type::member> member_;
};

}  // namespace sluice
