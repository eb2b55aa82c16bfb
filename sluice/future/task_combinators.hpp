#pragma once

// Runs several tasks concurrently and resumes when all have ended, or the first has; or runs one
// task within limits.
//
// Use these when the tasks are known where they start; `scope` when tasks are added over time. The
// names and results are those of the same functions for futures. In asyncio: gather is `when_all`
// (with return_exceptions `when_all_settled`), wait(FIRST_COMPLETED) is `when_any`, wait_for is
// `within`, TaskGroup is `scope`.
//
// - `when_all` returns all values, in order: a tuple (std::monostate for void, a
//   std::reference_wrapper for a reference), or for a vector of tasks a vector, or nothing. The
//   first exception stops the others and is thrown. `when_all_settled` stops none and returns a
//   `settled` for each.
// - `when_any` returns the first task to end: its index and its `settled`. `when_any_success`
//   returns the first value; if all tasks fail, it throws the exception of one of the last. Both
//   stop the other tasks and drop their results. With an empty vector they throw broken_promise.
// - `within` runs a task with limits and returns an outcome, or for void a status. At the deadline
//   or when the token is requested, it requests the task's token, and returns `timed_out` or
//   `stopped` once the task has ended; only an exception other than future_error::cancelled is
//   rethrown.
//
// Guarantees: structured: they always resume only after every task has ended and every frame is
// freed. The tasks run on the executor of the awaiting task, each started by its own post, so on a
// pool they run in parallel; they inherit its token. They are lazy, as tasks are. An empty task is
// a broken contract.
// Cost: three allocations per call; for a vector also one for every two or three tasks.
//
//     auto [user, mails] = co_await when_all(load_user(id), load_mails(id));
//     auto first = co_await when_any_success(ask_all(mirrors));        // {index, value}
//     auto soon = co_await within(ask(server), deadline::after(1s));

#include <cstddef>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/future/detail/fan_in.hpp"
#include "sluice/future/detail/linked_stop.hpp"
#include "sluice/future/detail/task_group.hpp"
#include "sluice/future/detail/task_root.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"
#include "sluice/sync/event.hpp"

namespace sluice {

namespace detail {

template <class T>
element_t<T> element_of(task_of_group<T>& ended) {
  if constexpr (std::is_void_v<T>) {
    std::move(ended.result()).value();
    return {};
  } else {
    return element_t<T>(std::move(ended.result()).value());
  }
}
template <class T>
using elements_t = std::conditional_t<std::is_void_v<T>, void, std::vector<element_t<T>>>;

// Make the result of when_any and its variants from the first task and its index.
template <class T, std::size_t I>
first_settled<T> first_as(std::type_identity<first_settled<T>>, task_of_group<T>& first,
                          std::integral_constant<std::size_t, I> place) {
  return {place, std::move(first.result())};
}
template <class... Ts, class T, std::size_t I>
first_settled_of<Ts...> first_as(std::type_identity<first_settled_of<Ts...>>,
                                 task_of_group<T>& first,
                                 std::integral_constant<std::size_t, I> place) {
  return {place, std::variant<settled<Ts>...>(std::in_place_index<I>, std::move(first.result()))};
}
template <class T>
first_value<T> first_as(std::type_identity<first_value<T>>, task_of_group<T>& first,
                        std::size_t place) {
  if constexpr (std::is_void_v<T>) {
    std::move(first.result()).value();
    return {place};
  } else {
    return {place, std::move(first.result()).value()};
  }
}
// Returns the index of the deciding task; if all have failed and none decided, of one of the last.
inline std::size_t first_in(const task_group& group) noexcept {
  return group.decided() != task_group::undecided ? group.decided() : group.last();
}

template <class R, class... Ts, std::size_t... I>
task<R> all_in_tuple(std::index_sequence<I...> in, decides rule, task<Ts>... ts) {
  task_group group(sizeof...(Ts), rule, co_await this_task::stop_token());
  task_tuple<Ts...> tasks = in_tuple<Ts...>(in, group, ts...);
  co_await run_group(group, tasks);
  if constexpr (std::is_same_v<R, std::tuple<settled<Ts>...>>) {
    co_return R(std::move(std::get<I>(tasks).result())...);
  } else {
    // Throw the first failure, not the errors that stopping caused in the others.
    (void)((I == group.decided() && (std::get<I>(tasks).result().value(), true)) || ...);
    co_return R(element_of(std::get<I>(tasks))...);
  }
}

template <class R, class... Ts, std::size_t... I>
task<R> any_in_tuple(std::index_sequence<I...> in, decides rule, task<Ts>... ts) {
  task_group group(sizeof...(Ts), rule, co_await this_task::stop_token());
  task_tuple<Ts...> tasks = in_tuple<Ts...>(in, group, ts...);
  co_await run_group(group, tasks);
  const auto first = first_in(group);
  std::optional<R> result;
  const auto take = [&]<std::size_t At>(std::integral_constant<std::size_t, At> place) {
    if (At == first) result.emplace(first_as(std::type_identity<R>(), std::get<At>(tasks), place));
  };
  (take(std::integral_constant<std::size_t, I>()), ...);
  co_return std::move(*result);
}

inline void check_first_of(std::size_t count) {
  if (count == 0) throw future_error(future_error::broken_promise, "the first of no tasks");
}

template <class T>
class limited_task final : public task_root<T> {
 public:
  explicit limited_task(task<T>&& t) noexcept : task_root<T>(std::move(t)) {}
  using task_root<T>::take_limited;
  event has_ended;

