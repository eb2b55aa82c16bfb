#pragma once

// Stores jobs, leases each to one worker at a time, and loses none: the job server without a
// network.
//
// Use it inside a program (`jobs::open("jobs.db")`), or behind HTTP and the other protocols, which
// add no guarantees of their own.
//
// Guarantees: any thread may call any member. A future of push, ack, fail, cancel and the like
// becomes ready after its change is durable (as the store defines it); many changes share one
// transaction (group commit). An acknowledged job is kept until a worker acked it, or until it was
// dead, cancelled or deleted and its retention has passed. A job is leased to one worker at a time.
// When its lease expires, that attempt has failed and the job is given to another worker: delivery
// is at least once. Leases are kept in memory: after a crash, jobs that were running are ready
// again at once. `stop` and the destructor save leases, and the next engine on the same store
// restores them until they expire. Time without an engine counts; a lease that expired in it gets
// its full duration again.
// Order: within a queue by priority, then by arrival; a retry arrives when its backoff has passed.
// Jobs with the same key run one at a time in the order of their arrival, independent of priority.
// Between queues: a lease that names several queues takes from all that have ready jobs in
// proportion to their weights, so that none starves.
// Where you resume: continuations run on the committing thread (the engine's own, or a caller of
// `commit_here`), unless `via` names another executor; they must be short.
// Cancel safety: push (waits for capacity), lease (for a job) and wait (for an end) take
// wait_limits; a call that ends early has changed nothing. Cancelling the future of a waiting lease
// ends the wait too.
// Bounds: each queue by its options; memory by a window of every queue's next jobs, at most
// options::window_bytes_max in total; waiting calls by options::waiting_max and waiting_bytes_max;
// uncommitted changes by options::staged_bytes_max.
// When the disk is full or fails: changes in the commit fail with the error, and from then on
// pushes are rejected with it; leases and acks are still attempted; a periodic probe re-enables
// pushes. No reply reports a change as stored before it is durable. A waiting worker may get a job
// before the commit of its push; if that commit fails, the lease is lost and the push fails with
// io_error.
// Cost: a push and its ack are each a share of one commit (./bench engine).
//
//     auto engine = jobs::engine::open(std::move(store)).value();
//     auto id = engine->push({.kind = "mail", .args = {R"({"to":"ada"})"}}).get()->id;
//     auto jobs = engine->lease({.queues = {"default"}}).get();
//     engine->ack(jobs->front().ref()).get();

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/batch.hpp"
#include "jobs/model/cron.hpp"
#include "jobs/model/events.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/model/time.hpp"
#include "jobs/store/store.hpp"
#include "sluice/future/future.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs {

// The queue of the server's own jobs that post the ends of jobs with a webhook. Not counted in
// queues_max.
inline constexpr std::string_view webhook_queue = "sluice/webhooks";

struct engine_options {
  time_source* time = nullptr;  // null: real_time()
  std::uint64_t seed = 0;       // of jitter and lease keys; zero: from the system

  // Ready jobs in memory, all queues together.
  std::uint64_t window_bytes_max = std::uint64_t{16} << 20;
  std::size_t window_jobs_max = 16384;  // ... per queue
  std::size_t queues_max = 10'000;
  std::size_t running_max = 100'000;  // leases at a time
  std::size_t lease_max = 1000;       // jobs in one lease call
  std::size_t waiting_max = 100'000;  // waiting calls: pushes, leases, waits for an end
  // Bytes of these calls, pushed jobs included.
  std::uint64_t waiting_bytes_max = std::uint64_t{64} << 20;
  std::size_t bulk_max = 10'000;  // jobs in one push_many
  // Uncommitted pushes, and the jobs that they evict; further pushes wait, as for capacity. The
  // results and failures of workers have a budget of the same size; beyond it they fail with
  // `overloaded` and the lease stays valid.
  std::uint64_t staged_bytes_max = std::uint64_t{64} << 20;
  // Longest time from a commit to the next `store::flush`. Must be set for a store that makes
  // transactions durable only when it is flushed (sqlite with sync_mode::interval): with zero the
  // engine never flushes, and after a power cut such a store has lost all that the system had not
  // yet written by itself. Other stores do not need it.
  milliseconds flush_every{0};
  milliseconds probe_every{1000};    // period of the probe of a failed store
  std::size_t events_kept = 16'384;  // for readers that were disconnected meanwhile
  // Checks whether the server may post to this URL; called for webhooks and for queues with
  // delivery. Unset: no URL is allowed.
  std::function<void_result(std::string_view url)> check_url{};
  // Called on the committing thread when the options of a queue have changed; must not block.
  std::function<void()> on_queue_change{};
  // Called on the committing thread when the store fails and when it works again; must not call the
  // engine.
  std::function<void(const jobs::health&)> on_health{};
};

