#pragma once

// The port between the engine and whatever keeps the jobs: memory, SQLite, a database elsewhere.
//
// The engine decides, a store remembers. All that the engine wants remembered goes in through one
// door, `apply`: a batch of changes that happens as a whole or not at all, and that is on stable
// storage when `apply` returns (or when `flush` does, for a store that was opened to be flushed at
// intervals). What the store adds of its own, in the same transaction: it refuses a job whose
// unique key is taken; it keeps the counts; and it follows the rules of gates.hpp, by which jobs
// wait for one another, and says in `effect`s what came of them.
//
// Guarantees: one thread at a time calls a store (the engine's committer). `reader()` gives a
// second way in, for looking only, which another thread may use meanwhile; it sees whole batches.
// An error from `apply` means that nothing of the batch happened and that it can be tried again.
// After `io_error` it may be there nonetheless if a crash follows before the next batch; every
// other code is certain. `corrupt` with error::job: the change of that job does not fit what is
// stored, and the batch can be tried without it. A batch without changes is written too, so that it
// shows whether the store works. Order: the ready jobs of a queue by priority, the larger first,
// then by turn, the smaller first. `running` is unknown here: what a worker has is ready until a
// change says otherwise, so that after a crash it is there to be taken again. Cost: every call is
// bounded by its arguments, and none grows with the number of jobs kept.
//
// store_suite.hpp is the conformance suite that every store passes.

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

using queue_number = std::uint32_t;  // the engine gives them out, from 1

// One thing that a batch does. `what` says which of the other members count. A move or drop from
// held is one also if an earlier change of the batch has released the job; if that has made it
// skipped, it is a conflict.
struct change {
  enum class op : std::uint8_t {
    add,           // a new job: `it`, in `queue`. Takes its unique key, or conflicts
    move,          // `id` of `queue` goes from `from` to `to`; the members of `moved` are stored
    drop,          // `id` of `queue`, now in `from`, is forgotten. `to`: as what it ended with that
                   // (done, dead, cancelled); for one that had ended before, `from` again
    drop_damaged,  // the damaged job `id` is forgotten, whatever its state; see applied::counts
    free_key,      // the unique key of `it` is free, if `it` has it (any `until` but `elapsed`)
    set_queue,     // a queue with this number, name and options is there
    save_lease,    // a lease outlives this process: `lease`
    drop_leases,   // all saved leases are forgotten
    add_batch,     // a new batch: `batch`. May be part of a group of adds, as its first
    close_batch,   // the batch `id` is not open any more
    drop_batch,    // the batch `id` is forgotten, if it has ended, and what waits for it skipped
    set_cron,      // the entry `cron` is there, instead of one of the same name
    drop_cron,     // the entry of the name of `cron` is forgotten
    add_logs       // lines of the job `id`: `logs`. Those beyond limits::log_lines_max are left out
  };
  // What a move stores. Members that do not apply keep what the store has.
  struct moved {
    unix_time due_at{};      // always stored; zero: none
    std::uint64_t turn = 0;  // stored when not zero
    std::optional<std::uint32_t> attempts{};
    std::optional<unix_time> ended_at{};
    std::optional<attempt_error> error{};     // added to those of the job, see limits::errors_max
    std::optional<attempt_record> attempt{};  // added to its history, see add_attempt
    std::optional<payload> result{};
    std::optional<std::int64_t> priority{};
    std::optional<jobs::progress> progress{};
    bool free_key = false;  // as op::free_key, in the same step (needs `it`)
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
    milliseconds lasts{0};  // without a heartbeat; zero: the default of the job or its queue
    std::optional<jobs::progress> progress{};
    // The job was cancelled, and its worker has not let go: it may be forgotten already. It keeps
    // its place under this key until the lease ends.
    bool is_cancelled = false;
    std::string job_key{};

    friend bool operator==(const lease_record&, const lease_record&) = default;
  };

  op what = op::add;
  job_state from = job_state::ready;
  job_state to = job_state::ready;
  queue_number queue = 0;
  job_id id = 0;
  std::uint64_t weight = 0;  // of move and drop: weight_of the job, for the queue's bytes
  // add: changes of one group stand side by side and are added all or, when one of them conflicts,
  // none, each after those of the group that it waits for. Zero: each for itself.
  std::uint32_t group = 0;
  // add, free_key. Of move and drop: the job as it is stored, if it has a unique key to be freed, a
  // key, a batch or dependencies.
  job_ptr it;
  std::unique_ptr<moved> how;
  std::unique_ptr<queue_settings> settings;
  std::unique_ptr<lease_record> lease;
  std::unique_ptr<batch_info> batch;
  std::unique_ptr<cron_entry> cron;
  std::unique_ptr<std::vector<log_line>> logs;  // their numbers are given by the store
};

struct batch {
  unix_time now{};
  std::uint64_t ids_up_to = 0;  // not zero: no id or turn up to here is ever given out again
  std::vector<change> changes;
};