 private:
  void ended() noexcept override { has_ended.set(); }
};

}  // namespace detail

template <class T, class... Ts>
auto when_all(task<T> first, task<Ts>... others) {
  using result = std::tuple<detail::element_t<T>, detail::element_t<Ts>...>;
  return detail::all_in_tuple<result>(std::index_sequence_for<T, Ts...>(),
                                      detail::decides::first_failure, std::move(first),
                                      std::move(others)...);
}
template <class T, class... Ts>
auto when_all_settled(task<T> first, task<Ts>... others) {
  using result = std::tuple<settled<T>, settled<Ts>...>;
  return detail::all_in_tuple<result>(std::index_sequence_for<T, Ts...>(), detail::decides::none,
                                      std::move(first), std::move(others)...);
}
template <class T>
task<detail::elements_t<T>> when_all(std::vector<task<T>> ts) {
  detail::task_group group(ts.size(), detail::decides::first_failure,
                           co_await this_task::stop_token());
  detail::task_deque<T> tasks;
  detail::fill(tasks, ts, group);
  co_await detail::run_group(group, tasks);
  if (group.decided() != group.undecided) (void)tasks[group.decided()].result().value();
  if constexpr (!std::is_void_v<T>) {
    std::vector<detail::element_t<T>> values;
    values.reserve(tasks.size());
    for (auto& one : tasks) values.push_back(detail::element_of(one));
    co_return values;
  }
}
template <class T>
task<std::vector<settled<T>>> when_all_settled(std::vector<task<T>> ts) {
  detail::task_group group(ts.size(), detail::decides::none, co_await this_task::stop_token());
  detail::task_deque<T> tasks;
  detail::fill(tasks, ts, group);
  co_await detail::run_group(group, tasks);
  std::vector<settled<T>> all;
  all.reserve(tasks.size());
  for (auto& one : tasks) all.push_back(std::move(one.result()));
  co_return all;
}

// Returns first_settled<T> if all tasks have one type, else first_settled_of<Ts...>.
template <class T, class... Ts>
auto when_any(task<T> first, task<Ts>... others) {
  using result = std::conditional_t<detail::all_same<T, Ts...>, first_settled<T>,
                                    first_settled_of<T, Ts...>>;
  return detail::any_in_tuple<result>(std::index_sequence_for<T, Ts...>(),
                                      detail::decides::first_end, std::move(first),
                                      std::move(others)...);
}
template <class T, class... Ts>
  requires(detail::all_same<T, Ts...>)
auto when_any_success(task<T> first, task<Ts>... others) {
  return detail::any_in_tuple<first_value<T>>(std::index_sequence_for<T, Ts...>(),
                                              detail::decides::first_success, std::move(first),
                                              std::move(others)...);
}
template <class T>
task<first_settled<T>> when_any(std::vector<task<T>> ts) {
  detail::check_first_of(ts.size());
  detail::task_group group(ts.size(), detail::decides::first_end,
                           co_await this_task::stop_token());
  detail::task_deque<T> tasks;
  detail::fill(tasks, ts, group);
  co_await detail::run_group(group, tasks);
  co_return first_settled<T>{group.decided(), std::move(tasks[group.decided()].result())};
}
template <class T>
task<first_value<T>> when_any_success(std::vector<task<T>> ts) {
  detail::check_first_of(ts.size());
  detail::task_group group(ts.size(), detail::decides::first_success,
                           co_await this_task::stop_token());
  detail::task_deque<T> tasks;
  detail::fill(tasks, ts, group);
  co_await detail::run_group(group, tasks);
  const auto first = detail::first_in(group);
  co_return detail::first_as(std::type_identity<first_value<T>>(), tasks[first], first);
}

template <class T>
task<detail::limited_result_t<T>> within(task<T> t, wait_limits limits) {
  const std::stop_token& inherited = co_await this_task::stop_token();
  if (limits.stop.stop_requested() || inherited.stop_requested()) {
    co_return status(status::stopped);
  }
  detail::limited_stop limit(limits, inherited);
  detail::limited_task<T> inner(std::move(t));
  inner.set_context(co_await detail::sink_query(), &limit.token());
  inner.begin_here();
  if (!inner.has_ended.is_set()) limit.waits_now();
  auto ended = inner.has_ended.async_wait();
  ended.keep_own_limits();
  (void)co_await ended;
  co_return inner.take_limited(limit.ended());
}

}  // namespace sluice
