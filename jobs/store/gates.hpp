#pragma once

// The rules for waiting jobs, shared by all stores: a place under a key, the end of other jobs, the
// end of a batch.
//
// A store has the rows (`gate_rows`), `gates` has the rules. The store calls it within a
// transaction: before it writes a job as ready (`admit`), after it wrote a job as ended, deleted or
// revived (`ended`, `gone`, `revived`), and at the end (`finish`). `gates` changes rows through
// gate_rows, and reports moves to the engine as `effects`.
//
// Keys: every key in use has a line, with the number of its active jobs (ready, running, retrying,
// deferred) and of its waiting jobs (held). A job takes a place when only its key could block it,
// and leaves it when it ends; the waiting job with the smallest turn takes it next.
// Dependencies: an edge from the dependency to the waiting job, and on the job the number of its
// open dependencies. An edge is deleted when it is met. A job that depends on the success of a
// failed job stays held until that job is retried and done. A job with a dependency that cannot be
// met any more is skipped: it is deleted, and so are jobs that can only wait for it.
// Batches: counted when a job of the batch is added, ends, or is revived; edges as for jobs.
//
// Guarantees: not thread-safe, no allocation for a job without any of these.
// Cost: for a job with a key, one row is changed when it is added and one when it ends, if no other
// job has the key; plus the edges that an end fires.
// Every function returns false if a row could not be read or written: the caller must then roll
// the transaction back.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/store/store.hpp"

namespace sluice::jobs {

// The number of the line of a key: stored, so it is the same in every process. Keys whose numbers
// collide share a line, and their jobs run one after the other.
using line_number = std::int64_t;
line_number line_of(queue_number queue, std::string_view key) noexcept;

struct line_counts {
  std::uint32_t active = 0;   // jobs with a place
  std::uint32_t waiting = 0;  // jobs that are held for a place
};

struct edge {
  job_id job = 0;  // the waiting job
  after_when when = after_when::success;
};

struct placed_job {
  std::shared_ptr<jobs::job> job;
  queue_number queue = 0;
};

class gate_rows {
 public:
  virtual ~gate_rows() = default;

  // Adds a job to a line: active if fewer than `slots` are active and none waits, else waiting.
  [[nodiscard]] virtual bool enter_line(line_number line, std::uint32_t slots, bool& is_active) = 0;
  // Removes an active or a waiting job from a line. `left`: the remaining counts.
  [[nodiscard]] virtual bool leave_line(line_number line, bool was_active, line_counts& left) = 0;
  // Makes one waiting job of a line active.
  [[nodiscard]] virtual bool move_up(line_number line) = 0;
  // Finds the held job of this line with the smallest turn and no open dependency; null: none.
  // A job with a damaged row is removed from the line and skipped.
  [[nodiscard]] virtual bool first_in_line(line_number line, placed_job& first) = 0;
  // Replaces the counts of a line, if stored, because they do not match the rows of its jobs.
  [[nodiscard]] virtual bool correct_line(line_number line, line_counts now) = 0;
  // queue_options::key_concurrency.
  virtual std::uint32_t slots_of(queue_number queue) = 0;

  // False: no job waits for `on`. True: possibly. Cheap.
  virtual bool may_be_waited_for(job_id on) = 0;
  [[nodiscard]] virtual bool edges_on(job_id on, std::vector<edge>& all) = 0;
  [[nodiscard]] virtual bool add_edge(job_id on, edge e) = 0;
  [[nodiscard]] virtual bool drop_edge(job_id on, edge e) = 0;

  // Reads a job's state; none: no such job.
  [[nodiscard]] virtual bool state_of(job_id id, std::optional<job_state>& state) = 0;
  // Reads a whole job; null if it does not exist or its row is damaged.
  [[nodiscard]] virtual bool read_job(job_id id, placed_job& found) = 0;
  // Stores state, due_at, blockers and has_place of an existing job, and counts the move.
  [[nodiscard]] virtual bool place(const placed_job& changed, job_state from) = 0;
  // Deletes a job with its dependencies, its unique key and its logs, and counts that.
  [[nodiscard]] virtual bool forget(const placed_job& gone) = 0;

  // `is_damaged`: its row does not match its checksum; `found` is empty.
  [[nodiscard]] virtual bool read_batch(job_id id, std::optional<batch_info>& found,
                                        bool& is_damaged) = 0;
  // Adds or replaces a batch.
  [[nodiscard]] virtual bool write_batch(const batch_info& b) = 0;
  [[nodiscard]] virtual bool forget_batch(job_id id) = 0;
};

// The state to write a job in.
struct admission {
  job_state state = job_state::ready;
  unix_time due_at{};
  std::uint32_t blockers = 0;
};

class gates {
 public:
  explicit gates(gate_rows& rows) : rows_(rows) {}