class engine {
 public:
  // Fails with the store's own error when the store cannot be loaded.
  static result<std::unique_ptr<engine>> open(std::unique_ptr<store> storage,
                                              engine_options o = {});
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();  // calls stop()

  // Producers. With when_full = block a push waits for capacity, within its limits.
  future<result<push_receipt>> push(job_spec spec, wait_limits limits = {});
  // Returns one result for each spec, in order. With all_or_nothing an error of one job fails all.
  future<std::vector<result<push_receipt>>> push_many(std::vector<job_spec> specs,
                                                      bulk mode = bulk::each,
                                                      wait_limits limits = {});

  // Pushes a batch with its jobs and callbacks, all or nothing. Its jobs may depend on one another
  // (`step`).
  future<result<batch_receipt>> push_batch(batch_spec spec, wait_limits limits = {});

  // Workers. Waits until at least one job is ready and takes up to `max`. The list is never empty:
  // the call fails with timed_out, stopped or shutting_down instead.
  future<result<std::vector<leased_job>>> lease(lease_request request, wait_limits limits = {});
  // Leases the job with this id, from any queue. It may be ready, scheduled, retrying or dead
  // (its attempts then restart at zero). Pauses and rates do not apply. Fails with not_found; with
  // wrong_state if the job runs, is held, or has ended otherwise; with overloaded if running_max,
  // the queue's concurrency or leases of cancelled jobs of its key allow no further lease. If the
  // job was not ready and another job holds its key, it becomes `held`, as after `retry`, and the
  // call fails with wrong_state.
  future<result<leased_job>> lease_job(job_id id, std::string worker = {},
                                       milliseconds lease_for = milliseconds(0));
  result<extension> extend(lease_ref lease, milliseconds by = milliseconds(0),
                           std::optional<jobs::progress> progress = {});
  // Kept in memory until the attempt ends, then stored with the job.
  void_result report(lease_ref lease, jobs::progress progress);
  // Stored as long as the job is.
  future<void_result> log(lease_ref lease, std::vector<std::string> lines);
  future<void_result> ack(lease_ref lease, std::optional<payload> job_result = {});
  future<std::vector<void_result>> ack_many(std::vector<ack_item> items);
  future<result<fail_receipt>> fail(lease_ref lease, failure why);
  future<void_result> release(lease_ref lease, give_back options = {});
  future<std::vector<void_result>> release_many(std::vector<lease_ref> leases);
  // Returns the worker and the expiry of a running job; nullopt: it is not running.
  std::optional<lease_info> lease_of(job_id id) const;

  // Any caller.
  future<result<job>> get(job_id id);
  future<result<job>> wait(job_id id, wait_limits limits = {});  // until it has ended
  // As `wait`, without a copy for each caller: all callers waiting for one job share it. Null: the
  // job had already ended; `get` it.
  future<result<job_ptr>> await_end(job_id id, wait_limits limits = {});
  future<result<job_page>> list(list_request request);
  // Cancels a job, a running one at once: its worker learns of it from its next extend, and its ack
  // or fail has no effect. Until the lease ends it counts in the limits of the queue and of the
  // key. Fails with wrong_state if the job has ended.
  future<result<job>> cancel(job_id id);
  // Ends a job that is not running: it becomes dead with `why` as its last error, and no attempt is
  // counted. Limits and pauses of the queue do not apply. It is kept for the queue's keep_dead,
  // even if its own keep_for is zero. Fails with wrong_state if the job runs or has ended.
  future<result<job>> kill(job_id id, failure why);
  // Returns the next job of a queue in a state: the next to be leased (ready), the next to become
  // ready (scheduled; retrying jobs included), or the dead job that was pushed first. Fails with
  // not_found if there is no such job.
  future<result<job>> peek(std::string queue, job_state state);
  // Makes up to `max` dead jobs of a queue ready, as retry does; if it has no dead jobs, its
  // scheduled and retrying jobs, the soonest first. Returns the jobs it made ready.
  future<result<kicked_jobs>> kick(std::string queue, std::uint64_t max);
  // Makes a dead, cancelled, scheduled or retrying job ready now; a dead or cancelled job restarts
  // its attempts at zero. Fails with wrong_state in any other state.
  future<result<job>> retry(job_id id);
  // Deletes a job in any state but running (wrong_state).
  future<void_result> remove(job_id id);

