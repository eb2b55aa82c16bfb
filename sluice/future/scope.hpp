#pragma once

// Keeps tasks and functions that run at once inside one block of code: none outlives it, the first
// failure stops the rest, and it is thrown where the block ends.
//
// Use it whenever work is started whose number is not known beforehand: a task for each connection,
// each file, each part. Prefer `when_all` for a fixed few, `spawn` for what may outlive everything
// here.
//
//     task<> serve(channel<socket>& incoming, executor& pool) {
//       co_await with_scope(pool, [&](scope& s) -> task<> {
//         while (auto c = co_await incoming.async_receive()) s.start(talk(std::move(*c)));
//       });                                            // every talk has ended here
//     }
//
// - `with_scope(executor, body)` is awaited: runs the body as part of the awaiting task and goes on
//   when the body and all children have ended. `sync_scope(executor, body)` is the same for a plain
//   function, and blocks. A `scope` of your own that has started a child must be joined before it
//   is destroyed, also by an exception: a broken contract otherwise.
// - A child starts on the scope's executor, as a submission (so against its bound), with the
//   scope's priority: `with_scope({pool, 9}, body)`, `scope s(start_on{pool, 9})`. It hears the
//   scope's token, which asks when the scope fails, is cancelled, or when the token in the options
//   (`with_scope`: also that of the awaiting task) asks. Children may start siblings.
// - The first exception that leaves a child, or the body, is the scope's failure: it asks all
//   others to stop, and `join` throws it when all have ended. A future_error::cancelled of a child
//   that was asked to stop is no failure. A child whose executor refuses it (full, closed)
//   fails the scope with future_error::rejected, one that it takes and then drops, or is destroyed
//   with, with future_error::broken_promise.
// - At most `max_children` at a time; then `start` waits, `try_start` says full. A child started
//   after the scope was asked to stop is freed unrun.
//
// Guarantees: any thread may call anything but `join`, which one calls, once. When join returns,
// every frame is freed and every effect of a child is seen. Starting a child after join has ended
// is a broken contract. The executor must live until all children have ended, which its destructor
// checks.
// Limits: a child that waits in `start` for room waits for its siblings, not for itself: use
// `async_start` or a larger bound where all of them start more.
// Cost: one allocation a child beside its frame; about 200 bytes a scope.

#include <cstddef>
#include <exception>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/linked_stop.hpp"
#include "sluice/future/detail/scope_core.hpp"
#include "sluice/future/detail/spawned_task.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/start_on.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/this_task.hpp"

namespace sluice {

// With constructors, because g++ 12 destroys an aggregate temporary twice when it stands in a
// co_await expression.
struct scope_options {
  scope_options() = default;
  scope_options(std::size_t most, std::stop_token asked = {}) noexcept
      : max_children(most), stop(std::move(asked)) {}
  scope_options(std::stop_token asked) noexcept : stop(std::move(asked)) {}

  std::size_t max_children = 65'536;
  std::stop_token stop{};
  std::string name{};  // of the waits for its children, and for room for another
};

namespace detail {

// A plain function as a task. It is given the task's token if it takes one.
template <class F>
auto call_in_task(F& f, const std::stop_token& stop) {
  if constexpr (std::is_invocable_v<F&, std::stop_token>) {
    return f(stop);
  } else {
    return f();
  }
}
template <class F>
concept scope_function = std::is_invocable_v<F&> || std::is_invocable_v<F&, std::stop_token>;
template <class F>
using scope_result_t =
    decltype(call_in_task(std::declval<F&>(), std::declval<const std::stop_token&>()));

template <class F>
task<scope_result_t<F>> as_task(F f) {
  co_return call_in_task(f, co_await this_task::stop_token());
}

}  // namespace detail

class scope;

namespace detail {
template <class T, class Body>
task<T> run_in_scope(start_on where, Body body, scope_options o);
}

class scope {
 public:
  using options = scope_options;

  explicit scope(start_on where, options o = {})
      : core_(where, o.max_children, o.stop, named(o.name)) {}

  // Starts a child, waiting for room (of the scope, and as the executor's policy says).
  void start(task<> child) { (void)start_within(child, {}); }
  template <detail::scope_function F>
  void start(F f) {
    start(detail::as_task(std::move(f)));
  }
  // Waits for room within the limits; `try_start` does not. Not ok (full, timed out, stopped): the
  // child is still with the caller.
  status start_within(task<>& child, const wait_limits& limits) {
    return admit(core_.take_place(limits), child);
  }
  status try_start(task<>& child) { return admit(core_.try_take_place(), child); }
  // co_await gives a status. The child is lost when it is not ok.
  task<status> async_start(task<> child, wait_limits limits = {}) {
    co_return admit(co_await core_.async_take_place(std::move(limits)), child);
  }

