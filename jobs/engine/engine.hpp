#pragma once

// Keeps jobs, hands each to one worker at a time, and loses none: the job server without a network.
//
// Use it inside a program (`jobs::open("jobs.db")`), or behind HTTP and the other protocols, which
// add nothing to what is said here.
//
// Guarantees: any thread may call anything. A future of push, ack, fail, cancel and the like
// becomes ready after its change is durable, in the store's sense of the word; many of them share
// one transaction. Every job that was acknowledged is there until a worker acked it or it was dead,
// cancelled or deleted and its retention was over. A job is leased to one worker at a time; when
// its lease runs out it fails that attempt and is given to another, so delivery is at least once.
// Leases themselves are kept in memory: after a crash, what was running is ready again at once.
// `stop` and destruction save them, and the next engine on the same store honours them until they
// run out. Time without an engine counts, except that a lease that ran out in it gets its duration
// again.
// Order: in a queue by priority, then by arrival; a retry arrives when its pause is over. Jobs with
// the same key run one at a time in the order of their arrival, whatever their priority.
// Between queues: a lease that names several takes from those that have jobs in proportion to their
// weights, so that none starves.
// Where you resume: continuations run on the thread that commits, which is the engine's own or one
// that helps it (`help`), unless `via` names another executor; they must be short.
// Limits on waiting: push (for room), lease (for a job), wait (for an end) take wait_limits; one
// that ends early did nothing. Cancelling the future of a waiting lease ends the wait too.
// Bounds: each queue by its options; in memory a window of every queue's next jobs, at most
// options::window_bytes_max in all; waiting calls by options::waiting_max
// and waiting_bytes_max; what is on its way to the store by options::staged_bytes_max.
// When the disk is full or fails: what was to be committed is answered with the reason, pushes are
// refused with it from then on, leases and acks are tried on; a probe brings the pushes back.
// Nothing is said to be stored before it is. But a worker who waits may get a job that was pushed
// while it is being stored, and if that fails, its lease is lost and the push hears io_error.
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

// Where the ends of jobs with a webhook wait to be posted. The server's own: it counts against no
// bound on queues.
inline constexpr std::string_view webhook_queue = "sluice/webhooks";

struct engine_options {
  time_source* time = nullptr;  // null: real_time()
  std::uint64_t seed = 0;       // of jitter and lease keys; zero: from the system

  std::uint64_t window_bytes_max = std::uint64_t{16} << 20;  // ready jobs kept in memory, in all
  std::size_t window_jobs_max = 16384;                       // ... of one queue
  std::size_t queues_max = 10'000;
  std::size_t running_max = 100'000;  // leases at a time
  std::size_t lease_max = 1000;       // jobs in one lease call
  std::size_t waiting_max = 100'000;  // calls that wait: pushes, leases, waits for an end
  std::uint64_t waiting_bytes_max = std::uint64_t{64} << 20;  // ... and the jobs that those push
  std::size_t bulk_max = 10'000;                              // jobs in one push_many
  // Pushes on their way to the store, and the jobs that they drop; beyond it they wait, as for
  // room. As much again of results and failures of workers; beyond that they are `overloaded`, and
  // the lease stays as it was.
  std::uint64_t staged_bytes_max = std::uint64_t{64} << 20;
  // How long after a commit `store::flush` is called, at the latest. It must be set for a store
  // that makes batches durable only when it is flushed (sqlite with sync_mode::interval): with zero
  // the engine never flushes, and such a store loses in a power cut whatever the system had not
  // written by itself. Others need none.
  milliseconds flush_every{0};
  milliseconds probe_every{1000};    // how often a store that failed is tried again
  std::size_t events_kept = 16'384;  // for those who ask for what happened while they were away
  // Whether the server may post to this URL; asked for webhooks and queues that are delivered.
  // None: it may to none.
  std::function<void_result(std::string_view url)> check_url{};
  // Told when the options of a queue have changed, on the committing thread; must not wait.
  std::function<void()> on_queue_change{};
  // Told when the store fails and when it works again, on the committing thread; must not call the
  // engine.
  std::function<void(const jobs::health&)> on_health{};
};

