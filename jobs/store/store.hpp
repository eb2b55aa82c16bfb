#pragma once

// The port between the engine and the storage of jobs: memory, SQLite, a database server.
//
// The engine decides, a store persists. `apply` is the only way to change stored data: it takes a
// transaction, a set of changes that is done completely or not at all. The transaction is on stable
// storage when `apply` returns (or when `flush` does, for a store that is flushed at intervals).
// Within the transaction the store also rejects jobs whose unique key is taken, updates the counts,
// applies the rules for waiting jobs (gates.hpp), and returns their results as `effect`s.
//
// Guarantees: a store is called by one thread at a time (the engine's committer). `reader()`
// returns read-only access for another thread; a reader sees whole transactions. If `apply` fails,
// no change is visible and the transaction can be retried. After `io_error` it may still be stored
// if a crash follows before the next transaction; with every other code it is not. `corrupt` with
// error::job: the change of that job does not match the stored data; the transaction can be retried
// without it. A transaction without changes is written too: it tests the store.
// Order: the ready jobs of a queue by priority, the largest first, then by turn, the smallest
// first. A store does not have the state `running`: a leased job is stored as ready until a change
// moves it, so after a crash it is handed out again.
// Cost: every call is bounded by its arguments and independent of the number of stored jobs.
//
// Four conformance suites run on every store: store_suite, store_order_suite, store_random_suite
// and store_gates_suite, in jobs/store/testing.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/model/batch.hpp"
#include "jobs/model/cron.hpp"
#include "jobs/model/events.hpp"
#include "jobs/model/job.hpp"
#include "jobs/model/job_page.hpp"
#include "jobs/model/queue.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs {

using queue_number = std::uint32_t;  // assigned by the engine, from 1

// One change of a transaction; `type` selects the members that apply. `from = held` also matches a
// job that an earlier change of this transaction released. If that change skipped the job, the move
// or drop is a conflict.
struct change {
  enum class op : std::uint8_t {
    add,           // adds `job` to `queue`; takes its unique key, or conflicts
    move,          // moves `id` of `queue` from `from` to `new_state` and stores `fields`
    drop,          // deletes `id` of `queue`, in state `from`. `new_state` is its final state
                   // (done, dead, cancelled); equal to `from` for a job that had ended before
    drop_damaged,  // deletes the damaged job `id`, in any state; see applied::counts
    free_key,      // frees the unique key of `job` if `job` holds it (not for `until::elapsed`)
    set_queue,     // creates or replaces the queue with this number: `settings`
    save_lease,    // stores a lease for the next process: `lease`
    drop_leases,   // deletes all saved leases
    add_batch,     // adds `batch`. May be the first change of a group of adds
    close_batch,   // closes the batch `id`
    drop_batch,    // deletes the batch `id` if it has ended, and skips the jobs that wait for it
    set_cron,      // creates the entry `cron`, or replaces the entry of the same name
    drop_cron,     // deletes the entry with the name of `cron`
    add_logs       // adds `logs` to the job `id`; drops lines beyond limits::log_lines_max
  };
  // The fields that a move stores. Unset fields keep their stored value.
  struct moved {
    unix_time due_at{};      // always stored; zero: none
    std::uint64_t turn = 0;  // stored when not zero
    std::optional<std::uint32_t> attempts{};
    std::optional<unix_time> ended_at{};
    std::optional<attempt_error> error{};     // appended to job::errors, see limits::errors_max
    std::optional<attempt_record> attempt{};  // appended to job::history, see add_attempt
    std::optional<payload> result{};
    std::optional<std::int64_t> priority{};
    std::optional<jobs::progress> progress{};
    bool free_key = false;  // also does op::free_key (requires `job`)
  };
  struct queue_settings {
    std::string name;
    queue_options options;
  };
  struct lease_record {
    std::uint64_t key = 0;
    std::string worker{};
    unix_time until{};
    unix_time began{};
    milliseconds lasts{0};  // between heartbeats; zero: the default of the job or its queue
    std::optional<jobs::progress> progress{};
    // The job was cancelled, and its worker has not acknowledged that; the job may be deleted
    // already. Its place under `job_key` stays taken until the lease ends.
    bool is_cancelled = false;
    std::string job_key{};

