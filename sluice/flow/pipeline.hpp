#pragma once

// Moves items through several steps, each with its own parallelism, so that a slow step slows
// down the source instead of filling the memory.
//
// Use it for a fixed sequence of steps over many items: decode, resize, store. Prefer a
// `bounded_queue` and threads for one step, `task`s for steps that differ from item to item.
//
// A stage is a function and a bounded queue in front of it; `parallelism` workers take items from
// the queue, call the function, and push to the next queue. A worker is a coroutine: it holds a
// thread of the executor only while a plain function runs, so a pipeline of many stages needs few
// threads, and one is enough. Functions return their result, or a task of it:
//   stage("name", f)      f(T) -> U                    one in, one out
//   filter("name", f)     f(T) -> optional<U>          some pass; or f(const T&) -> bool
//   flat_map("name", f)   f(T) -> a range of U         one in, any number out
//   sink("name", f)       f(T)                         the end; starts the pipeline
// Items enter by `push`, or from a function, `pipeline<>::from`, called until it returns nullopt.
//
// Guarantees: any thread may call anything. The items inside are bounded by the capacities, the
// parallelism and the windows, for any source. A stage with a parallelism of 1, or
// `ordered`, passes results on in the order in which it took the items; for that at most `window`
// of its items are in progress or wait for an earlier one.
// Errors: an exception that leaves a function stops the pipeline, and `join` throws a
// pipeline_error that names the stage, with the exception nested (without a join, the destructor
// reports it to the executor: docs/concepts/errors.md); or, with stage_errors::skip, only that item
// is dropped, counted and reported. Items must be nothrow movable. `sink` throws if there is no
// memory to start, and nothing has run; out of memory for a pipeline_error, it terminates.
// The end: `close` refuses new items, and items inside run through. `stop`, the options'
// stop_token, or an error ends the running functions (a task by a stop request); the other items
// are counted. `shutdown` closes, and stops at the deadline. The destructor closes and waits. A
// blocking wait for the end on a thread of the executor, also through a strand, would wait for
// itself: a broken contract; there, `co_await async_join()`. It is not detected through your own
// executor that wraps another. A blocking `push` there may block too: use `async_push`. With a
// parallelism above 1, several workers call the function at once. Cost: a frame a worker, allocated
// at the start; an item costs a queue's push and pop a stage, and four clock readings.
//
//     auto line = pipeline<file>::on(pool)
//                     .stage("decode", decode, {.parallelism = 2})
//                     .stage("resize", resize, {.parallelism = 4, .ordered = true})
//                     .sink("store", store);
//     for (auto& f : files) (void)line.push(std::move(f));  // waits while the line is full
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

// The part of a running pipeline that does not depend on the type of the items.
class pipeline_handle {
 public:
  pipeline_handle(pipeline_handle&&) noexcept = default;
  pipeline_handle& operator=(pipeline_handle&&) = delete;

  // Refuses new items; does not wait.
  void close() noexcept { core().close(); }
  // Blocks until the end. Throws the pipeline_error that stopped the pipeline.
  void join() { (void)join(wait_limits{}); }
  // Within the limits. Returns ok, timed_out or stopped; a limit does not end the pipeline.
  status join(const wait_limits& limits);
  // co_await returns a status or throws; the pipeline must not be moved meanwhile.
  task<status> async_join(wait_limits limits = {});
  // Calls close and join.
  void drain() {
    close();
    join();
  }
  // Stops the pipeline and blocks until it has ended; does not throw. Returns the number of items
  // not processed: items in the queues, and items taken whose results were not delivered.
  std::size_t stop();
  // Closes, joins within the limits, and stops at the deadline or stop. Throws the pipeline_error
  // that stopped the pipeline.
  std::size_t shutdown(const wait_limits& limits);
  task<std::size_t> async_shutdown(wait_limits limits);
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

// A pipeline with `push`, which waits while the first queue is full. Every form returns closed
// after close, stop or an error, and then the caller keeps the item.
template <class T>
class pipeline : public pipeline_handle {
 public:
  static pipeline_builder<T, T> on(executor& e, pipeline_options o = {});

  status push(T&& item, const wait_limits& limits = {}) {
    return first_->push(std::move(item), limits);
  }
  status push(const T& item, const wait_limits& limits = {}) { return first_->push(item, limits); }
  status try_push(T&& item) { return first_->try_push(std::move(item)); }
  status try_push(const T& item) { return first_->try_push(item); }
  // co_await returns a status.
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

// A pipeline whose items come from a function.
template <>
class pipeline<void> : public pipeline_handle {
 public:
  // f() -> optional<T>, or a task of it, is called by one worker while there is capacity; nullopt
  // ends the items. `close` ends them after the running call.
  template <class F>
  static auto from(executor& e, std::string name, F f, stage_options o = {},
                   pipeline_options line = {});

 private:
  template <class, class>
  friend class pipeline_builder;
  pipeline(std::unique_ptr<detail::pipeline_core> c, void*) noexcept
      : pipeline_handle(std::move(c)) {}
};

// A pipeline under construction. Each call appends a stage; `sink` appends the last one and starts
// the pipeline. Names are for counters and errors.
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