class engine {
 public:
  // The store's own error when it cannot be loaded.
  static result<std::unique_ptr<engine>> open(std::unique_ptr<store> keep, engine_options o = {});
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();  // as stop()

  // Producers. With when_full = block a push waits for room, until its limits.
  future<result<push_receipt>> push(job_spec spec, wait_limits limits = {});
  // One result for each, in order; with all_or_nothing an error of one is everyone's.
  future<std::vector<result<push_receipt>>> push_many(std::vector<job_spec> specs,
                                                      bulk mode = bulk::each,
                                                      wait_limits limits = {});

  // A batch with its jobs and callbacks, all or nothing. Its jobs may wait for one another
  // (`step`).
  future<result<batch_receipt>> push_batch(batch_spec spec, wait_limits limits = {});

  // Workers. Waits until there is at least one job, takes up to `max`; never an empty list:
  // timed_out, stopped or shutting_down instead.
  future<result<std::vector<leased_job>>> lease(lease_request what, wait_limits limits = {});
  // This job, whichever queue it is in: ready, scheduled, retrying or dead (its attempts are then
  // counted from zero again). Neither a pause nor a rate keeps it back. not_found; wrong_state: it
  // runs, is held, or has ended otherwise; overloaded: running_max, the queue's concurrency or the
  // leases of cancelled jobs of its key allow no further lease. A job that was not ready, and of
  // whose key another has the turn, is held from then on, as after `retry`: wrong_state.
  future<result<leased_job>> lease_job(job_id id, std::string worker = {},
                                       milliseconds lease_for = milliseconds(0));
  result<extension> extend(lease_ref lease, milliseconds by = milliseconds(0),
                           std::optional<jobs::progress> how_far = {});
  // Kept in memory until the attempt ends, and then with the job.
  void_result report(lease_ref lease, jobs::progress how_far);
  // Kept as long as the job is.
  future<void_result> log(lease_ref lease, std::vector<std::string> lines);
  future<void_result> ack(lease_ref lease, std::optional<payload> job_result = {});
  future<std::vector<void_result>> ack_many(std::vector<ack_item> items);
  future<result<fail_receipt>> fail(lease_ref lease, failure why);
  future<void_result> release(lease_ref lease, give_back how = {});
  future<std::vector<void_result>> release_many(std::vector<lease_ref> leases);
  // Who has a running job, and until when; none: nobody.
  std::optional<lease_info> lease_of(job_id id) const;

  // Anybody.
  future<result<job>> get(job_id id);
  future<result<job>> wait(job_id id, wait_limits limits = {});  // until it has ended
  // The same without a copy for each caller: all that wait for one job share it. Null: it had ended
  // before; `get` it.
  future<result<job_ptr>> await_end(job_id id, wait_limits limits = {});
  future<result<job_page>> list(list_request what);
  // A running job is cancelled at once; its worker learns it from the next extend, and its ack or
  // fail changes nothing any more. Until the lease ends, it counts for the limits of the queue and
  // of the key. Ended already: wrong_state.
  future<result<job>> cancel(job_id id);
  // Ends a job that nobody has taken: it is dead, with `why` as its last error, and no attempt is
  // counted. No limit or pause of its queue keeps it back, and it is kept as the dead of its queue
  // are, even if the job itself is not to be kept. Running, or ended already: wrong_state.
  future<result<job>> kill(job_id id, failure why);
  // The job of a queue that is next: to be taken (ready), to become ready (scheduled; those that
  // retry count as such), or, of the dead, the one that was pushed first. not_found: there is none.
  future<result<job>> peek(std::string queue, job_state state);
  // Makes up to `max` dead jobs of a queue ready, as retry does; of a queue that has none, those
  // that are scheduled or retrying, the next ones first. Which those were.
  future<result<kicked_jobs>> kick(std::string queue, std::uint64_t max);
  // Dead, cancelled, scheduled or retrying: ready now, its attempts counted from zero again if it
  // was dead or cancelled. Otherwise wrong_state.
  future<result<job>> retry(job_id id);
  // Forgets it, in any state but running (wrong_state).
  future<void_result> remove(job_id id);

