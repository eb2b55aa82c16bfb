#pragma once

// One typed stage of a pipeline: its queue, its function, its workers. See pipeline.hpp.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/flow/detail/call_kind.hpp"
#include "sluice/flow/detail/pipeline_core.hpp"
#include "sluice/flow/detail/stage_kind.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::detail {

template <class In, class F, class Kind>
class pipeline_stage final : public stage_base, public out_port<stage_out<In, F, Kind>> {
  using argument = typename stage_call<In, F, Kind>::argument;
  using call = typename stage_call<In, F, Kind>::traits;

 public:
  using out = stage_out<In, F, Kind>;
  static constexpr bool is_sink = std::is_same_v<Kind, as_sink>;

  pipeline_stage(std::string name, F f, stage_options o)
      : stage_base(std::move(name), std::move(o)),
        function_(std::move(f)),
        queue_({.capacity = options_.capacity, .name = name_}) {
    // A worker could not report an exception from moving an item.
    static_assert(std::is_nothrow_move_constructible_v<In> && std::is_nothrow_move_assignable_v<In>,
                  "items are moved between the stages, where nothing can catch an exception");
    static_assert(call::kind != call_kind::future, "return a task, which can await the future");
    if (is_ordered()) order_.emplace(window());
  }

  bounded_queue<In>& queue() noexcept { return queue_; }

  void make_workers(pipeline_core& core, std::vector<stage_worker>& result) override {
    result.reserve(result.size() + workers());
    for (std::size_t i = 0; i < workers(); ++i) result.push_back(work(core, *this));
  }
  void close_input() noexcept override { queue_.close(); }
  std::size_t queued() const noexcept override { return queue_.size(); }
  std::size_t capacity() const noexcept override { return queue_.capacity(); }

 private:
  // After this many items it yields to other work on the executor.
  static constexpr std::uint32_t turns_at_once = 64;

  struct no_results {};
  template <class U>
  struct made_of {
    using type = decltype(Kind::template results<U>(std::declval<typename call::value&&>(),
                                                    std::declval<In&>()));
  };
  template <bool Sink, class U>
  struct results_of {
    using type = no_results;
  };
  template <class U>
  struct results_of<false, U> : made_of<U> {};
  using results = typename results_of<is_sink, out>::type;

  // The results that wait for earlier ones.
  struct reordering {
    explicit reordering(std::size_t width)
        : free(static_cast<semaphore::count_type>(width)), ring(width) {}

    mutex turn;                     // held from taking an item to knowing its number
    std::uint64_t next_number = 0;  // protected by turn
    semaphore free;                 // numbers that may still be assigned
    spin_lock guard;
    // Protected by guard.
    std::vector<std::optional<results>> ring;
    std::uint64_t first = 0;  // the number of the next result to leave
    bool leaving = false;     // a worker is passing results on
  };

  bool is_ordered() const noexcept {
    return !is_sink && options_.ordered && options_.parallelism > 1;
  }
  std::size_t window() const noexcept {
    return options_.window != 0 ? options_.window : 4 * options_.parallelism;
  }

  // Static, with the core first, because the promise is constructed from the core. One coroutine
  // for all steps of an item: a task for each step would be an allocation for each.
  static stage_worker work(pipeline_core& core, pipeline_stage& self) {
    const bool ordered = self.is_ordered();
    for (std::uint32_t turns = 1;; ++turns) {
      if (turns % turns_at_once == 0) co_await this_task::yield();
      std::optional<In> item;
      std::uint64_t number = 0;
      if (ordered) {
        const status free = co_await self.order_->free.async_acquire(1, core.limits());
        if (!free) break;
      }
      {
        const stopwatch idle(core.time(), self.idle_ns_);
        std::unique_lock<mutex> turn;
        if (ordered) {
          auto held = co_await self.order_->turn.async_lock(core.limits());
          if (!held) break;
          turn = std::move(*held);
        }
        auto taken = co_await self.queue_.async_pop(core.limits());
        if (!taken) break;
        item.emplace(std::move(*taken));
        if (ordered) number = self.order_->next_number++;
      }
      self.in_.fetch_add(1, relaxed);
      self.active_.fetch_add(1, relaxed);
      std::optional<results> made;
      try {
        const stopwatch busy(core.time(), self.busy_ns_);
        if constexpr (call::kind == call_kind::task) {
          auto running = self.function_(static_cast<argument>(*item));
          if constexpr (is_sink) {
            (void)co_await std::move(running);
            made.emplace();
          } else {
            auto value = co_await std::move(running);
            made.emplace(Kind::template results<out>(std::move(value), *item));
          }
        } else if constexpr (is_sink) {
          (void)self.function_(static_cast<argument>(*item));
          made.emplace();
        } else {
          auto value = self.function_(static_cast<argument>(*item));
          made.emplace(Kind::template results<out>(std::move(value), *item));
        }
      } catch (...) {
        self.failed(core);
      }
      self.active_.fetch_sub(1, relaxed);
      item.reset();
      if constexpr (is_sink) {
        if (made) self.out_.fetch_add(1, relaxed);
      } else {
        if (ordered) {
          if (!made) made.emplace();  // no results leave for this number
          if (!self.put(number, std::move(*made))) continue;
          made = self.next_to_leave();
        }
        // In order: this worker also passes on the results that have become ready meanwhile.
        for (; made; made = ordered ? self.next_to_leave() : std::nullopt) {
          const stopwatch blocked(core.time(), self.blocked_ns_);
          for (auto& each : as_range(*made)) {
            const status pushed = co_await self.next->async_push(each, core.limits());
            if (!self.delivered(pushed)) break;
          }
          if (ordered) self.order_->free.release();
        }
      }
    }
    self.leave();
  }

  // Counts a push. When the pipeline is stopped, the item of these results is undelivered.
  bool delivered(status pushed) noexcept {
    (pushed ? out_ : undelivered_).fetch_add(1, relaxed);
    return static_cast<bool>(pushed);
  }

  // If it returns true, the caller must pass results on until next_to_leave returns nullopt.
  bool put(std::uint64_t number, results&& made) {
    const std::lock_guard hold(order_->guard);
    order_->ring[number % order_->ring.size()].emplace(std::move(made));
    return !std::exchange(order_->leaving, true);
  }
  std::optional<results> next_to_leave() {
    const std::lock_guard hold(order_->guard);
    auto& slot = order_->ring[order_->first % order_->ring.size()];
    if (!slot) {
      order_->leaving = false;
      return std::nullopt;
    }
    ++order_->first;
    return std::exchange(slot, std::nullopt);
  }

  void leave() noexcept {
    if (!worker_leaves()) return;
    if constexpr (!is_sink) this->next->close();
  }

  F function_;
  bounded_queue<In> queue_;
  std::optional<reordering> order_;
};

}  // namespace sluice::detail
