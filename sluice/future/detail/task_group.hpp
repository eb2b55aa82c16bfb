#pragma once

// Several tasks that run concurrently on the executor of the task that awaits all of them: the base
// of when_all and when_any for tasks.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/future/detail/linked_stop.hpp"
#include "sluice/future/detail/task_root.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::detail {

// Which task's end decides the result; the other tasks are then stopped.
enum class decides : std::uint8_t { none, first_failure, first_end, first_success };

class task_group {
 public:
  static constexpr std::size_t undecided = static_cast<std::size_t>(-1);

  task_group(std::size_t count, decides rule, const std::stop_token& inherited)
      : rule_(rule), stop_(inherited), running_(static_cast<latch::count_type>(count)) {}

  const std::stop_token& token() const noexcept { return stop_.token(); }
  // Called when a task has ended. After it, the group and the tasks may be destroyed.
  void ended(std::size_t index, bool failed) {
    // relaxed, all: a reader has waited for `running_`.
    last_.store(index, relaxed);
    if (rule_ == decides::first_end || rule_ == (failed ? decides::first_failure
                                                        : decides::first_success)) {
      auto none = undecided;
      if (decided_.compare_exchange_strong(none, index, relaxed, relaxed)) stop_.request_stop();
    }
    running_.count_down();
  }
  auto all_ended() { return running_.async_wait(); }

  std::size_t decided() const noexcept { return decided_.load(relaxed); }  // or undecided
  std::size_t last() const noexcept { return last_.load(relaxed); }        // one of the last to end

 private:
  const decides rule_;
  linked_stop stop_;
  latch running_;
  atomic<std::size_t> decided_{undecided};
  atomic<std::size_t> last_{undecided};
};

template <class T>
class task_of_group final : public task_root<T> {
 public:
  struct place {
    task<T>& unstarted;
    task_group& group;
    std::size_t index;
  };
  // Takes one argument, so that a tuple can construct it in place.
  explicit task_of_group(place p) noexcept
      : task_root<T>(std::move(p.unstarted)), group_(p.group), index_(p.index) {}

  void begin(work_sink* where) noexcept {
    this->set_context(where, &group_.token());
    this->begin_posted();
  }
  using task_root<T>::result;

 private:
  void ended() noexcept override { group_.ended(index_, result().is_error()); }

  task_group& group_;
  const std::size_t index_;
};

// A deque, because its elements do not move.
template <class T>
using task_deque = std::deque<task_of_group<T>>;
template <class... Ts>
using task_tuple = std::tuple<task_of_group<Ts>...>;

template <class T>
void fill(task_deque<T>& tasks, std::vector<task<T>>& from, task_group& group) {
  for (auto& t : from) {
    tasks.emplace_back(typename task_of_group<T>::place{t, group, tasks.size()});
  }
}
template <class... Ts, std::size_t... I>
task_tuple<Ts...> in_tuple(std::index_sequence<I...>, task_group& group, task<Ts>&... from) {
  return task_tuple<Ts...>(typename task_of_group<Ts>::place{from, group, I}...);
}

template <class T, class F>
void each_task(task_deque<T>& tasks, F&& f) {
  for (auto& one : tasks) f(one);
}
template <class... Ts, class F>
void each_task(task_tuple<Ts...>& tasks, F&& f) {
  std::apply([&](auto&... one) { (f(one), ...); }, tasks);
}

// Starts all tasks and resumes when every one has ended, even if the awaiting task was stopped: its
// stop also stops them.
template <class Tasks>
task<> run_group(task_group& group, Tasks& tasks) {
  work_sink* const where = co_await sink_query();
  each_task(tasks, [where](auto& one) { one.begin(where); });
  auto ended = group.all_ended();
  ended.keep_own_limits();
  (void)co_await ended;
}

}  // namespace sluice::detail