  future<result<log_page>> logs(job_id id, std::uint64_t after = 0, std::size_t limit = 1000);

  // Batches. What is done to a whole batch goes in steps, as purge does, and says how many jobs it
  // was done to.
  future<result<batch_info>> get_batch(job_id id);
  future<result<batch_page>> batches(job_id after = 0, std::size_t limit = 100);
  future<result<batch_info>> close_batch(job_id id);
  future<result<std::uint64_t>> cancel_batch(job_id id);  // all that have not ended
  future<result<std::uint64_t>> retry_batch(job_id id);   // all that are dead or cancelled

  // Cron. Setting one of a name that is there changes it, and keeps what it has run. Of runs that
  // were missed at once no more than 100,000 are counted.
  future<result<cron_info>> set_cron(cron_spec spec);
  future<result<cron_info>> patch_cron(std::string name, cron_patch patch);
  future<void_result> remove_cron(std::string name);
  future<result<push_receipt>> run_cron(std::string name);  // now, besides its times
  std::vector<cron_info> crons() const;                     // by name
  result<cron_info> get_cron(std::string_view name) const;  // not_found

  // What happened after a given event, as far as it is kept; waits until there is something.
  // A page without events, and a new `next`, at the deadline.
  future<result<event_page>> events(event_request what, wait_limits limits = {});

  std::vector<queue_info> queues() const;
  result<queue_info> queue(std::string_view name) const;  // not_found
  // How many of its ready jobs have a higher priority than this. Where they are more than the queue
  // has in memory: all that are ready.
  std::uint64_t ready_above(std::string_view name, std::int64_t priority) const;
  future<result<queue_info>> configure(std::string name, queue_patch patch);  // makes it if need be
  // Gives no jobs of this queue to anybody for so long, whatever its options say; zero: it does
  // again. Kept in memory: a restart ends it. not_found: there is no such queue.
  void_result pause_for(std::string_view name, milliseconds time);
  // How much is left of that; zero: it is not paused so.
  milliseconds pause_left(std::string_view name) const;
  // Forgets every job of a queue that is not running; how many those were. Goes in steps: what is
  // pushed meanwhile stays.
  future<result<std::uint64_t>> purge(std::string name);

  // For a thread that serves many callers, such as an event loop, at the end of each of its turns:
  // what they have staged is committed here if it is little, or else handed to the committing
  // thread. From the first call on, this thread must call it after whatever else it calls: until
  // then nothing of that is begun. Spares two changes of threads for each call (./bench beanstalk).
  // `between` is called when jobs were given to workers and the disk is to be waited for next:
  // write what there is to write. It may call all of this but help and stop, and waits for nothing.
  // True: the commit waits, for 100 us at most, for callers who were answered just now and are
  // about to come back; or something was asked in between. Serve who has come, and call it again.
  bool help(const std::function<void()>& between = {});

  engine_stats stats() const;
  jobs::health health() const;
  std::string describe_store() const;

  // Shutting down. close: no leases any more, and no push waits for room; calls that do either get
  // shutting_down. Other pushes are still taken, and workers can extend, ack and fail. drained:
  // becomes ready when nothing is running.
  void close();
  future<status> drained(wait_limits limits = {});
  // close, saves the leases that are still out, commits, ends the committing thread. Calls after it
  // hear shutting_down.
  void stop();

 private:
  class impl;
  explicit engine(std::unique_ptr<impl> it);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
