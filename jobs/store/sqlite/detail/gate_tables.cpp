#include "jobs/store/sqlite/detail/gate_tables.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace sluice::jobs::detail {
namespace {

// Returns the checksum of the columns edge_columns.
std::int64_t checksum_of_edge(job_id on, job_id job, std::int64_t condition) {
  row_checksum sum;
  sum.number(0, signed_of(on));
  sum.number(1, signed_of(job));
  sum.number(2, condition);
  return sum.value();
}

}  // namespace

bool gate_tables::prepare(connection& on) {
  on_ = &on;
  return names_.prepare(on) && prepare_lines(on) && prepare_rows(on) && load_queues(on) &&
         load_marks(on) && load_lines(on);
}

bool gate_tables::prepare_lines(connection& on) {
  return make_line_.prepare(on, "INSERT INTO lines VALUES (?1, ?2, 1 - ?2)") &&
         enter_.prepare(on,
                        "UPDATE lines SET active = active + 1 "
                        "WHERE line = ?1 AND active < ?2 AND waiting = 0") &&
         wait_.prepare(on, "UPDATE lines SET waiting = waiting + 1 WHERE line = ?1") &&
         leave_active_.prepare(
             on, "UPDATE lines SET active = active - 1 WHERE line = ?1 AND active > 0") &&
         leave_waiting_.prepare(
             on, "UPDATE lines SET waiting = waiting - 1 WHERE line = ?1 AND waiting > 0") &&
         read_line_.prepare(on, "SELECT active, waiting FROM lines WHERE line = ?1") &&
         drop_line_.prepare(on, "DELETE FROM lines WHERE line = ?1") &&
         move_up_.prepare(on,
                          "UPDATE lines SET active = active + 1, waiting = waiting - 1 "
                          "WHERE line = ?1 AND waiting > 0") &&
         first_.prepare(on,
                        "SELECT id FROM jobs INDEXED BY jobs_line WHERE line = ?1 AND state = 1 "
                        "AND blockers IS NULL AND line IS NOT NULL ORDER BY turn LIMIT 1") &&
         correct_line_.prepare(on, "UPDATE lines SET active = ?2, waiting = ?3 WHERE line = ?1") &&
         // The checksum is unchanged, so the row stays damaged.
         take_out_of_line_.prepare(on, "UPDATE jobs SET line = NULL WHERE id = ?1") &&
         edges_on_.prepare(on,
                           "SELECT job, condition, checksum FROM edges WHERE on_id = ?1 "
                           "ORDER BY job, condition") &&
         add_edge_.prepare(on, "INSERT OR IGNORE INTO edges VALUES (?1, ?2, ?3, ?4)") &&
         drop_edge_.prepare(on,
                            "DELETE FROM edges WHERE on_id = ?1 AND job = ?2 AND condition = ?3") &&
         edges_of_.prepare(on, "SELECT on_id FROM edges WHERE job = ?1") &&
         drop_edges_of_.prepare(on, "DELETE FROM edges WHERE job = ?1");
}

bool gate_tables::prepare_rows(connection& on) {
  constexpr std::array<changed_column, 4> placed = {
      {{"state", "?3"}, {"due_at", "?4"}, {"blockers", "?5"}, {"has_place", "?6"}}};
  return state_of_.prepare(on, "SELECT state FROM jobs WHERE id = ?1") &&
         read_job_.prepare(on, "SELECT " + column_list() + " FROM jobs WHERE id = ?1") &&
         read_waiting_.prepare(on, "SELECT blockers, has_place FROM jobs WHERE id = ?1") &&
         place_.prepare(
             on, "UPDATE jobs SET " + update_list(placed) + " WHERE id = ?1 AND state = ?2") &&
         forget_.prepare(on, "DELETE FROM jobs WHERE id = ?1 AND state = ?2") &&
         free_key_.prepare(on,
                           "DELETE FROM unique_keys WHERE queue = ?1 AND key = ?2 AND job = ?3") &&
         read_batch_.prepare(on, "SELECT " + std::string(batch_columns) + ", " +
                                     is_damaged(batch_columns) + " FROM batches WHERE id = ?1") &&
         write_batch_.prepare(on, "INSERT OR REPLACE INTO batches (" + std::string(batch_columns) +
                                      ", checksum) VALUES (" + parameter_list(batch_columns_count) +
                                      ", " + checksum_of(parameter_list(batch_columns_count)) +
                                      ")") &&
         forget_batch_.prepare(on, "DELETE FROM batches WHERE id = ?1") &&
         last_log_.prepare(on, "SELECT max(number) FROM logs WHERE job = ?1") &&
         add_log_.prepare(on, "INSERT INTO logs (" + std::string(log_columns) +
                                  ", checksum) VALUES (" + parameter_list(5) + ", " +
                                  checksum_of(parameter_list(5)) + ")") &&
         drop_logs_.prepare(on, "DELETE FROM logs WHERE job = ?1");
}