    friend bool operator==(const lease_record&, const lease_record&) = default;
  };

  op type = op::add;
  job_state from = job_state::ready;
  job_state new_state = job_state::ready;
  queue_number queue = 0;
  job_id id = 0;
  std::uint64_t weight = 0;  // move, drop: weight_of the job, for the queue's bytes
  // add: the changes of a group are adjacent, in the order of their dependencies, and are all added
  // or, if one of them conflicts, none. Zero: no group.
  std::uint32_t group = 0;
  // add, free_key: the job. move, drop: the job as stored, if it has a unique key to free, a key, a
  // batch or dependencies.
  job_ptr job;
  std::unique_ptr<moved> fields;
  std::unique_ptr<queue_settings> settings;
  std::unique_ptr<lease_record> lease;
  std::unique_ptr<batch_info> batch;
  std::unique_ptr<cron_entry> cron;
  std::unique_ptr<std::vector<log_line>> logs;  // the store assigns their numbers
};

struct transaction {
  unix_time now{};
  std::uint64_t ids_up_to = 0;  // not zero: ids and turns up to here are never assigned again
  std::vector<change> changes;
};

// A change that was not done: an add whose key is taken, whose batch has ended or does not exist,
// or that would be skipped; or an add of a group with such an add; or a move or drop of a skipped
// job.
struct conflict {
  enum class reason : std::uint8_t {
    duplicate,    // `holder` has its unique key
    batch_ended,  // its batch accepts no jobs
    no_such_batch,
    skipped,  // add: a dependency cannot be met any more; move, drop: the job was skipped
    other_of_group
  };
  std::size_t index = 0;  // into transaction::changes
  job_id holder = 0;
  reason cause = reason::duplicate;
};

// A move that the store made by the rules for waiting jobs (gates.hpp).
struct effect {
  enum class kind : std::uint8_t {
    held,        // the job of this add or move (to ready) was stored as held or scheduled instead
    released,    // another job, which was held, became ready or scheduled
    skipped,     // another job, which was held, can never run and was deleted
    batch_ended  // the batch `id` ended; `batch` is its new value
  };
  kind type = kind::held;
  std::size_t cause = 0;  // into transaction::changes
  job_id id = 0;
  queue_number queue = 0;
  job_state from = job_state::held;
  job_state new_state = job_state::held;
  unix_time due_at{};          // scheduled
  std::uint32_t blockers = 0;  // held
  std::uint64_t weight = 0;
  job_ptr job;                        // released: its new value; skipped: its last value
  std::shared_ptr<batch_info> batch;  // batch_ended
};

struct applied {
  std::vector<conflict> conflicts;
  std::vector<effect> effects;  // in the order of the moves
  // After a drop_damaged: the counts of every queue, recounted.
  std::vector<std::pair<queue_number, queue_counts>> counts;
};

struct position {
  std::int64_t priority = std::numeric_limits<std::int64_t>::max();
  std::uint64_t turn = 0;  // default: before every job

  // Smaller is sooner.
  friend constexpr bool operator<(const position& a, const position& b) noexcept {
    return a.priority != b.priority ? a.priority > b.priority : a.turn < b.turn;
  }
  friend constexpr bool operator==(const position&, const position&) = default;
};

struct page_limit {
  std::size_t jobs = 1000;
  std::uint64_t bytes = std::uint64_t{4} << 20;  // a page ends when its jobs reach this weight
};

struct due_page {
  std::vector<job_ptr> jobs;      // due jobs, the earliest first; at most page_limit::bytes
  std::optional<unix_time> next;  // the earliest due_at of the rest, batches included
  std::vector<job_id> batches;    // batches that are due to be deleted
};

