#pragma once

// Distributes items to workers, each of which handles one item at a time. Workers may join and
// leave while it runs; no item is lost.
//
// Use it when the choice of the worker matters: the same worker for the same key, the least loaded,
// the most urgent item first. Prefer a `bounded_queue` with several consumers when any worker will
// do, and a `thread_pool` when the work is a function.
//
// A worker has its own loop (`join()`, then `while (auto item = worker.next())`), or a handler
// that is called on an executor, one item at a time (`join(executor, handler)`). `join` returns the
// worker as a handle; destroying the handle makes the worker leave.
//
// Guarantees: any thread may push, join and read statistics; one thread or coroutine at a time uses
// a worker's handle, though any may call its `leave`. Every accepted item is begun exactly once, or
// dropped by the policy, or returned by `stop`. Items that a leaving worker has not begun go to the
// others by the same rule, even beyond their capacity; without workers, they wait for the next
// join. Items of one producer that go to the same worker are begun in their order.
// By key: items of one key begin in order of acceptance, each after the previous one is finished,
// also when the key moves to another worker. A key is the 64 bits that `key` returns. With k
// workers, a joining worker takes about every (k+1)th key; a leaving one gives away only its own.
// An item is finished when the handler returns, or when the loop calls `next` again or its handle
// is destroyed.
// An inbox is full at `capacity` items. If the rule may choose, the router is full when all inboxes
// are. By priority there is one inbox of `capacity` times the workers. Without workers it is full.
// When full, `overflow` decides; drop_oldest and latest drop from the inbox of the item (by
// priority, the oldest or newest of the least urgent). caller_runs is a broken contract.
// Shutdown: `close` refuses items; when all have begun, `next` returns closed. `drain` also waits
// until they are finished; `stop` returns those not begun. A handler that calls either would wait
// for itself: a broken contract. All workers must be destroyed before the router; items left then
// are destroyed. An exception of a handler or of `on_drop` goes to `on_error` and changes nothing
// else; one of `key` or `priority` goes to the caller of push (docs/concepts/errors.md).
// Cost: one short lock for all; one allocation per item; a push is O(workers). Joining and leaving
// by key is O(queued items).
//
//     router<order> desk({.rule = routing::by_key, .key = [](auto& o) { return o.account; }});
//     auto ann = desk.join(pool, [](order& o) { book(o); });
//     auto bob = desk.join(pool, [](order& o) { book(o); });
//     (void)desk.push(std::move(o));               // orders of one account are booked in order
//     bob.leave();                                 // ann gets his items

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
  std::size_t per_turn = 16;  // items handled before a worker requeues itself in its executor
  std::function<std::uint64_t(const T&)> key{};      // for by_key
  std::function<std::int64_t(const T&)> priority{};  // for by_priority: larger is more urgent
  std::function<void(T&&)> on_drop{};                // called with dropped items
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

  // Adds a worker with its own loop, or one whose handler runs on an executor. The executor must
  // outlive the worker.
  worker join() { return worker(core_.join(nullptr, {})); }
  template <class Handler>
  worker join(executor& on, Handler handler) {
    return worker(core_.join(&on, [h = std::move(handler)](detail::routed& item) mutable {
      h(static_cast<cell&>(item).item);
    }));
  }

  // Waits for capacity if the policy is `block`. Returns ok, closed, full (reject), dropped,
  // timed_out or stopped. Moves from `item` only if it returns ok or dropped.
  status push(T&& item, const wait_limits& limits = {}) { return offer(item, &limits); }
  status push(const T& item, const wait_limits& limits = {}) { return push(T(item), limits); }
  // The same without waiting.
  status try_push(T&& item) { return offer(item, nullptr); }
  status try_push(const T& item) { return try_push(T(item)); }
  // co_await returns a status; if it is not ok, the item is destroyed.
  auto async_push(T item, wait_limits limits = {}) {
    return awaitable<push_op>(std::move(limits), *this, std::move(item));
  }

  // Returns false if it was closed already.
  bool close() { return core_.close(); }
  bool is_closed() const noexcept { return core_.is_closed(); }
  // Closes, and waits until every item is finished. If items are queued, it needs a worker.
  void drain() {
    core_.check_outside();
    close();
    const auto ended = core_.wait_end({});
    check(static_cast<bool>(ended), "sluice::router",
          "a wait without limits to last until all items are finished");
  }
  // Closes, requests stop_token, waits for the items that have begun, and returns the others in
  // the order of acceptance.
  std::vector<T> stop() {
    core_.check_outside();
    std::vector<T> unstarted;
    for (auto& item : core_.stop()) unstarted.push_back(std::move(static_cast<cell&>(*item).item));
    return unstarted;
  }
  // Drains until a limit is reached, then stops. Returns an empty vector if all are finished.
  std::vector<T> shutdown(const wait_limits& limits) {
    core_.check_outside();
    close();
    return core_.wait_end(limits) ? std::vector<T>() : stop();
  }
  // Waits until it is closed and every item is finished. Returns ok, timed_out or stopped.
  status wait_ended(const wait_limits& limits = {}) {
    core_.check_outside();
    return core_.wait_end(limits);
  }
  auto async_wait_ended(wait_limits limits = {}) { return core_.async_wait_end(std::move(limits)); }
  std::stop_token stop_token() const noexcept { return core_.stop_token(); }

  // Returns the id of the worker that owns a key now; 0 if there are no workers.
  std::uint64_t owner_of(std::uint64_t key) const { return core_.owner_of(key); }
  router_stats stats() const { return core_.stats(); }
  std::vector<router_worker_stats> workers() const { return core_.worker_stats(); }
  // Producers that wait for capacity now.
  std::size_t waiting_to_push() const noexcept { return core_.waiting_to_push(); }
  const std::string& name() const noexcept { return core_.name(); }

 private:
  static core_type::options core_options(options& o) {
    std::function<void(detail::routed&)> on_drop;
    if (o.on_drop) {
      on_drop = [callback = std::move(o.on_drop)](detail::routed& item) {
        callback(std::move(static_cast<cell&>(item).item));
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

  // Calls the user's functions, without the lock.
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
    const status result = op.attempt()        ? op.result(status::ok)
                          : limits == nullptr ? op.give_up()
                                              : op.result(wait_blocking(op, *limits));
    if (made != nullptr) item = std::move(static_cast<cell&>(*made).item);
    return result;
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
  // Finishes the previous item and waits for the next. Returns closed if the router is closed and
  // all its items have begun, or if this worker has left; else timed_out or stopped.
  outcome<T> next(const wait_limits& limits = {}) { return block_on(next_op(member()), limits); }
  outcome<T> try_next() {
    next_op op(member());
    if (op.attempt()) return op.result(status::ok);
    return status::empty;
  }
  // co_await returns an outcome<T>.
  auto async_next(wait_limits limits = {}) {
    return awaitable<next_op>(std::move(limits), member());
  }

  // Gives its items that have not begun to other workers and waits for its handler if it is
  // running (a broken contract inside a handler). Its loop's `next` returns closed. A second call
  // does nothing.
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