bool gate_tables::load_queues(connection& on) {
  statement all;
  if (!all.prepare(on, "SELECT number, key_concurrency FROM queues")) return false;
  int rc = SQLITE_ROW;
  while ((rc = all.step()) == SQLITE_ROW) {
    slots_[static_cast<queue_number>(all.number(0))] = static_cast<std::uint32_t>(all.number(1));
  }
  return rc == SQLITE_DONE;
}

bool gate_tables::load_marks(connection& on) {
  // Logs need one step per job with logs, not one per line.
  for (const char* const sql :
       {"SELECT on_id FROM edges",
        "WITH RECURSIVE of (job) AS (SELECT min(job) FROM logs UNION ALL "
        "SELECT (SELECT min(l.job) FROM logs l WHERE l.job > of.job) FROM of "
        "WHERE of.job IS NOT NULL) SELECT job FROM of WHERE job IS NOT NULL"}) {
    statement all;
    if (!all.prepare(on, sql)) return false;
    int rc = SQLITE_ROW;
    while ((rc = all.step()) == SQLITE_ROW) marks_.add(unsigned_of(all.number(0)));
    if (rc != SQLITE_DONE) return false;
    marks_.keep();
  }
  return true;
}

// Builds the lines from an index of the jobs, which has all columns needed, in order of arrival.
bool gate_tables::load_lines(connection& on) {
  statement stored;
  if (!stored.prepare(on, "SELECT line FROM lines")) return false;
  int rc = SQLITE_ROW;
  while ((rc = stored.step()) == SQLITE_ROW) stored_lines_.add(unsigned_of(stored.number(0)));
  stored_lines_.keep();
  return rc == SQLITE_DONE &&
         load_lines(on,
                    "SELECT line FROM jobs INDEXED BY jobs_placed WHERE line IS NOT NULL AND "
                    "(state = 2 OR state = 4 OR has_place = 1)",
                    {.active = 1}) &&
         load_lines(on,
                    "SELECT line FROM jobs INDEXED BY jobs_line WHERE state = 1 AND "
                    "blockers IS NULL AND line IS NOT NULL",
                    {.waiting = 1});
}

bool gate_tables::load_lines(connection& on, const char* sql, line_counts each) {
  statement jobs;
  if (!jobs.prepare(on, sql)) return false;
  int rc = SQLITE_ROW;
  while ((rc = jobs.step()) == SQLITE_ROW) {
    const line_number line = jobs.number(0);
    const line_counts* const known = lines_.find(line);
    if (known == nullptr && stored_lines_.may_have(unsigned_of(line))) {
      const reset_at_end ended(read_line_);
      const int found = read_line_.number(1, line).step();
      if (found == SQLITE_ROW) continue;
      if (found != SQLITE_DONE) return false;
    }
    const line_counts now = known != nullptr ? *known : line_counts{};
    lines_.load(line, {now.active + each.active, now.waiting + each.waiting});
  }
  return rc == SQLITE_DONE;
}

