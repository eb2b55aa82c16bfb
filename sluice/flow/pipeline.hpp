#pragma once

// Takes items through several steps, each with its own number of hands, so that a slow step slows
// down the source instead of filling the memory.
//
// Use it for a fixed sequence of steps over many items: decode, resize, store. Prefer a
// `bounded_queue` and threads for one step, `task`s for steps that differ from item to item.
//
// A stage is a function and a bounded queue in front of it; `parallelism` workers take items from
// the queue, call the function, and wait for room in the next queue. A worker is a coroutine: it
// holds a thread of the executor only while a plain function runs, so a pipeline of many stages
// needs few threads, and one is enough. Functions may return what they make, or a task of it:
//   stage("name", f)      f(T) -> U                    one in, one out
//   filter("name", f)     f(T) -> optional<U>          some go on; or f(const T&) -> bool
//   flat_map("name", f)   f(T) -> a range of U         one in, any number out
//   sink("name", f)       f(T)                         the end; starts the line
// The items come by `push`, or from a function, `pipeline<>::from`, called until it gives nullopt.
//
// Guarantees: any thread may call anything. What is inside is bounded by the capacities, the
// parallelism and the windows, whatever the source does. A stage with a parallelism of 1, or
// `ordered`, hands results on in the order in which it took the items; for that at most `window`
// of its items are under way or wait for an earlier one.
// Errors: an exception that leaves a function stops the line, and `join` throws a pipeline_error
// that names the stage, with the exception nested (without a join, the destructor reports it to the
// executor: docs/concepts/errors.md); or, with stage_errors::skip, only that item is
// dropped, counted and reported. Items must be nothrow movable. `sink` throws when there is no
// memory to start the line, and nothing has run; out of memory for a pipeline_error, it terminates.
// The end: `close` = no more comes in, what is inside runs through. `stop`, the stop_token of the
// options, or an error = functions under way end (a task is asked to); the rest is counted.
// `shutdown_within` = close, and at the deadline stop. The destructor closes and waits.
// Waiting for the end on a thread of the executor, also through a strand, would wait for itself: a
// broken contract; there, `co_await async_join()`. It is not seen through an executor of your own
// that wraps another. A blocking `push` there may wait for its own thread: use `async_push`.
// A function is called by several workers at once when its parallelism is above 1.
// Cost: a frame a worker, allocated at the start; an item costs a queue's push and pop a stage, and
// four readings of the clock. docs/reference/pipeline.md has a figure of its memory.
//
//     auto line = pipeline<file>::on(pool)
//                     .stage("decode", decode, {.parallelism = 2})
//                     .stage("resize", resize, {.parallelism = 4, .ordered = true})
//                     .sink("store", store);
//     for (auto& f : files) line.push(std::move(f));      // waits while the line is full
//     line.drain();

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/outcome.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/flow/detail/pipeline_core.hpp"
#include "sluice/flow/detail/pipeline_source.hpp"
#include "sluice/flow/detail/pipeline_stage.hpp"
#include "sluice/flow/pipeline_types.hpp"
#include "sluice/future/task.hpp"
#include "sluice/queue/bounded_queue.hpp"

namespace sluice {

template <class T = void>
class pipeline;
template <class First, class Out>
class pipeline_builder;

// What every running pipeline has, whatever goes in.
class pipeline_handle {
 public:
  pipeline_handle(pipeline_handle&&) noexcept = default;
  pipeline_handle& operator=(pipeline_handle&&) = delete;

  // No more comes in; does not wait.
  void close() noexcept { core().close(); }
  // Waits for the end, however it came about: ok. Throws the pipeline_error that stopped the line.
  // Limited: timed_out or stopped, and the line goes on.
  void join() { (void)join_within({}); }
  status join_within(const wait_limits& limits);
  // co_await gives a status or throws; the line must stay where it is.
  task<status> async_join(wait_limits limits = {});
  // close and join.
  void drain() {
    close();
    join();
  }
  // Asks the line to stop and waits until it has ended; does not throw. Returns how many items were
  // not processed: those in the queues, and those that were taken and whose results were left.
  std::size_t stop();
  // close; joins within the limits, and at the deadline (or when the token asks) stops. Throws the
  // pipeline_error that stopped the line.
  std::size_t shutdown_within(const wait_limits& limits);
  task<std::size_t> async_shutdown_within(wait_limits limits);
  // Does not wait.
  void request_stop() noexcept { core().request_stop(); }

  bool has_ended() const noexcept { return core().has_ended(); }
  // Items not processed; final once it has ended.
  std::size_t unprocessed() const noexcept { return core().unprocessed(); }
  // One for each stage, from the source to the sink.
  std::vector<stage_stats> stats() const { return core().stats(); }

 protected:
  explicit pipeline_handle(std::unique_ptr<detail::pipeline_core> c) noexcept
      : core_(std::move(c)) {}
  ~pipeline_handle();

  detail::pipeline_core& core() const noexcept {
    check(core_ != nullptr, "sluice::pipeline", "a pipeline that was not moved from");
    return *core_;
  }

