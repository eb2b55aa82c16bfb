#pragma once

// Takes jobs from an engine or a server and does them: a handler for each kind, so many at a time,
// each kept leased while it runs, each told to stop when there is no use in going on.
//
// Use it in a program of your own, beside the engine or far from it (work_source.hpp). For jobs in
// another language there is `sluice work --exec` (process.hpp), which is a worker with one handler.
//
// Guarantees: any thread may call anything, but `handle` only before `start`, and `stop` and the
// destructor not from a handler. A job is leased only when there is room to run it (or to keep it
// ready, see prefetch). Every lease is extended at a third of its time, all of them by one thread,
// however many they are; through that the worker also hears that a job was cancelled.
// A handler's stop_token asks when the job is cancelled, when its lease is lost, at the job's time
// limit, and at shutdown when the time for finishing is over. A handler that has not ended
// `stop_grace` later is answered for: cancelled and over its limit, its job fails; at shutdown it
// is given back; and what the handler says in the end is not heard. Its thread, which nobody can
// take from it, stays busy until it returns.
// What a job ended with is told to the source until it has heard, or until the lease has run out:
// then the job is somebody else's, which is what "at least once" means.
// While the source is unavailable the worker waits, longer each time and not in step with others,
// and goes on when it is back. Jobs that run are not disturbed until their lease has run out.
// Shutdown: `stop` leases no more, gives back what has not begun, lets what runs finish until the
// limits, asks it to stop, and returns when all of it has been told to the source. Nothing is lost.
// Where things run: handlers on the worker's own pool; `on_event` on its coordinating thread, so it
// must be short and must not call the worker's `stop`.
// Cost: one thread beside the pool, and none for a coroutine that waits. Acks that become due while
// others are on their way go together as one call.
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

// Something that a log would want to say. `message` is for people.
struct worker_event {
  enum class what : std::uint8_t {
    started,             // a handler is about to be called
    succeeded,           // ... and the source knows
    failed,              // ... and the source knows
    given_back,          // not done: released for another worker
    lost,                // the lease was gone: another worker does it, or has done it
    abandoned,           // the handler did not stop in time and was answered for
    source_unavailable,  // no lease can be had; said once
    source_back
  };
  what kind = what::started;
  job_ptr it{};  // null: not about a job
  std::uint32_t attempt = 0;
  milliseconds took{0};  // from the start of the handler to its end
  std::string message{};
};
std::string_view to_string(worker_event::what kind) noexcept;

struct worker_options {
  std::vector<std::string> queues = {"default"};
  lease_request::order pick = lease_request::order::fair;  // among those that have jobs
  std::size_t concurrency = 0;      // jobs at a time; zero: one for each processor
  std::size_t prefetch = 0;         // jobs leased beyond those, to begin at once
  std::string name{};               // who leases, for people; empty: host and pid
  milliseconds lease_for{0};        // zero: as the job or its queue says
  milliseconds poll_for{30'000};    // how long one call waits for jobs
  milliseconds report_every{500};   // progress and log lines of a job, at the most
  milliseconds stop_grace{10'000};  // from the stop_token's asking to giving up

  enum class refusal : std::uint8_t {
    for_good,  // the job is dead: trying again would not help
    retry,     // it fails as any other: another worker, or a newer one, may do better
    give_back  // released after give_back_delay, the attempt not counted
  };
  refusal on_unknown_kind = refusal::retry;
  refusal on_bad_arguments = refusal::for_good;
  milliseconds give_back_delay{5'000};

  // Between tries of a source that is unavailable: doubling, half of it at random.
  milliseconds backoff_first{100};
  milliseconds backoff_longest{10'000};
  std::uint64_t seed = 0;  // of that; zero: different each time

  time_source* time = nullptr;  // null: real_time()
  std::function<void(const worker_event&)> on_event{};
};

// Since the worker was made, and as of now.
struct worker_stats {
  std::uint64_t succeeded = 0, failed = 0, given_back = 0, lost = 0, abandoned = 0;
  std::uint64_t running = 0;    // handlers that have begun and not ended
  std::uint64_t waiting = 0;    // leased and not begun
  std::uint64_t unsettled = 0;  // ended, and the source does not know yet
  std::uint64_t lease_calls = 0, ack_calls = 0, extend_calls = 0;

  std::uint64_t processed() const noexcept { return succeeded + failed; }
};

class worker {
 public:
  using options = worker_options;

  // The source must outlive the worker.
  explicit worker(work_source& from, options o = {});
  // The worker has the source.
  explicit worker(std::unique_ptr<work_source> from, options o = {});
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();  // as stop, without waiting for what runs; then for the handlers themselves

  // One handler for a kind; a second one is a broken contract. See handler.hpp.
  template <class F>
  void handle(std::string kind, F f) {
    add(std::move(kind), make_handler(std::move(f)));
  }
  // For every kind that has no handler of its own.
  template <class F>
  void handle_others(F f) {
    add_others(make_handler(std::move(f)));
  }

  void start();

  // Leases no more, and gives back what has not begun. Does not wait.
  void close();
  // As above. ok: all that ran has ended by itself. Otherwise timed_out or stopped: the limit that
  // made it ask the handlers to stop. A second call may be in a greater hurry.
  status stop(const wait_limits& finish_within = {});

  worker_stats stats() const;

 private:
  class impl;

  void add(std::string kind, job_handler h);
  void add_others(job_handler h);

  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