// An add that was not done: its key is taken, its batch has ended (wrong_state) or is not there
// (not_found), or it would be skipped; or that is so of another of its group.
struct conflict {
  enum class reason : std::uint8_t {
    duplicate,    // `holder` has its unique key
    batch_ended,  // nothing can be pushed into its batch any more
    no_such_batch,
    skipped,  // what it waits for can no longer come true; of a move or drop: it is gone
    other_of_group
  };
  std::size_t index = 0;  // into batch::changes
  job_id holder = 0;
  reason why = reason::duplicate;
};

// What a store did to a job on account of the rules by which jobs wait for one another.
struct effect {
  enum class kind : std::uint8_t {
    held,        // the job of this add or move (to ready) was held instead, or scheduled
    released,    // another job, which was held, is ready or scheduled now
    skipped,     // another job, which was held, can never run, and was dropped
    batch_ended  // the batch `id`: with `batch` as it is now
  };
  kind what = kind::held;
  std::size_t cause = 0;  // into batch::changes
  job_id id = 0;
  queue_number queue = 0;
  job_state from = job_state::held;
  job_state to = job_state::held;
  unix_time due_at{};          // for scheduled
  std::uint32_t blockers = 0;  // for held
  std::uint64_t weight = 0;
  job_ptr it;                         // of released: as it is now; of skipped: as it was
  std::shared_ptr<batch_info> batch;  // of batch_ended
};

struct applied {
  std::vector<conflict> conflicts;
  std::vector<effect> effects;  // in the order in which they came about
  // After a drop_damaged: the counts of every queue.
  std::vector<std::pair<queue_number, queue_counts>> counts;
};

struct position {
  std::int64_t priority = std::numeric_limits<std::int64_t>::max();
  std::uint64_t turn = 0;  // as made: before every job

  // Smaller is sooner.
  friend constexpr bool operator<(const position& a, const position& b) noexcept {
    return a.priority != b.priority ? a.priority > b.priority : a.turn < b.turn;
  }
  friend constexpr bool operator==(const position&, const position&) = default;
};

struct page_limit {
  std::size_t jobs = 1000;
  std::uint64_t bytes = std::uint64_t{4} << 20;  // no further job once this many are there
};

struct due_page {
  std::vector<job_ptr> jobs;  // whose due_at has come, the earliest first; bytes as page_limit's
  std::optional<unix_time> next;  // the earliest due_at of all the others, batches included
  std::vector<job_id> batches;    // that are due to be forgotten
};

// A place among the jobs that wait for their time.
struct due_place {
  unix_time at{};
  job_id id = 0;  // of those that are due at the same time, the smaller is sooner
};

struct timed_page {
  std::vector<job> jobs;
  std::optional<due_place> cursor;  // there may be more after this
};

struct job_filter {
  std::optional<queue_number> queue{};
  std::optional<job_state> state{};  // never running: the engine knows those
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

// saved_lease::it of a job that was cancelled while a worker had it.
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
    job_ptr it;  // of a cancelled job: its id, queue and key
    queue_number queue = 0;
    change::lease_record lease;
  };
  struct contents {
    std::uint64_t ids_up_to = 0;
    std::vector<saved_queue> queues;
    std::vector<saved_lease> leases;  // of jobs that are still ready, or cancelled
    std::vector<cron_entry> crons;
  };

  // First call of all, once.
  virtual result<contents> load() = 0;

  virtual result<applied> apply(const batch& changes) = 0;
  virtual void_result flush() = 0;

  // The ready jobs of a queue that come after `after`, in order.
  virtual result<std::vector<job_ptr>> ready_after(queue_number queue, position after,
                                                   page_limit limit) = 0;
  virtual result<due_page> due(unix_time now, std::size_t limit) = 0;
  // The jobs of a queue that are scheduled or retrying and come after `after`, the soonest first.
  // Goes through what is due in any queue, the ends of retentions included; a page ends after 1000
  // of these and ten for each job wanted, whether or not one of them fitted.
  virtual result<timed_page> timed_after(queue_number queue, due_place after,
                                         std::size_t limit) = 0;
  // Ready jobs of a queue, the least urgent priority first, in each those that arrived first or
  // last; none for which `skip` is true; bytes as page_limit's. Looks at `limit` plus as many as
  // are skipped. None at all only when there is none.
  virtual result<std::vector<job_ptr>> victims(queue_number queue, victim which, std::size_t limit,
                                               const std::function<bool(job_id)>& skip) = 0;

  // Checks that the store's files are still in their place; to be called every `watch_every`,
  // unless that is zero. `corrupt`: one was deleted, replaced or cut short. The error names the
  // copy of the stored jobs, and from then on every change is refused with it.
  virtual void_result watch() { return done{}; }
  virtual milliseconds watch_every() const { return milliseconds(0); }

  // Jobs whose rows reads found damaged since the last call, as they are stored: the engine marks
  // them dead. Other calls pass over them, `get` and `list` give damaged_view of them. Only those
  // of which all is sound that the rules act on; job::is_damaged is set.
  virtual std::vector<job> take_damaged() { return {}; }

  // How many more bytes can be added before the reserve for acks and deletes is touched; none: no
  // such limit.
  virtual std::optional<std::uint64_t> room() = 0;
  virtual std::unique_ptr<store_reader> reader() = 0;
  virtual std::string describe() const = 0;  // for people: "SQLite, /var/lib/jobs.db, sync=full"
};

}  // namespace sluice::jobs