void gate_tables::committed() {
  marks_.keep();
  lines_.keep();
  stored_lines_.keep();
  for (const auto& [queue, slots] : new_slots_) slots_[queue] = slots;
  if (!new_slots_.empty()) names_.forget();
  new_slots_.clear();
}

void gate_tables::undone() {
  marks_.undo();
  lines_.undo();
  stored_lines_.undo();
  if (!new_slots_.empty()) names_.forget();
  new_slots_.clear();
}

void gate_tables::set_queue(queue_number queue, const queue_options& options) {
  new_slots_[queue] = options.key_concurrency;
  names_.forget();
}

// ---- lines

bool gate_tables::enter_line(line_number line, std::uint32_t slots, bool& is_active) {
  const line_counts* const known = lines_.find(line);
  if (known == nullptr && stored_lines_.may_have(unsigned_of(line))) {
    if (!enter_.number(1, line).number(2, slots).run()) return false;
    is_active = changed_one();
    if (is_active) return true;
    if (!wait_.number(1, line).run()) return false;
    if (changed_one()) return true;
  }
  line_counts now = known != nullptr ? *known : line_counts{};
  is_active = now.active < slots && now.waiting == 0;
  if (known == nullptr && lines_.is_full()) {
    stored_lines_.add(unsigned_of(line));
    return make_line_.number(1, line).number(2, is_active ? 1 : 0).run();
  }
  ++(is_active ? now.active : now.waiting);
  lines_.set(line, now);
  return true;
}

bool gate_tables::leave_at_once(line_number line) {
  const line_counts* const known = lines_.find(line);
  if (known == nullptr || known->waiting != 0 || known->active == 0) return false;
  lines_.set(line, {known->active - 1, 0});
  return true;
}

bool gate_tables::leave_line(line_number line, bool was_active, line_counts& left) {
  left = {};
  if (const line_counts* const known = lines_.find(line); known != nullptr) {
    left = *known;
    std::uint32_t& of = was_active ? left.active : left.waiting;
    if (of > 0) --of;
    lines_.set(line, left);
    return true;
  }
  statement& leave = was_active ? leave_active_ : leave_waiting_;
  if (!leave.number(1, line).run()) return false;
  if (!changed_one()) return true;  // another program changed the file; the job must still end
  {
    const reset_at_end ended(read_line_);
    if (read_line_.number(1, line).step() != SQLITE_ROW) return false;
    left.active = static_cast<std::uint32_t>(read_line_.number(0));
    left.waiting = static_cast<std::uint32_t>(read_line_.number(1));
  }
  if (left.active != 0 || left.waiting != 0) return true;
  stored_lines_.remove(unsigned_of(line));
  return drop_line_.number(1, line).run();
}

bool gate_tables::move_up(line_number line) {
  if (const line_counts* const known = lines_.find(line); known != nullptr) {
    lines_.set(line, {known->active + 1, known->waiting - (known->waiting > 0 ? 1U : 0U)});
    return true;
  }
  return move_up_.number(1, line).run();
}

bool gate_tables::first_in_line(line_number line, placed_job& first) {
  for (;;) {
    first = {};
    job_id id = 0;
    {
      const reset_at_end ended(first_);
      const int rc = first_.number(1, line).step();
      if (rc != SQLITE_ROW) return rc == SQLITE_DONE;
      id = unsigned_of(first_.number(0));
    }
    if (!read_job(id, first)) return false;
    if (first.job != nullptr) return true;
    line_counts left;
    if (!take_out_of_line_.number(1, signed_of(id)).run()) return false;
    if (!leave_line(line, false, left)) return false;
  }
}

bool gate_tables::correct_line(line_number line, line_counts now) {
  if (lines_.find(line) != nullptr) {
    lines_.set(line, now);
    return true;
  }
  if (now.active != 0 || now.waiting != 0) {
    return correct_line_.number(1, line).number(2, now.active).number(3, now.waiting).run();
  }
  if (!drop_line_.number(1, line).run()) return false;
  if (changed_one()) stored_lines_.remove(unsigned_of(line));
  return true;
}

