#pragma once

// Fan-out: hands the items of one source to several consumers, every one to all of them
// (`broadcast`), or each to one of them (`distribute`). People mean either by fan-out, so no
// function has that name.
//
// Use `broadcast` when several parties each need the whole stream, `distribute` when they share
// the work but each must have a bounded line of its own. Prefer one `bounded_queue` with several
// consumers where they need not be told apart, and a `router` where it matters who gets what.
//
// An end is a view of a channel (`receive_only<T>`, `send_only<T>`) or a pointer to a channel or a
// queue. What happens when a consumer's line is full is up to that line: one that blocks slows the
// source down, one that drops loses items of its own alone.
//
// Both are tasks: nothing flows until they are awaited, spawned or given to `sync_wait`, and
// cancelling them ends them. They end when the source has ended, when every consumer has closed its
// line, or when they are cancelled, and then close all the lines; the result says which.
// Guarantees: each consumer gets its items in the order of the source. A consumer that closes its
// line is left out from then on; in `distribute`, the item that it refused goes to another. What
// was taken from the source and could be given to nobody (the last consumer closed, its line
// rejects when it is full, or it was cancelled in between) goes to `on_undelivered`; in `broadcast`
// that is an item that not one of the consumers has had, also because their lines dropped it. At
// most one item (`distribute`: one for each consumer) is on the way.
// `on_undelivered` runs where the task runs: in `broadcast` one call at a time, in `distribute`, on
// an executor of several threads, perhaps on several at once.
// An exception from copying or moving an item ends it: the lines are closed, and the exception
// thrown to the awaiting task. The item it came with is lost, but an item that could not be copied
// and that no consumer has received is undelivered. An exception that leaves `on_undelivered` is
// written to standard error (docs/concepts/errors.md).
// A task that never began has closed nothing.
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
task<flow_ended> broadcast(Source from, std::vector<Sink> to,
                           detail::undelivered<Source> on_undelivered = {}) {
  check(!to.empty(), "sluice::broadcast", "at least one consumer");
  const detail::closing<Sink> at_the_end(to);
  std::vector<bool> open(to.size(), true);
  std::size_t left = to.size();
  while (left > 0) {
    auto item = co_await detail::take_from(from);
    if (!item) co_return detail::why_none(item.status());
    bool cancelled = false;
    bool delivered = false;
    std::exception_ptr failure;
    try {
      for (std::size_t i = 0; i < to.size() && !cancelled; ++i) {
        if (!open[i]) continue;
        auto copy = *item;
        const status how = co_await detail::give_to(to[i], copy);
        if (how == status::ok) delivered = true;
        if (how == status::stopped) cancelled = true;
        if (how == status::closed) {
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

// Hands items on to `to[mine]`; one that it refuses, to whichever of the others takes it.
template <class Source, class Sink>
task<flow_ended> hand_on(Source* from, std::vector<Sink>* to, std::size_t mine,
                         undelivered<Source>* on_undelivered) {
  for (;;) {
    auto item = co_await take_from(*from);
    if (!item) co_return why_none(item.status());
    status how = status::closed;
    for (std::size_t n = 0; n < to->size() && how == status::closed; ++n) {
      how = co_await give_to((*to)[(mine + n) % to->size()], *item);
    }
    const bool is_gone = how == status::ok || how == status::dropped;
    if (!is_gone) report_undelivered("on_undelivered of distribute", *on_undelivered, *item);
    if (how == status::closed) throw no_consumer{};
    if (how == status::stopped) co_return flow_ended::cancelled;
  }
}

}  // namespace detail

template <class Source, class Sink>
task<flow_ended> distribute(Source from, std::vector<Sink> to,
                            detail::undelivered<Source> on_undelivered = {}) {
  check(!to.empty(), "sluice::distribute", "at least one consumer");
  const detail::closing<Sink> at_the_end(to);
  std::vector<task<flow_ended>> lines;
  for (std::size_t i = 0; i < to.size(); ++i) {
    lines.push_back(detail::hand_on<Source, Sink>(&from, &to, i, &on_undelivered));
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
