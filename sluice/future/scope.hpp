#pragma once

// Structured concurrency: tasks and functions started inside a block end before the block does. The
// first failure stops the others and is thrown where the block ends.
//
// Use it for a number of tasks that is not known beforehand: one per connection, file or part.
// Prefer `when_all` for a fixed few, `spawn` for a task that may outlive the block.
//
//     task<> serve(channel<socket>& incoming, executor& pool) {
//       co_await with_scope(pool, [&](scope& s) -> task<> {
//         while (auto c = co_await incoming.async_receive()) s.start(talk(std::move(*c)));
//       });                                            // every talk has ended here
//     }
//
// - `with_scope(executor, body)` is awaited: runs the body as part of the awaiting task and resumes
//   when the body and all children have ended. `sync_scope(executor, body)` is the same for a plain
//   function, and blocks. A `scope` object that has started a child must be joined before it is
//   destroyed, also by an exception; otherwise a broken contract.
// - A child starts on the scope's executor as a submission (it counts against the capacity), with
//   the scope's priority: `with_scope({pool, 9}, body)`, `scope s(start_on{pool, 9})`. Its token is
//   the scope's, requested when the scope fails or is cancelled, or when the token in the options
//   (`with_scope`: also that of the awaiting task) is requested. Children may start siblings.
// - The first exception that leaves a child or the body is the scope's failure: it stops all
//   others, and `join` throws it when all have ended. A future_error::cancelled of a child whose
//   token was requested is no failure. A child that the executor refuses (full, closed) fails the
//   scope with future_error::rejected; a child that the executor drops or destroys unrun, with
//   future_error::broken_promise.
// - At most `max_children` at a time; then `start` waits, `try_start` returns full. A child started
//   after the scope was stopped is freed unrun.
//
// Guarantees: any thread may call anything except `join`, which one thread calls, once. When join
// returns, every frame is freed and every effect of a child is visible. Starting a child after join
// has ended is a broken contract. The executor must live until all children have ended; its
// destructor checks that.
// Limits: a child that waits in `start` waits for its siblings to end: use `async_start` or a
// larger max_children where all children start more.
// Cost: one allocation per child beside its frame; about 200 bytes per scope.

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

// It has constructors and no designated initialisers because g++ 12 destroys an aggregate temporary
// twice in a co_await expression. Write `scope_options(8)`, `scope_options(8, stop)` or
// `scope_options(8, stop, "uploads")`, or name an object and assign its members.
struct scope_options {
  scope_options() = default;
  scope_options(std::size_t children, std::stop_token token = {}, std::string label = {}) noexcept
      : max_children(children), stop(std::move(token)), name(std::move(label)) {}
  scope_options(std::stop_token token) noexcept : stop(std::move(token)) {}

  std::size_t max_children = 65'536;
  std::stop_token stop{};
  std::string name{};  // of its waits (for the end of children, for a free place), in wait reports
};

namespace detail {

// Calls a plain function inside a task, with the task's token if it takes one.
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

  // Starts a child. Waits for a place in the scope and, if the executor's policy is `block`, for
  // capacity there.
  void start(task<> child) { (void)start(std::move(child), wait_limits()); }
  template <detail::scope_function F>
  void start(F f) {
    start(detail::as_task(std::move(f)));
  }
  // Waits for a place within the limits; `try_start` does not wait. They move from `child` only if
  // they return ok (else full, timed_out, stopped).
  status start(task<>&& child, const wait_limits& limits) {
    return admit(core_.take_place(limits), child);
  }
  status try_start(task<>&& child) { return admit(core_.try_take_place(), child); }
  // co_await returns a status; if it is not ok, the child is destroyed.
  task<status> async_start(task<> child, wait_limits limits = {}) {
    co_return admit(co_await core_.async_take_place(std::move(limits)), child);
  }

  // The same, returning a future of the result; its `cancel` reaches only that child. If the scope
  // was stopped or the executor refuses the child, the future has that error.
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

  // Requests the children's stop_token; children started later do not run.
  void cancel() noexcept { core_.cancel(); }
  // The token of the children. The reference is valid as long as the scope.
  const std::stop_token& stop_token() const noexcept { return core_.token(); }
  // Sets the scope's failure, unless it has one, and cancels.
  void fail(std::exception_ptr why) noexcept { core_.fail(std::move(why)); }

  // Waits until all children have ended, then throws the failure, if any.
  void join(call_site at = {}) { (void)core_.join(at); }
  // At the deadline, or when the token is requested, cancels the children and still waits for all
  // of them, then returns timed_out or stopped.
  status join(const wait_limits& limits) { return core_.join(limits); }
  // co_await returns a status or throws the failure. The token of the awaiting task applies too.
  task<status> async_join(wait_limits limits = {}) { return core_.async_join(std::move(limits)); }

  std::size_t children() const noexcept { return core_.children(); }
  // Calls of `start` that wait for a place now.
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

// Runs the body as part of the awaiting task, with the scope's token.
template <class T, class Body>
task<T> run_in_scope(start_on where, Body body, scope_options o) {
  const linked_stop either(o.stop, co_await this_task::stop_token());
  o.stop = either.token();
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
