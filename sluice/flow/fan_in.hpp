#pragma once

// Merges several sources into one: `fan_in` takes from all of them at once, and ends when all have
// ended.
//
// Use it to move the results of several producers, each with its own bounded queue, to one
// consumer. Prefer one queue that all of them push to if they need not be kept apart.
//
// An end is a view of a channel (`receive_only<T>`, `send_only<T>`) or a pointer to a channel or a
// queue.
//
// It is a task: nothing flows until it is awaited, spawned or passed to `sync_wait`, and cancelling
// it ends it. It ends when every source has ended, when the consumer has closed its end, or when
// it is cancelled, and then closes that end; the result is the reason.
// Guarantees: the items of one source keep their order; no source waits behind another one. A full
// consumer slows all sources down. When the consumer has closed its end, no further item is taken.
// An item that was taken by then and could not be pushed, or that the consumer's queue rejected
// because it was full, goes to `on_undelivered`. That runs where the task runs: on an executor of
// several threads perhaps on several at once, for items of different sources.
// An exception from moving an item ends the task: the consumer's end is closed, and the exception
// thrown to the awaiting task; that item is lost. An exception that leaves `on_undelivered` is
// written to standard error (docs/concepts/errors.md).
// A task that never began has closed nothing.
// Cost: one coroutine a source, no allocation an item beyond T's own.
//
//     const std::vector both{&north, &south};  // g++ 12 takes no braces in a co_await
//     co_await fan_in(both, &all);

#include <utility>
#include <vector>

#include "sluice/flow/detail/flow_end.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/task_combinators.hpp"

namespace sluice {

namespace detail {

template <class Source, class Sink>
task<flow_ended> move_items(Source* from, Sink* sink, undelivered<Source>* on_undelivered) {
  for (;;) {
    auto item = co_await take_from(*from);
    if (!item) co_return end_reason(item.status());
    const status pushed = co_await push_to(*sink, *item);
    const bool is_delivered = pushed == status::ok || pushed == status::dropped;
    if (!is_delivered) report_undelivered("on_undelivered of fan_in", *on_undelivered, *item);
    if (pushed == status::closed) throw no_consumer{};
    if (pushed == status::stopped) co_return flow_ended::cancelled;
  }
}

}  // namespace detail

template <class Source, class Sink>
task<flow_ended> fan_in(std::vector<Source> from, Sink sink,
                        detail::undelivered<Source> on_undelivered = {}) {
  const detail::closing<Sink> at_the_end({&sink, 1});
  auto ended = flow_ended::source_ended;
  std::vector<task<flow_ended>> sources;
  for (auto& each : from) {
    sources.push_back(detail::move_items<Source, Sink>(&each, &sink, &on_undelivered));
  }
  try {
    for (const auto each : co_await when_all(std::move(sources))) {
      if (each != flow_ended::source_ended) ended = each;
    }
  } catch (const detail::no_consumer&) {
    ended = flow_ended::no_consumer;
  }
  co_return ended;
}

}  // namespace sluice