  future<result<log_page>> logs(job_id id, std::uint64_t after = 0, std::size_t limit = 1000);

  // Batches. Calls that change a whole batch work page by page, as purge does, and return the
  // number of jobs changed.
  future<result<batch_info>> get_batch(job_id id);
  future<result<batch_page>> batches(job_id after = 0, std::size_t limit = 100);
  future<result<batch_info>> close_batch(job_id id);
  future<result<std::uint64_t>> cancel_batch(job_id id);  // all jobs that have not ended
  future<result<std::uint64_t>> retry_batch(job_id id);   // all dead or cancelled jobs

  // Cron. Setting an entry whose name exists changes it and keeps its run history. Of the runs
  // missed at one time, at most 100,000 are counted.
  future<result<cron_info>> set_cron(cron_spec spec);
  future<result<cron_info>> patch_cron(std::string name, cron_patch patch);
  future<void_result> remove_cron(std::string name);
  future<result<push_receipt>> run_cron(std::string name);  // now, in addition to its schedule
  std::vector<cron_info> crons() const;                     // by name
  result<cron_info> get_cron(std::string_view name) const;  // not_found

  // Returns the events after a given event, as far as they are kept; waits until there is one. At
  // the deadline it returns a page without events and with a new `next`.
  future<result<event_page>> events(event_request request, wait_limits limits = {});

  std::vector<queue_info> queues() const;
  result<queue_info> queue(std::string_view name) const;  // not_found
  // Returns the number of ready jobs with a higher priority. If they reach beyond the part of the
  // queue in memory: the number of all ready jobs.
  std::uint64_t ready_above(std::string_view name, std::int64_t priority) const;
  // Creates the queue if necessary.
  future<result<queue_info>> configure(std::string name, queue_patch patch);
  // Stops leases from this queue for the given time, in addition to its options; zero ends the
  // pause. Kept in memory: a restart ends it. Fails with not_found if the queue does not exist.
  void_result pause_for(std::string_view name, milliseconds time);
  // Returns the rest of that pause; zero: none.
  milliseconds pause_left(std::string_view name) const;
  // Deletes every job of a queue that is not running and returns their number. Works page by page:
  // jobs pushed meanwhile stay.
  future<result<std::uint64_t>> purge(std::string name);

  // Commits on the calling thread. For a thread that serves many callers, such as an event loop, at
  // the end of each loop iteration: few staged changes are committed here, many are passed to the
  // committing thread. After its first call, a thread must call this after every group of engine
  // calls; until then the engine does not start committing them. Saves two thread switches per call
  // (./bench beanstalk). `flush_replies` is called after jobs were leased and before the wait for
  // the disk: write the pending replies there. It may call any member but commit_here and stop, and
  // must not block. Returns true while the commit waits, at most 100 us, for the callers of the
  // previous commit to send their next call, or if flush_replies staged changes. Serve the pending
  // input, then call it again.
  bool commit_here(const std::function<void()>& flush_replies = {});

  engine_stats stats() const;
  jobs::health health() const;
  std::string describe_store() const;

  // Shutting down. close: refuses leases and pushes that would wait for capacity, with
  // shutting_down; ends waiting calls of both kinds. Other pushes are still accepted, and workers
  // can extend, ack and fail. drained: becomes ready when no job is leased.
  void close();
  future<status> drained(wait_limits limits = {});
  // Closes, saves the open leases, commits, and joins the committing thread. Later calls fail with
  // shutting_down.
  void stop();

 private:
  class impl;
  explicit engine(std::unique_ptr<impl> implementation);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