  // The same with a future of the result; its `cancel` reaches that child alone. When the scope has
  // been asked to stop, or its executor does not take it, the future says so.
  template <class T>
  future<T> spawn(task<T> child) {
    return admit_spawned(core_.take_place({}), std::move(child));
  }
  template <detail::scope_function F>
  auto spawn(F f) {
    return spawn(detail::as_task(std::move(f)));
  }
  template <class T>
  task<future<T>> async_spawn(task<T> child) {
    co_return admit_spawned(co_await core_.async_take_place({}), std::move(child));
  }

  // Asks all children to stop, and those that would be started later.
  void cancel() noexcept { core_.cancel(); }
  // The token they hear. The reference holds as long as the scope.
  const std::stop_token& stop_token() const noexcept { return core_.token(); }
  // Makes this the scope's failure, unless it has one, and cancels.
  void fail(std::exception_ptr why) noexcept { core_.fail(std::move(why)); }

  // Waits until no child is left, then throws the failure, if any.
  void join(call_site at = {}) { (void)core_.join_within(at); }
  // At the deadline, or when the token asks, the children are asked to stop and waited for all the
  // same; then it says timed_out or stopped.
  status join_within(const wait_limits& limits) { return core_.join_within(limits); }
  // co_await gives a status, or throws the failure. The token of the awaiting task counts, too.
  task<status> async_join(wait_limits limits = {}) { return core_.async_join(std::move(limits)); }

  std::size_t children() const noexcept { return core_.children(); }
  // How many wait for room right now.
  std::size_t waiting_to_start() const noexcept { return core_.waiting_to_start(); }
  executor& runs_on() const noexcept { return core_.runs_on(); }

 private:
  template <class T, class Body>
  friend task<T> detail::run_in_scope(start_on where, Body body, scope_options o);
  template <class Body>
  friend auto sync_scope(start_on where, Body body, scope_options o);

  status admit(status place, task<>& child) {
    if (place) core_.submit(detail::scope_child::make(core_, child));
    return place;
  }

  template <class T>
  future<T> admit_spawned(status place, task<T> child) {
    if (!place) return make_failed_future<T>(future_error(future_error::cancelled));
    detail::spawned_task<T>* made = nullptr;
    try {
      made = new detail::spawned_task<T>(core_, std::move(child));
    } catch (...) {
      core_.give_place_back();
      throw;
    }
    future<T> result = made->get_future();
    core_.submit(*made);
    return result;
  }

  detail::scope_core core_;
};

namespace detail {

// The body as part of the awaiting task: it hears the scope's token.
template <class T, class Body>
task<T> run_in_scope(start_on where, Body body, scope_options o) {
  const linked_stop asked(o.stop, co_await this_task::stop_token());
  o.stop = asked.token();
  scope s(where, std::move(o));
  settled<T> result{typename settled<T>::unset_t{}};
  try {
    task<T> running = body(s);
    if constexpr (std::is_void_v<T>) {
      co_await await_with(std::move(running), s.stop_token());
      result.construct([] {});
    } else {
      T made = co_await await_with(std::move(running), s.stop_token());
      result.construct([&]() -> T { return static_cast<T&&>(made); });
    }
  } catch (...) {
    result.fail(std::current_exception());
  }
  s.core_.failed(result.error(), s.stop_token());
  co_await s.core_.async_join_unstopped();
  co_return std::move(result).value();
}

}  // namespace detail

template <class Body>
auto with_scope(start_on where, Body body, scope_options o = {}) {
  using made = std::invoke_result_t<Body&, scope&>;
  return detail::run_in_scope<typename made::value_type>(where, std::move(body), std::move(o));
}

template <class Body>
auto sync_scope(start_on where, Body body, scope_options o) {
  using made = std::invoke_result_t<Body&, scope&>;
  scope s(where, std::move(o));
  settled<made> result{typename settled<made>::unset_t{}};
  try {
    result.construct([&]() -> made { return body(s); });
  } catch (...) {
    result.fail(std::current_exception());
  }
  s.core_.failed(result.error(), s.stop_token());
  s.join();
  return made(std::move(result).value());
}
template <class Body>
auto sync_scope(start_on where, Body body) {
  return sync_scope(where, std::move(body), scope_options());
}

}  // namespace sluice
