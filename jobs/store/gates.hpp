#pragma once

// The rules by which jobs wait for one another, the same for every store: a place under a key, the
// end of other jobs, the end of a batch.
//
// A store has the rows (`gate_rows`); `gates` has the rules, and is asked at three moments of a
// batch: before a job is written as ready (`admit`), after one was written as ended, deleted or
// brought back (`ended`, `gone`, `revived`), and at the end of the batch (`finish`). It changes
// rows through gate_rows, and notes in `effects` what the engine must know.
//
// Keys: a line for every key of a queue that is in use, with the number of jobs that have a place
// (ready, running, retrying, put off) and of those that wait, held. A place is taken when a job
// could run but for its key, and is left when it ends; the one with the smallest turn follows.
// Dependencies: an edge from what is waited for to who waits, and on the job the number of those
// that are open. An edge goes when it has come true. A job that waits for the success of one that
// failed stays held, until that one is retried and done. One that waits for what can no longer
// happen is skipped: dropped, and so is what could only wait for it.
// Batches: counted when a job of it is added, ends, or is brought back; edges on them as on jobs.
//
// Guarantees: not thread-safe, no allocation for a job that has none of these. Cost: for a job with
// a key, one row's change when it is added and one when it ends, if nobody else wants the key; and
// in proportion to the edges that an end fires.
// Every function is false when a row could not be read or written: the batch is then undone.

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

// The number of the line of a key: the same in every run. Two keys that had the same one would
// only run one after the other.
using line_number = std::int64_t;
line_number line_of(queue_number queue, std::string_view key) noexcept;

struct line_counts {
  std::uint32_t active = 0;   // jobs that have a place
  std::uint32_t waiting = 0;  // jobs that are held for one
};

struct edge {
  job_id job = 0;  // who waits
  after_when when = after_when::success;
};

struct placed_job {
  std::shared_ptr<job> it;
  queue_number queue = 0;
};

class gate_rows {
 public:
  virtual ~gate_rows() = default;

  // One more in line: it is active if fewer than `slots` are and nobody waits, and waits otherwise.
  [[nodiscard]] virtual bool enter_line(line_number line, std::uint32_t slots, bool& is_active) = 0;
  // One fewer, of the active or of those that wait; what is left of it.
  [[nodiscard]] virtual bool leave_line(line_number line, bool was_active, line_counts& left) = 0;
  // One that waits is active.
  [[nodiscard]] virtual bool move_up(line_number line) = 0;
  // The held job of this line with the smallest turn that has no open dependency; null: none.
  // A job whose row is damaged leaves the line, and the next one is taken.
  [[nodiscard]] virtual bool first_in_line(line_number line, placed_job& first) = 0;
  // Replaces the counts of a line, if it has some, because they do not fit the rows of its jobs.
  [[nodiscard]] virtual bool correct_line(line_number line, line_counts now) = 0;
  // queue_options::key_concurrency.
  virtual std::uint32_t slots_of(queue_number queue) = 0;

  // False for certain: nobody waits for it. Cheap.
  virtual bool may_be_waited_for(job_id on) = 0;
  [[nodiscard]] virtual bool edges_on(job_id on, std::vector<edge>& all) = 0;
  [[nodiscard]] virtual bool add_edge(job_id on, edge e) = 0;
  [[nodiscard]] virtual bool drop_edge(job_id on, edge e) = 0;

  // A job's state; none: there is no such job.
  [[nodiscard]] virtual bool state_of(job_id id, std::optional<job_state>& state) = 0;
  // The whole job; null if it is not there, or its row is damaged.
  [[nodiscard]] virtual bool read_job(job_id id, placed_job& found) = 0;
  // Stores state, due_at, blockers and has_place of a job that is there, and counts the move.
  [[nodiscard]] virtual bool place(const placed_job& changed, job_state from) = 0;
  // Forgets a job, with the edges on which it waits, its unique key and its logs, and counts that.
  [[nodiscard]] virtual bool forget(const placed_job& gone) = 0;

  // `is_damaged`: its row does not match its checksum; `found` is empty.
  [[nodiscard]] virtual bool read_batch(job_id id, std::optional<batch_info>& found,
                                        bool& is_damaged) = 0;
  // One that is there, or a new one.
  [[nodiscard]] virtual bool write_batch(const batch_info& b) = 0;
  [[nodiscard]] virtual bool forget_batch(job_id id) = 0;
};

// How a job is to be written.
struct admission {
  job_state state = job_state::ready;
  unix_time due_at{};
  std::uint32_t blockers = 0;
};