// A position among the jobs that wait for their time.
struct due_place {
  unix_time at{};
  job_id id = 0;  // orders jobs with equal times, the smaller first
};

struct timed_page {
  std::vector<job> jobs;
  std::optional<due_place> cursor;  // there may be more after this
};

struct job_filter {
  std::optional<queue_number> queue{};
  std::optional<job_state> state{};  // not running: the engine has the running jobs
  std::string kind{};                // empty: any
  job_id batch = 0;                  // zero: any
};

enum class victim { oldest, newest };

class store_reader {
 public:
  virtual ~store_reader() = default;
  virtual result<std::optional<job>> get(job_id id) = 0;
  virtual result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) = 0;
  virtual result<std::optional<batch_info>> get_batch(job_id id) = 0;
  virtual result<batch_page> list_batches(job_id after, std::size_t limit) = 0;
  virtual result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit) = 0;
};

// Returns saved_lease::job for a job that was cancelled while leased.
job_ptr cancelled_job(job_id id, std::string queue, const change::lease_record& lease);

class store : public store_reader {
 public:
  struct saved_queue {
    queue_number number = 0;
    std::string name;
    queue_options options;
    queue_counts counts;  // running is always zero
  };
  struct saved_lease {
    job_ptr job;  // of a cancelled job: its id, queue and key
    queue_number queue = 0;
    change::lease_record lease;
  };
  struct contents {
    std::uint64_t ids_up_to = 0;
    std::vector<saved_queue> queues;
    std::vector<saved_lease> leases;  // of jobs that are still ready, or cancelled
    std::vector<cron_entry> crons;
  };

  // Must be the first call; called once.
  virtual result<contents> load() = 0;

  virtual result<applied> apply(const transaction& changes) = 0;
  virtual void_result flush() = 0;

  // Returns the ready jobs of a queue after `after`, in order.
  virtual result<std::vector<job_ptr>> ready_after(queue_number queue, position after,
                                                   page_limit limit) = 0;
  virtual result<due_page> due(unix_time now, std::size_t limit) = 0;
  // Returns the scheduled and retrying jobs of a queue after `after`, the soonest first. Scans the
  // due times of all queues, ends of retention included; a page ends after 1000 entries plus ten
  // per requested job, also if none of them matched.
  virtual result<timed_page> timed_after(queue_number queue, due_place after,
                                         std::size_t limit) = 0;
  // Returns ready jobs of a queue to drop: the least urgent priority first, within a priority the
  // oldest or newest first, without jobs for which `skip` is true; at most page_limit::bytes. Reads
  // `limit` jobs plus the skipped ones. Empty only if the queue has no such job.
  virtual result<std::vector<job_ptr>> victims(queue_number queue, victim which, std::size_t limit,
                                               const std::function<bool(job_id)>& skip) = 0;

  // Checks that the store's files are still in place; to be called every `watch_every`, unless that
  // is zero. Fails with `corrupt` if a file was deleted, replaced or truncated; the error names the
  // saved copy of the jobs, and every later change fails with it.
  virtual void_result watch() { return done{}; }
  virtual milliseconds watch_every() const { return milliseconds(0); }

  // Returns the jobs whose rows were found damaged since the last call, as stored and with
  // job::is_damaged set: the engine marks them dead. Only jobs whose control columns, which the
  // rules use, are sound. Other calls skip damaged jobs; `get` and `list` return their
  // damaged_view.
  virtual std::vector<job> take_damaged() { return {}; }

  // Returns the bytes that can be added before the reserve for acks and deletes is used; none: no
  // limit.
  virtual std::optional<std::uint64_t> free_bytes() = 0;
  virtual std::unique_ptr<store_reader> reader() = 0;
  virtual std::string describe() const = 0;  // for people: "SQLite, /var/lib/jobs.db, sync=full"
};

}  // namespace sluice::jobs
