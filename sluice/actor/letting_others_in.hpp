#pragma once

// Awaits something in the middle of a message, and has other messages handled meanwhile.
//
// A handler that is a coroutine keeps the next message out until it ends. What it awaits through
// `letting_others_in` does not: others are handled, one at a time, until the result is there; then
// the handler goes on, before the next message, when no other handler is in the middle of one. So
// after it the actor's state may have changed, and nothing else is different. Inside of another
// one, or at once with it, as in a when_all: others are let in until the outermost, or the last of
// them, is done.
//
// Guarantees: gives and throws what the awaited does. Only in a coroutine of an actor's handler, or
// in a task that it awaits; anywhere else is a broken contract.
// Cost: a task.
//
//     task<> on(refresh) {
//       auto page = co_await letting_others_in(fetch(url_));   // get(), put() are served meanwhile
//       cache_ = std::move(page);
//     }

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/actor/detail/handler_run.hpp"
#include "sluice/base/call_site.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/task.hpp"

namespace sluice {

namespace detail {

template <class T, class Awaited>
task<T> await_letting_in(Awaited what, call_site at) {
  handler_sink* const sink = co_await own_sink_query();
  check(sink != nullptr, "sluice::letting_others_in", "to be in a handler that is a coroutine",
        at);
  sink->begin_letting_in();
  std::exception_ptr error;
  if constexpr (std::is_void_v<T>) {
    try {
      co_await std::move(what);
    } catch (...) {
      error = std::current_exception();
    }
    co_await floor_wait(*sink, at);
    if (error != nullptr) std::rethrow_exception(error);
  } else {
    std::optional<T> result;
    try {
      result.emplace(co_await std::move(what));
    } catch (...) {
      error = std::current_exception();
    }
    co_await floor_wait(*sink, at);
    if (error != nullptr) std::rethrow_exception(error);
    co_return *std::move(result);
  }
}

}  // namespace detail

template <class T>
task<T> letting_others_in(task<T> what, call_site at = {}) {
  return detail::await_letting_in<T>(std::move(what), at);
}
template <class T>
task<T> letting_others_in(future<T> what, call_site at = {}) {
  return detail::await_letting_in<T>(std::move(what), at);
}

}  // namespace sluice