class gates {
 public:
  explicit gates(gate_rows& rows) : rows_(rows) {}

  // Whether anything here is about this job.
  static bool concern(const job_spec& spec) noexcept {
    return !spec.key.empty() || spec.batch != 0 || !spec.after.empty();
  }
  // Whether a job has its place under its key; of one that has no key, not.
  static bool is_in_line(const job& j) noexcept;
  // Whether it is held for its turn under its key, and for nothing else.
  static bool waits_in_line(const job& j) noexcept;
  // job::has_place of one that is moved to this state.
  static bool keeps_place(const job& as_stored, job_state to) noexcept {
    return to == job_state::scheduled && is_in_line(as_stored);
  }

  void begin(unix_time now);
  // Whether an add can be done; none: it can. Of a group, before any of it is added: `own` are the
  // ids that it will have, sorted.
  [[nodiscard]] bool refusal_of(const job_spec& spec, std::span<const job_id> own,
                                std::optional<conflict::reason>& why);
  // A job that is about to be added, in the state that the engine gave it. Writes its edges and
  // counts it in its batch.
  [[nodiscard]] bool admit_new(std::size_t cause, const job& j, queue_number queue, admission& how);
  // A job that is there and is about to be moved to ready. `blockers` as stored.
  [[nodiscard]] bool admit(std::size_t cause, const job& as_stored, queue_number queue,
                           admission& how);

  // After it was written: it went from not ended to this state. `as_stored` is how it was before;
  // null: it has no key, batch or dependencies.
  [[nodiscard]] bool ended(std::size_t cause, job_id id, queue_number queue, const job* as_stored,
                           job_state as);
  // After it was deleted. One that had not ended goes through `ended` first.
  [[nodiscard]] bool gone(std::size_t cause, job_id id);
  // After it was written: it had ended in `from`, and has not any more.
  [[nodiscard]] bool revived(const job& as_stored, job_state from);

  // The lines and the batch of a deleted job with a damaged row, counted from the rows of the other
  // jobs.
  struct remains {
    queue_number queue = 0;
    std::vector<std::pair<line_number, line_counts>> lines{};
    job_id batch = 0;
    std::uint64_t pending = 0;  // of the batch
  };
  // After a job with a damaged row was deleted.
  [[nodiscard]] bool damaged_gone(std::size_t cause, job_id id, const remains& left);

  [[nodiscard]] bool add_batch(const batch_info& b);  // open: it is closed by a change of its own
  [[nodiscard]] bool close_batch(std::size_t cause, job_id id);
  [[nodiscard]] bool drop_batch(std::size_t cause, job_id id);

  // Writes the batches that were counted.
  [[nodiscard]] bool finish();
  std::vector<effect> take_effects() { return std::move(effects_); }

 private:
  enum class hope : std::uint8_t { met, open, lost };
  // What became of each condition, by after_when, of something that was waited for.
  using outcome = std::array<hope, 3>;
  struct firing {
    job_id on = 0;
    outcome what{};
  };
  struct known_batch {
    batch_info now;
    bool is_changed = false;
    bool is_damaged = false;  // `now` is empty, and is not written
  };

  static outcome outcome_of(job_state state) noexcept;
  static outcome outcome_of(const batch_info& b) noexcept;
  bool find_outcome(job_id on, outcome& what);
  bool enter(const job& j, queue_number queue, admission& how);
  bool leave(std::size_t cause, const job& j, queue_number queue);
  bool fill_line(std::size_t cause, line_number line, queue_number queue, line_counts left);
  void fire_later(job_id on, const outcome& what);
  bool fire_all(std::size_t cause);
  bool fire(std::size_t cause, const firing& f);
  bool meet(std::size_t cause, job_id id);
  bool skip(std::size_t cause, job_id id);
  bool find_batch(job_id id, known_batch*& found);        // null: there is none
  bool find_sound_batch(job_id id, known_batch*& found);  // null also if it is damaged
  bool count(std::size_t cause, job_id batch, int total, int pending, int failed);
  void settle_batch(std::size_t cause, known_batch& b, bool had_failed);
  void note_held(std::size_t cause, const job& j, queue_number queue, const admission& how);
  void note_released(std::size_t cause, const placed_job& now);

  gate_rows& rows_;
  unix_time now_{};
  std::vector<effect> effects_;
  std::deque<firing> to_fire_;
  std::unordered_map<job_id, known_batch> batches_;
};

}  // namespace sluice::jobs