std::uint32_t gate_tables::slots_of(queue_number queue) {
  if (const auto at = new_slots_.find(queue); at != new_slots_.end()) return at->second;
  const auto at = slots_.find(queue);
  return at == slots_.end() ? queue_options{}.key_concurrency : at->second;
}

// ---- edges

bool gate_tables::edges_on(job_id on, std::vector<edge>& all) {
  const reset_at_end ended(edges_on_);
  edges_on_.number(1, signed_of(on));
  int rc = SQLITE_ROW;
  while ((rc = edges_on_.step()) == SQLITE_ROW) {
    const job_id job = unsigned_of(edges_on_.number(0));
    const std::int64_t condition = edges_on_.number(1);
    if (!edges_on_.is_null(2) && edges_on_.number(2) != checksum_of_edge(on, job, condition)) {
      damage_->notify(true, "a dependency on " + std::to_string(on) +
                                " is damaged: the waiting job stays held; run 'sluice check'");
      continue;
    }
    all.push_back({job, static_cast<after_when>(condition % 3)});
  }
  return rc == SQLITE_DONE;
}

bool gate_tables::add_edge(job_id on, edge e) {
  const auto condition = static_cast<std::int64_t>(e.when);
  add_edge_.number(1, signed_of(on)).number(2, signed_of(e.job)).number(3, condition);
  if (!add_edge_.number(4, checksum_of_edge(on, e.job, condition)).run()) return false;
  if (changed_one()) marks_.add(on);
  return true;
}

bool gate_tables::drop_edge(job_id on, edge e) {
  drop_edge_.number(1, signed_of(on)).number(2, signed_of(e.job));
  if (!drop_edge_.number(3, static_cast<int>(e.when)).run()) return false;
  if (changed_one()) marks_.remove(on);
  return true;
}

bool gate_tables::drop_edges_of(job_id id) {
  bool any = false;
  {
    const reset_at_end ended(edges_of_);
    edges_of_.number(1, signed_of(id));
    int rc = SQLITE_ROW;
    while ((rc = edges_of_.step()) == SQLITE_ROW) {
      marks_.remove(unsigned_of(edges_of_.number(0)));
      any = true;
    }
    if (rc != SQLITE_DONE) return false;
  }
  return !any || drop_edges_of_.number(1, signed_of(id)).run();
}

// ---- jobs

