#pragma once

// Leases jobs from an engine or a server and runs their handlers, with bounded concurrency,
// automatic lease extension and cooperative cancellation.
//
// Use it in your own program, in the same process as the engine or remote (work_source.hpp). For
// jobs in another language use `sluice work --exec` (process.hpp), a worker with one handler.
//
// Guarantees: all functions may be called from any thread, except that `handle` must be called
// before `start`, and `stop` and the destructor must not be called from a handler. A job is leased
// only when a handler slot is free, or up to `prefetch` jobs ahead. One thread extends every lease
// at a third of its duration; the reply also reports cancellation.
// A handler's stop_token is triggered when the job is cancelled, when its lease is lost, at the
// job's time limit, and at shutdown when the time to finish has passed. If the handler has not
// returned `stop_grace` later, the worker reports for it: the job fails (cancelled, time limit) or
// is released (shutdown), and the handler's outcome is ignored. Its thread stays busy until it
// returns.
// The end of a job is reported until the source has replied or the lease has expired; after that,
// another worker may run the job ("at least once").
// While the source is unavailable, the worker retries with exponential backoff and jitter. Running
// jobs are not disturbed before their lease expires.
// Shutdown: `stop` stops leasing, releases the jobs that have not started, gives running jobs time
// to finish within the limits, then requests their stop, and returns when every end has been
// reported. Threads: handlers run on the worker's own pool; `on_event` runs on its coordinator
// thread, so it must be short and must not call `stop`. Cost: one thread beside the pool; a
// suspended coroutine uses none. Acks that become due while a call is in progress are sent together
// in the next call.
//
//     worker w(work_from(engine), {.queues = {"mail"}, .concurrency = 8});
//     w.handle("welcome", [](const welcome& to) { send(to.address, to.name); });
//     w.start();
//     ...
//     w.stop(deadline::after(20s));

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/model/time.hpp"
#include "jobs/worker/handler.hpp"
#include "jobs/worker/job_context.hpp"
#include "jobs/worker/work_source.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs {

// An event for logs. `message` is for people.
struct worker_event {
  enum class event_kind : std::uint8_t {
    started,             // a handler is about to be called
    succeeded,           // the source has confirmed the ack
    failed,              // the source has confirmed the failure
    given_back,          // released for another worker, not done
    lost,                // the lease is lost: another worker runs the job or has run it
    abandoned,           // the handler did not stop in time; the worker reported for it
    source_unavailable,  // leasing fails; emitted once per outage
    source_back
  };
  event_kind kind = event_kind::started;
  job_ptr job{};  // null if the event is not about a job
  std::uint32_t attempt = 0;
  milliseconds took{0};  // from the start to the end of the handler
  std::string message{};
};
std::string_view to_string(worker_event::event_kind kind) noexcept;

struct worker_options {
  std::vector<std::string> queues = {"default"};
  lease_request::order pick = lease_request::order::fair;  // among queues that have jobs
  std::size_t concurrency = 0;      // jobs at a time; 0: one for each processor
  std::size_t prefetch = 0;         // jobs leased ahead, beyond `concurrency`
  std::string name{};               // of the worker, for people; empty: host and pid
  milliseconds lease_for{0};        // 0: as the job or its queue defines
  milliseconds poll_for{30'000};    // longest wait of one lease call
  milliseconds report_every{500};   // shortest interval of progress and log reports of a job
  milliseconds stop_grace{10'000};  // from a stop request until the worker reports for the handler

  enum class refusal : std::uint8_t {
    for_good,  // the job is dead without further attempts
    retry,     // the attempt fails; another or a newer worker may succeed
    give_back  // released after give_back_delay; the attempt is not counted
  };
  refusal on_unknown_kind = refusal::retry;
  refusal on_bad_arguments = refusal::for_good;
  milliseconds give_back_delay{5'000};

  // Backoff while the source is unavailable: exponential, half of each delay random.
  milliseconds backoff_first{100};
  milliseconds backoff_longest{10'000};
  std::uint64_t seed = 0;  // of the jitter; 0: different each time

  time_source* time = nullptr;  // null: real_time()
  std::function<void(const worker_event&)> on_event{};
};

// Totals since construction and current values.
struct worker_stats {
  std::uint64_t succeeded = 0, failed = 0, given_back = 0, lost = 0, abandoned = 0;
  std::uint64_t running = 0;    // handlers started and not ended
  std::uint64_t waiting = 0;    // leased and not started
  std::uint64_t unsettled = 0;  // ended, not yet confirmed by the source
  std::uint64_t lease_calls = 0, ack_calls = 0, extend_calls = 0;

  std::uint64_t processed() const noexcept { return succeeded + failed; }
};

class worker {
 public:
  using options = worker_options;

  // The source must outlive the worker.
  explicit worker(work_source& from, options o = {});
  // The worker owns the source.
  explicit worker(std::unique_ptr<work_source> from, options o = {});
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();  // as `stop` with no time to finish; then waits for all handlers to return

  // Adds the handler of a kind, see handler.hpp. A kind must have at most one.
  template <class F>
  void handle(std::string kind, F f) {
    add(std::move(kind), make_handler(std::move(f)));
  }
  // Adds the handler for all kinds without their own.
  template <class F>
  void handle_others(F f) {
    add_others(make_handler(std::move(f)));
  }

  void start();

  // Stops leasing and releases the jobs that have not started. Does not block.
  void close();
  // Closes and waits. Returns ok if all running handlers ended on their own; otherwise the limit
  // (timed_out or stopped) after which their stop was requested. May be called again with a
  // shorter limit.
  status stop(const wait_limits& finish_within = {});

  worker_stats stats() const;

 private:
  class impl;

  void add(std::string kind, job_handler h);
  void add_others(job_handler h);

  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