 private:
  std::unique_ptr<detail::pipeline_core> core_;
};

// Fed by `push`, which waits while the first queue is full. Every form says closed after close,
// stop or an error, and then the item is still with the caller.
template <class T>
class pipeline : public pipeline_handle {
 public:
  static pipeline_builder<T, T> on(executor& e, pipeline_options o = {});

  status push(T&& item) { return first_->push(std::move(item)); }
  status push(const T& item) { return first_->push(item); }
  status push(T&& item, std::stop_token stop) {
    return first_->push(std::move(item), std::move(stop));
  }
  status try_push(T&& item) { return first_->try_push(std::move(item)); }
  status try_push(const T& item) { return first_->try_push(item); }
  template <class Rep, class Period>
  status try_push_for(T&& item, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}) {
    return first_->try_push_for(std::move(item), wait, std::move(stop));
  }
  template <class Clock, class Duration>
  status try_push_until(T&& item, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}) {
    return first_->try_push_until(std::move(item), when, std::move(stop));
  }
  // The general form. Moves from `item` only when it returns ok.
  status push_within(T& item, const wait_limits& limits) {
    return first_->push_within(item, limits);
  }
  // co_await gives a status.
  auto async_push(T& item, wait_limits limits = {}) {
    return first_->async_push(item, std::move(limits));
  }
  auto async_push(T&& item, wait_limits limits = {}) {
    return first_->async_push(std::move(item), std::move(limits));
  }

 private:
  template <class, class>
  friend class pipeline_builder;
  pipeline(std::unique_ptr<detail::pipeline_core> c, bounded_queue<T>* first) noexcept
      : pipeline_handle(std::move(c)), first_(first) {}

  bounded_queue<T>* first_;
};

// Fed by a function of its own.
template <>
class pipeline<void> : public pipeline_handle {
 public:
  // f() -> optional<T>, or a task of it, is called by one at a time while there is room; nullopt is
  // the end. `close` ends it after the call that is under way.
  template <class F>
  static auto from(executor& e, std::string name, F f, stage_options o = {},
                   pipeline_options line = {});

 private:
  template <class, class>
  friend class pipeline_builder;
  pipeline(std::unique_ptr<detail::pipeline_core> c, void*) noexcept
      : pipeline_handle(std::move(c)) {}
};

// A line that is being put together. Each call adds a stage behind the last one; `sink` ends it and
// starts it. Names are for counters and errors.
template <class First, class Out>
class [[nodiscard("end it with a sink")]] pipeline_builder {
 public:
  template <class F>
  auto stage(std::string name, F f, stage_options o = {})&& {
    return add<detail::as_map>(std::move(name), std::move(f), std::move(o));
  }
  template <class F>
  auto filter(std::string name, F f, stage_options o = {})&& {
    return add<detail::as_filter>(std::move(name), std::move(f), std::move(o));
  }
  template <class F>
  auto flat_map(std::string name, F f, stage_options o = {})&& {
    return add<detail::as_flat_map>(std::move(name), std::move(f), std::move(o));
  }
  template <class F>
  pipeline<First> sink(std::string name, F f, stage_options o = {})&& {
    append<detail::as_sink>(std::move(name), std::move(f), std::move(o));
    core_->start();
    return pipeline<First>(std::move(core_), first_);
  }

 private:
  template <class>
  friend class pipeline;
  template <class, class>
  friend class pipeline_builder;
  using first_queue = std::conditional_t<std::is_void_v<First>, void, bounded_queue<First>>;

  explicit pipeline_builder(std::unique_ptr<detail::pipeline_core> c, first_queue* first = nullptr,
                            detail::out_port<Out>* last = nullptr) noexcept
      : core_(std::move(c)), first_(first), last_(last) {}

  template <class Kind, class F>
  auto* append(std::string name, F f, stage_options o) {
    using added_stage = detail::pipeline_stage<Out, F, Kind>;
    auto made = std::make_unique<added_stage>(std::move(name), std::move(f), std::move(o));
    auto* const added = made.get();
    if (last_ != nullptr) {
      last_->next = &added->queue();
    } else if constexpr (std::is_same_v<First, Out>) {
      first_ = &added->queue();
    }
    core_->add(std::move(made));
    return added;
  }
  template <class Kind, class F>
  auto add(std::string name, F f, stage_options o) {
    auto* const added = append<Kind>(std::move(name), std::move(f), std::move(o));
    using made = typename std::remove_pointer_t<decltype(added)>::out;
    return pipeline_builder<First, made>(std::move(core_), first_, added);
  }

  std::unique_ptr<detail::pipeline_core> core_;
  first_queue* first_;
  detail::out_port<Out>* last_;
};

template <class T>
pipeline_builder<T, T> pipeline<T>::on(executor& e, pipeline_options o) {
  return pipeline_builder<T, T>(std::make_unique<detail::pipeline_core>(e, std::move(o)));
}

template <class F>
auto pipeline<void>::from(executor& e, std::string name, F f, stage_options o,
                          pipeline_options line) {
  using source = detail::source_stage<F>;
  auto core = std::make_unique<detail::pipeline_core>(e, std::move(line));
  auto made = std::make_unique<source>(std::move(name), std::move(f), std::move(o));
  auto* const added = made.get();
  core->add(std::move(made));
  return pipeline_builder<void, typename source::out>(std::move(core), nullptr, added);
}

}  // namespace sluice