  // True if the rules apply to this job.
  static bool concern(const job_spec& spec) noexcept {
    return !spec.key.empty() || spec.batch != 0 || !spec.after.empty();
  }
  // True if a job has a place under its key; false without a key.
  static bool is_in_line(const job& j) noexcept;
  // True if a job is held only for a place under its key.
  static bool waits_in_line(const job& j) noexcept;
  // Returns job::has_place for a job that is moved to this state.
  static bool keeps_place(const job& as_stored, job_state new_state) noexcept {
    return new_state == job_state::scheduled && is_in_line(as_stored);
  }

  void begin(unix_time now);
  // Finds the reason to reject an add; none: it can be added. For a group, called before any of it
  // is added, with the sorted ids of the group in `own`.
  [[nodiscard]] bool refusal_of(const job_spec& spec, std::span<const job_id> own,
                                std::optional<conflict::reason>& reason);
  // Called before a job is added, in the state that the engine gave it. Writes its edges and counts
  // it in its batch.
  [[nodiscard]] bool admit_new(std::size_t cause, const job& j, queue_number queue,
                               admission& placement);
  // Called before an existing job is moved to ready. `blockers` as stored.
  [[nodiscard]] bool admit(std::size_t cause, const job& as_stored, queue_number queue,
                           admission& placement);

  // Called after an unfinished job was written in this final state. `as_stored` is its value
  // before; null: it has no key, batch or dependencies.
  [[nodiscard]] bool ended(std::size_t cause, job_id id, queue_number queue, const job* as_stored,
                           job_state as);
  // Called after a job was deleted; for an unfinished job, after `ended`.
  [[nodiscard]] bool gone(std::size_t cause, job_id id);
  // Called after an ended job in state `from` was written as unfinished again.
  [[nodiscard]] bool revived(const job& as_stored, job_state from);

  // The lines and the batch of a deleted job with a damaged row, recounted from the rows of the
  // other jobs.
  struct remains {
    queue_number queue = 0;
    std::vector<std::pair<line_number, line_counts>> lines{};
    job_id batch = 0;
    std::uint64_t pending = 0;  // of the batch
  };
  // Called after a job with a damaged row was deleted.
  [[nodiscard]] bool damaged_gone(std::size_t cause, job_id id, const remains& left);

  [[nodiscard]] bool add_batch(const batch_info& b);  // must be open; close_batch closes it
  [[nodiscard]] bool close_batch(std::size_t cause, job_id id);
  [[nodiscard]] bool drop_batch(std::size_t cause, job_id id);

  // Writes the batches whose counts changed.
  [[nodiscard]] bool finish();
  std::vector<effect> take_effects() { return std::move(effects_); }

 private:
  enum class hope : std::uint8_t { met, open, lost };
  // The result of each condition of a dependency, indexed by after_when.
  using outcome = std::array<hope, 3>;
  struct firing {
    job_id on = 0;
    outcome outcomes{};
  };
  struct known_batch {
    batch_info now;
    bool is_changed = false;
    bool is_damaged = false;  // `now` is empty, and is not written
  };

  static outcome outcome_of(job_state state) noexcept;
  static outcome outcome_of(const batch_info& b) noexcept;
  bool find_outcome(job_id on, outcome& outcomes);
  bool enter(const job& j, queue_number queue, admission& placement);
  bool leave(std::size_t cause, const job& j, queue_number queue);
  bool fill_line(std::size_t cause, line_number line, queue_number queue, line_counts left);
  void fire_later(job_id on, const outcome& outcomes);
  bool fire_all(std::size_t cause);
  bool fire(std::size_t cause, const firing& f);
  bool meet(std::size_t cause, job_id id);
  bool skip(std::size_t cause, job_id id);
  bool find_batch(job_id id, known_batch*& found);        // null: no such batch
  bool find_sound_batch(job_id id, known_batch*& found);  // null also if it is damaged
  bool count(std::size_t cause, job_id batch, int total, int pending, int failed);
  void settle_batch(std::size_t cause, known_batch& b, bool had_failed);
  void note_held(std::size_t cause, const job& j, queue_number queue, const admission& placement);
  void note_released(std::size_t cause, const placed_job& now);

  gate_rows& rows_;
  unix_time now_{};
  std::vector<effect> effects_;
  std::deque<firing> to_fire_;
  std::unordered_map<job_id, known_batch> batches_;
};

}  // namespace sluice::jobs
