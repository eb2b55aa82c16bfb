#pragma once

// Fan-out: passes the items of one source to several consumers, each item to all of them
// (`broadcast`), or to one of them (`distribute`). Fan-out may mean either, so no function has
// that name.
//
// Use `broadcast` when several parties each need the whole stream, `distribute` when they share
// the work but each must have its own bounded queue. Prefer one `bounded_queue` with several
// consumers if they need not be kept apart, and a `router` if the item decides its consumer.
//
// An end is a view of a channel (`receive_only<T>`, `send_only<T>`) or a pointer to a channel or a
// queue. A full consumer's queue follows its own policy: with block it slows the source down, with
// a drop policy it loses only its own items.
//
// Both are tasks: nothing flows until they are awaited, spawned or passed to `sync_wait`, and
// cancelling them ends them. They end when the source has ended, when every consumer has closed its
// end, or when they are cancelled, and then close all the ends; the result is the reason.
// Guarantees: each consumer gets its items in the order of the source. A consumer that closes its
// end is skipped from then on; in `distribute`, another consumer gets the item that it refused. An
// item that was taken from the source and that no consumer accepted (the last one closed, its queue
// rejects when it is full, or it was cancelled in between) goes to `on_undelivered`; in `broadcast`
// that is an item that not a single consumer got, also because their queues dropped it. At most one
// item (`distribute`: one for each consumer) is in transit.
// `on_undelivered` runs where the task runs: in `broadcast` one call at a time, in `distribute`, on
// an executor of several threads, perhaps on several at once.
// An exception from copying or moving an item ends the task: the ends are closed, and the exception
// thrown to the awaiting task. That item is lost, but an item that could not be copied and that no
// consumer has received is undelivered. An exception that leaves `on_undelivered` is written to
// standard error (docs/concepts/errors.md). A task that never began has closed nothing.
// Limits: at least one consumer; broadcast needs a T that can be copied.
// Cost: one coroutine (`distribute`: one for each consumer), no allocation an item beyond T's own.
//
//     const std::vector both{&screen, &archive};  // g++ 12 takes no braces in a co_await
//     co_await broadcast(&prices, both);
//     sync_wait(distribute(requests.receiver(), std::vector{left.sender(), right.sender()}));

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "sluice/base/check.hpp"
#include "sluice/flow/detail/flow_end.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/task_combinators.hpp"

namespace sluice {

template <class Source, class Sink>
task<flow_ended> broadcast(Source from, std::vector<Sink> sinks,
                           detail::undelivered<Source> on_undelivered = {}) {
  check(!sinks.empty(), "sluice::broadcast", "at least one consumer");
  const detail::closing<Sink> at_the_end(sinks);
  std::vector<bool> open(sinks.size(), true);
  std::size_t left = sinks.size();
  while (left > 0) {
    auto item = co_await detail::take_from(from);
    if (!item) co_return detail::end_reason(item.status());
    bool cancelled = false;
    bool delivered = false;
    std::exception_ptr failure;
    try {
      for (std::size_t i = 0; i < sinks.size() && !cancelled; ++i) {
        if (!open[i]) continue;
        auto copy = *item;
        const status pushed = co_await detail::push_to(sinks[i], copy);
        if (pushed == status::ok) delivered = true;
        if (pushed == status::stopped) cancelled = true;
        if (pushed == status::closed) {
          open[i] = false;
          --left;
        }
      }
    } catch (...) {
      failure = std::current_exception();
    }
    if (!delivered) {
      detail::report_undelivered("on_undelivered of broadcast", on_undelivered, *item);
    }
    if (failure != nullptr) std::rethrow_exception(failure);
    if (cancelled) co_return flow_ended::cancelled;
  }
  co_return flow_ended::no_consumer;
}

namespace detail {

// Passes items to `to[own]`; an item that it refuses goes to the first other consumer that takes
// it.
template <class Source, class Sink>
task<flow_ended> move_items_to(Source* from, std::vector<Sink>* sinks, std::size_t own,
                               undelivered<Source>* on_undelivered) {
  for (;;) {
    auto item = co_await take_from(*from);
    if (!item) co_return end_reason(item.status());
    status pushed = status::closed;
    for (std::size_t n = 0; n < sinks->size() && pushed == status::closed; ++n) {
      pushed = co_await push_to((*sinks)[(own + n) % sinks->size()], *item);
    }
    const bool is_delivered = pushed == status::ok || pushed == status::dropped;
    if (!is_delivered) report_undelivered("on_undelivered of distribute", *on_undelivered, *item);
    if (pushed == status::closed) throw no_consumer{};
    if (pushed == status::stopped) co_return flow_ended::cancelled;
  }
}

}  // namespace detail

template <class Source, class Sink>
task<flow_ended> distribute(Source from, std::vector<Sink> sinks,
                            detail::undelivered<Source> on_undelivered = {}) {
  check(!sinks.empty(), "sluice::distribute", "at least one consumer");
  const detail::closing<Sink> at_the_end(sinks);
  std::vector<task<flow_ended>> lines;
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    lines.push_back(detail::move_items_to<Source, Sink>(&from, &sinks, i, &on_undelivered));
  }
  auto ended = flow_ended::source_ended;
  try {
    for (const auto each : co_await when_all(std::move(lines))) {
      if (each != flow_ended::source_ended) ended = each;
    }
  } catch (const detail::no_consumer&) {
    ended = flow_ended::no_consumer;
  }
  co_return ended;
}

}  // namespace sluice
