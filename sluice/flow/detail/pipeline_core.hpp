#pragma once

// The shared state of a pipeline's stages: the executor, the stop, the first error, the count of
// workers that have not ended. See pipeline.hpp.

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/flow/pipeline_types.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::detail {

class pipeline_core;
class stage_worker;

// One stage, without its types.
class stage_base {
 public:
  stage_base(std::string name, stage_options o);
  stage_base(const stage_base&) = delete;
  stage_base& operator=(const stage_base&) = delete;
  virtual ~stage_base() = default;

  // Adds its workers, not started yet.
  virtual void make_workers(pipeline_core& core, std::vector<stage_worker>& result) = 0;
  virtual void close_input() noexcept = 0;
  virtual std::size_t queued() const noexcept = 0;
  virtual std::size_t capacity() const noexcept = 0;

  std::size_t workers() const noexcept { return options_.parallelism; }
  const std::string& name() const noexcept { return name_; }
  stage_stats stats() const;

 protected:
  // Called inside the handler of the exception: stops the pipeline, or reports it and continues.
  void failed(pipeline_core& core) noexcept;
  // Returns true for the last worker.
  bool worker_leaves() noexcept;

  // Adds the time of its lifetime to one of the counters below.
  class stopwatch {
   public:
    stopwatch(const clock& time, atomic<std::int64_t>& total) noexcept
        : time_(time), total_(total), since_(time.now()) {}
    stopwatch(const stopwatch&) = delete;
    stopwatch& operator=(const stopwatch&) = delete;
    ~stopwatch() { total_.fetch_add((time_.now() - since_).count(), relaxed); }

   private:
    const clock& time_;
    atomic<std::int64_t>& total_;
    const time_point since_;
  };

  const std::string name_;
  const stage_options options_;
  // relaxed throughout: counts that order nothing.
  atomic<std::uint64_t> in_{0};
  atomic<std::uint64_t> out_{0};
  atomic<std::uint64_t> skipped_{0};
  atomic<std::uint64_t> undelivered_{0};
  atomic<std::size_t> active_{0};
  atomic<std::int64_t> busy_ns_{0};
  atomic<std::int64_t> blocked_ns_{0};
  atomic<std::int64_t> idle_ns_{0};

 private:
  atomic<std::size_t> working_;
};

class pipeline_core {
 public:
  pipeline_core(executor& on, pipeline_options o);
  pipeline_core(const pipeline_core&) = delete;
  pipeline_core& operator=(const pipeline_core&) = delete;
  ~pipeline_core();

  void add(std::unique_ptr<stage_base> s) { stages_.push_back(std::move(s)); }
  void start();

  // For the workers.
  executor& runs_on() const noexcept { return executor_; }
  const clock& time() const noexcept { return clock_; }
  const std::stop_token& token() const noexcept { return token_; }
  wait_limits limits() const { return {{}, token_}; }
  void fail(std::exception_ptr error) noexcept;
  void worker_ended() noexcept;

  // For the owner.
  void close() noexcept { stages_.front()->close_input(); }
  void request_stop() noexcept;
  bool has_ended() const noexcept { return ended_.is_set(); }
  event& ended() noexcept { return ended_; }
  void rethrow_error();
  void report_unread_error() noexcept;  // called by its destructor, if no join has thrown it
  void must_not_be_inside(const char* call) const noexcept;
  std::size_t unprocessed() const noexcept;
  std::vector<stage_stats> stats() const;

 private:
  struct stopper {
    pipeline_core& core;
    void operator()() const noexcept { core.request_stop(); }
  };

  executor& executor_;
  const executor_use use_;
  clock& clock_;
  const pipeline_options options_;
  std::stop_source stop_;
  const std::stop_token token_;
  std::vector<std::unique_ptr<stage_base>> stages_;
  atomic<std::size_t> workers_{0};
  mutable spin_lock guard_;
  // Protected by guard_.
  std::exception_ptr error_;  // the first
  bool was_thrown_ = false;
  event ended_;
  std::optional<std::stop_callback<stopper>> on_stop_;  // constructed last, destroyed first
};

// The coroutine of a worker: it begins with a post to the executor, is resumed there, has the
// pipeline's token, and at its end frees itself and calls `worker_ended`. A worker that is never
// started is freed with this object.
class stage_worker {
 public:
  class promise_type final : private work {
   public:
    template <class... Rest>
    explicit promise_type(pipeline_core& core, Rest&...) noexcept : core_(core) {}

    stage_worker get_return_object() noexcept { return stage_worker(*this); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept { return ending{}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }

    work_sink* resume_sink() const noexcept { return &core_.runs_on(); }
    const std::stop_token& stop_token() const noexcept { return core_.token(); }

   private:
    friend class stage_worker;
    struct ending {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
        pipeline_core& core = ended.promise().core_;
        ended.destroy();  // with this awaiter: the frame is freed before the end is published
        core.worker_ended();
      }
      void await_resume() const noexcept {}
    };
    void run() noexcept override {
      std::coroutine_handle<promise_type>::from_promise(*this).resume();
    }

    pipeline_core& core_;
  };

  stage_worker(stage_worker&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  stage_worker& operator=(stage_worker&&) = delete;
  ~stage_worker() {
    if (promise_ != nullptr) std::coroutine_handle<promise_type>::from_promise(*promise_).destroy();
  }

  void start() noexcept {
    promise_type& worker = *std::exchange(promise_, nullptr);
    worker.core_.runs_on().post(worker);
  }

 private:
  explicit stage_worker(promise_type& p) noexcept : promise_(&p) {}
  promise_type* promise_;
};

}  // namespace sluice::detail
