#pragma once

// Makes a wait in the middle of a message reentrant: the actor handles other messages during it.
//
// A handler that is a coroutine has the exclusive turn: the next message is not begun until it
// ends. During a wait through `reentrant` other messages are handled, one at a time. When the
// result is ready, the handler resumes before the next message, as soon as no other handler has the
// exclusive turn. The actor's state may have changed meanwhile; nothing else is different. With
// nested or concurrent reentrant waits, as in a when_all, the turn is not exclusive until the
// outermost, or the last of them, has ended.
//
// Guarantees: gives the awaited operation's result or throws its exception. Only for a coroutine of
// an actor's handler, or a task that it awaits; any other call is a broken contract.
// Cost: a task.
//
//     task<> on(refresh) {
//       auto page = co_await reentrant(fetch(url_));   // get(), put() are served meanwhile
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
task<T> await_reentrant(Awaited awaited, call_site at) {
  handler_sink* const sink = co_await current_sink_query();
  check(sink != nullptr, "sluice::reentrant", "to be called in a handler that is a coroutine", at);
  sink->begin_reentrant();
  std::exception_ptr error;
  if constexpr (std::is_void_v<T>) {
    try {
      co_await std::move(awaited);
    } catch (...) {
      error = std::current_exception();
    }
    co_await exclusive_wait(*sink, at);
    if (error != nullptr) std::rethrow_exception(error);
  } else {
    std::optional<T> result;
    try {
      result.emplace(co_await std::move(awaited));
    } catch (...) {
      error = std::current_exception();
    }
    co_await exclusive_wait(*sink, at);
    if (error != nullptr) std::rethrow_exception(error);
    co_return *std::move(result);
  }
}

}  // namespace detail

template <class T>
task<T> reentrant(task<T> awaited, call_site at = {}) {
  return detail::await_reentrant<T>(std::move(awaited), at);
}
template <class T>
task<T> reentrant(future<T> awaited, call_site at = {}) {
  return detail::await_reentrant<T>(std::move(awaited), at);
}

}  // namespace sluice
