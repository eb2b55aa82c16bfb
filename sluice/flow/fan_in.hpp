#pragma once

// Merges several sources into one: `fan_in` takes from all of them at once, and ends when all have
// ended.
//
// Use it to bring the results of several producers, each with a bounded line of its own, to one
// consumer. Prefer one queue that all of them push to where they need not be told apart.
//
// An end is a view of a channel (`receive_only<T>`, `send_only<T>`) or a pointer to a channel or a
// queue.
//
// It is a task: nothing flows until it is awaited, spawned or given to `sync_wait`, and cancelling
// it ends it. It ends when every source has ended, when the consumer has closed its line, or when
// it is cancelled, and then closes that line; the result says which.
// Guarantees: the items of one source keep their order; none waits behind another source's. A full
// line slows all sources down. When the consumer has closed its line, nothing more is taken. What
// was taken by then and could not be given on, or was turned away because the line rejects when it
// is full, goes to `on_undelivered`. That runs where the task runs: on an executor of several
// threads perhaps on several at once, for items of different sources.
// An exception from moving an item ends it: the line is closed, and the exception thrown to the
// awaiting task; the item it came with is lost. An exception that leaves `on_undelivered` is
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
task<flow_ended> bring(Source* from, Sink* to, undelivered<Source>* on_undelivered) {
  for (;;) {
    auto item = co_await take_from(*from);
    if (!item) co_return why_none(item.status());
    const status how = co_await give_to(*to, *item);
    const bool is_gone = how == status::ok || how == status::dropped;
    if (!is_gone) report_undelivered("on_undelivered of fan_in", *on_undelivered, *item);
    if (how == status::closed) throw no_consumer{};
    if (how == status::stopped) co_return flow_ended::cancelled;
  }
}

}  // namespace detail

template <class Source, class Sink>
task<flow_ended> fan_in(std::vector<Source> from, Sink to,
                        detail::undelivered<Source> on_undelivered = {}) {
  const detail::closing<Sink> at_the_end({&to, 1});
  auto ended = flow_ended::source_ended;
  std::vector<task<flow_ended>> sources;
  for (auto& each : from) {
    sources.push_back(detail::bring<Source, Sink>(&each, &to, &on_undelivered));
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
