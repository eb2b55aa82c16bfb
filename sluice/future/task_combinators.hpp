#pragma once

// Runs several tasks at once and goes on when all have ended, or the first has; or one task for a
// limited time.
//
// Use these when the tasks are known where they start; `scope` when they are added as one goes. The
// words and the results are those of the same names for futures. For those who know asyncio: gather
// is `when_all` (with return_exceptions `when_all_settled`), wait(FIRST_COMPLETED) is `when_any`,
// wait_for is `within`; TaskGroup is `scope`.
//
// - `when_all` gives all values, in order: a tuple (std::monostate for void, a
//   std::reference_wrapper for a reference), or of a vector a vector, or nothing. The first that
//   throws asks the others to stop, and its exception is thrown. `when_all_settled` asks nobody and
//   gives how each ended.
// - `when_any` gives the first to end: its index and how it ended. `when_any_success` the first
//   that gives a value; when none does, it throws what one of the last threw. The others are asked
//   to stop, and what they end with is dropped. The first of no tasks: throws broken_promise.
// - `within` gives a task limits: an outcome, or for void a status. At the deadline, or when the
//   token asks, the task is asked to stop, and `timed_out` or `stopped` is said when it has ended;
//   only an exception other than future_error::cancelled is thrown all the same.
//
// Guarantees: structured: whatever happens, they go on only when every one of the tasks has ended,
// and give their result when every frame is freed. The tasks run on the executor of the task that
// awaits, each from a post of its own, so on a pool they run in parallel; they hear its token too.
// They are lazy, as tasks are. An empty task among them is a broken contract.
// Cost: three allocations a call, for a vector also one for every two or three tasks.
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

// The result of the first of several, from the task that it is, at its place in the arguments.
template <class T, std::size_t I>
first_settled<T> first_as(std::type_identity<first_settled<T>>, task_of_group<T>& it,
                          std::integral_constant<std::size_t, I> place) {
  return {place, std::move(it.result())};
}
template <class... Ts, class T, std::size_t I>
first_settled_of<Ts...> first_as(std::type_identity<first_settled_of<Ts...>>, task_of_group<T>& it,
                                 std::integral_constant<std::size_t, I> place) {
  return {place, std::variant<settled<Ts>...>(std::in_place_index<I>, std::move(it.result()))};
}
template <class T>
first_value<T> first_as(std::type_identity<first_value<T>>, task_of_group<T>& it,
                        std::size_t place) {
  if constexpr (std::is_void_v<T>) {
    std::move(it.result()).value();
    return {place};
  } else {
    return {place, std::move(it.result()).value()};
  }
}
// The index of the first; when none has decided, because all have failed, of one of the last.
inline std::size_t first_in(const task_group& group) noexcept {
  return group.decided() != task_group::nobody ? group.decided() : group.last();
}

template <class R, class... Ts, std::size_t... I>
task<R> all_in_tuple(std::index_sequence<I...> in, decides rule, task<Ts>... ts) {
  task_group group(sizeof...(Ts), rule, co_await this_task::stop_token());
  task_tuple<Ts...> tasks = in_tuple<Ts...>(in, group, ts...);
  co_await run_group(group, tasks);
  if constexpr (std::is_same_v<R, std::tuple<settled<Ts>...>>) {
    co_return R(std::move(std::get<I>(tasks).result())...);
  } else {
    // What failed first is what is thrown, whatever the others made of being asked to stop.
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
class task_within final : public task_root<T> {
 public:
  explicit task_within(task<T>&& t) noexcept : task_root<T>(std::move(t)) {}
  using task_root<T>::take_within;
  event over;

 private:
  void ended() noexcept override { over.set(); }
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
  if (group.decided() != group.nobody) (void)tasks[group.decided()].result().value();
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

// first_settled<T> when all have one type, else first_settled_of<Ts...>.
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
  detail::limited_stop asked(limits, inherited);
  detail::task_within<T> inner(std::move(t));
  inner.set_context(co_await detail::sink_query(), &asked.token());
  inner.begin_here();
  if (!inner.over.is_set()) asked.waits_now();
  auto over = inner.over.async_wait();
  over.keep_own_limits();
  (void)co_await over;
  co_return inner.take_within(asked.ended());
}

}  // namespace sluice