bool gate_tables::state_of(job_id id, std::optional<job_state>& state) {
  const reset_at_end ended(state_of_);
  const int rc = state_of_.number(1, signed_of(id)).step();
  state.reset();
  if (rc == SQLITE_ROW) state = static_cast<job_state>(state_of_.number(0));
  return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

bool gate_tables::read_job(job_id id, placed_job& found) {
  found = {};
  const reset_at_end ended(read_job_);
  const int rc = read_job_.number(1, signed_of(id)).step();
  if (rc == SQLITE_DONE) return true;
  if (rc != SQLITE_ROW) return false;
  soundness as = soundness::sound;
  auto read = detail::read_job(read_job_, names_, as);
  if (!read) {
    own_error_ = std::move(read.error());
    return false;
  }
  if (as == soundness::none) {
    damage_->job(id, unsound_row);
    return true;
  }
  // The job leaves its line as usual; the engine marks it dead afterwards.
  if (read->is_damaged) {
    damage_->job(id, "is damaged: its data does not match its checksum. It is dead");
    damage_->can_be_marked(id);
  }
  found.job = std::make_shared<job>(std::move(*read));
  found.queue = static_cast<queue_number>(read_job_.number(1));
  return true;
}

bool gate_tables::read_waiting(job_id id, waiting& found) {
  const reset_at_end ended(read_waiting_);
  const int rc = read_waiting_.number(1, signed_of(id)).step();
  if (rc == SQLITE_ROW) {
    found.blockers = static_cast<std::uint32_t>(read_waiting_.number(0));
    found.has_place = read_waiting_.number(1) != 0;
  }
  return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

bool gate_tables::place(const placed_job& changed, job_state from) {
  const job& j = *changed.job;
  const std::uint64_t weight = weight_of(j.spec);
  counts_.leave(changed.queue, from, weight);
  counts_.enter(changed.queue, j.state, weight);
  return place_.number(1, signed_of(j.id))
      .number(2, static_cast<int>(from))
      .number(3, static_cast<int>(j.state))
      .number_or_null(4, j.due_at.ms, j.due_at == unix_time{})
      .number_or_null(5, j.blockers, j.blockers == 0)
      .number_or_null(6, 1, !j.has_place)
      .run();
}

bool gate_tables::forget(const placed_job& gone) {
  const job& j = *gone.job;
  counts_.leave(gone.queue, j.state, weight_of(j.spec));
  const unique_key& unique = j.spec.unique;
  return forget_.number(1, signed_of(j.id)).number(2, static_cast<int>(j.state)).run() &&
         drop_edges_of(j.id) && drop_logs_of(j.id) &&
         (!unique.ends_with_job() ||
          free_key_.number(1, gone.queue).text(2, unique.key).number(3, signed_of(j.id)).run());
}

// ---- batches

batch_info read_batch_row(const statement& from) {
  batch_info b;
  b.id = unsigned_of(from.number(0));
  b.name = from.string(1);
  b.open = from.number(2) != 0;
  b.total = unsigned_of(from.number(3));
  b.pending = unsigned_of(from.number(4));
  b.failed = unsigned_of(from.number(5));
  b.created_at = {from.number(6)};
  b.ended_at = {from.number(7)};
  b.due_at = {from.number(8)};
  b.keep_done = milliseconds(from.number(9));
  b.keep_failed = milliseconds(from.number(10));
  return b;
}

bool gate_tables::read_batch(job_id id, std::optional<batch_info>& found, bool& is_damaged) {
  const reset_at_end ended(read_batch_);
  const int rc = read_batch_.number(1, signed_of(id)).step();
  found.reset();
  if (rc != SQLITE_ROW) return rc == SQLITE_DONE;
  is_damaged = read_batch_.number(batch_columns_count) != 0;
  if (is_damaged) damage_->batch(id);
  if (!is_damaged) found = read_batch_row(read_batch_);
  return true;
}

bool gate_tables::write_batch(const batch_info& b) {
  return write_batch_.number(1, signed_of(b.id))
      .text(2, b.name)
      .number(3, b.open ? 1 : 0)
      .number(4, signed_of(b.total))
      .number(5, signed_of(b.pending))
      .number(6, signed_of(b.failed))
      .number(7, b.created_at.ms)
      .number_or_null(8, b.ended_at.ms, b.ended_at == unix_time{})
      .number_or_null(9, b.due_at.ms, b.due_at == unix_time{})
      .number(10, b.keep_done.count())
      .number(11, b.keep_failed.count())
      .run();
}

bool gate_tables::forget_batch(job_id id) {
  return forget_batch_.number(1, signed_of(id)).run();
}

// ---- logs

bool gate_tables::add_logs(job_id id, const std::vector<log_line>& lines) {
  std::optional<job_state> state;
  if (!state_of(id, state)) return false;
  if (!state || lines.empty()) return true;  // the job was deleted
  std::int64_t number = 0;
  {
    const reset_at_end ended(last_log_);
    if (last_log_.number(1, signed_of(id)).step() != SQLITE_ROW) return false;
    number = last_log_.number(0);
  }
  if (number == 0) marks_.add(id);
  for (const log_line& line : lines) {
    if (++number > static_cast<std::int64_t>(limits::log_lines_max)) break;
    add_log_.number(1, signed_of(id)).number(2, number).number(3, line.attempt);
    if (!add_log_.number(4, line.at.ms).text(5, line.text).run()) return false;
  }
  return true;
}

bool gate_tables::drop_logs_of(job_id id) {
  if (!marks_.may_have(id)) return true;
  if (!drop_logs_.number(1, signed_of(id)).run()) return false;
  if (sqlite3_changes(on_->handle()) > 0) marks_.remove(id);
  return true;
}

}  // namespace sluice::jobs::detail
