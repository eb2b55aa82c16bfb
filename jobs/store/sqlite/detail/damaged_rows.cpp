#include "jobs/store/sqlite/detail/damaged_rows.hpp"

#include <map>
#include <set>

#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {

bool damaged_rows::prepare(connection& on) {
  on_ = &on;
  return read_.prepare(on, "SELECT queue, key, line, batch FROM jobs WHERE id = ?1") &&
         drop_.prepare(on, "DELETE FROM jobs WHERE id = ?1") &&
         // Keys with an end expire by themselves.
         free_keys_.prepare(on, "DELETE FROM unique_keys WHERE job = ?1 AND expires_at IS NULL") &&
         count_line_.prepare(on,
                             "SELECT (SELECT count(*) FROM jobs INDEXED BY jobs_placed "
                             "WHERE line = ?1 AND line IS NOT NULL AND "
                             "(state = 2 OR state = 4 OR has_place = 1)), "
                             "(SELECT count(*) FROM jobs INDEXED BY jobs_line "
                             "WHERE line = ?1 AND line IS NOT NULL AND state = 1 AND "
                             "blockers IS NULL)") &&
         count_pending_.prepare(on,
                                "SELECT count(*) FROM jobs INDEXED BY jobs_batch "
                                "WHERE batch = ?1 AND batch IS NOT NULL AND state < 5") &&
         count_.prepare(on,
                        "UPDATE queues SET scheduled = ?2, ready = ?3, retrying = ?4, done = ?5, "
                        "dead = ?6, cancelled = ?7, bytes = ?8, held = ?9 WHERE number = ?1");
}

bool damaged_rows::forget(job_id id, gate_tables& tables, gates::remains& left) {
  std::set<line_number> lines;
  {
    const reset_at_end ended(read_);
    if (read_.number(1, signed_of(id)).step() != SQLITE_ROW) return false;
    left.queue = static_cast<queue_number>(read_.number(0));
    if (!read_.is_null(1)) lines.insert(line_of(left.queue, read_.view(1)));
    if (!read_.is_null(2)) lines.insert(read_.number(2));
    left.batch = unsigned_of(read_.number(3));
  }
  if (!drop_.number(1, signed_of(id)).run() || !free_keys_.number(1, signed_of(id)).run()) {
    return false;
  }
  if (!tables.drop_edges_of(id) || !tables.drop_logs_of(id)) return false;
  for (const line_number line : lines) {
    line_counts now;
    if (!count_line(line, now)) return false;
    left.lines.emplace_back(line, now);
  }
  const reset_at_end ended(count_pending_);
  if (count_pending_.number(1, signed_of(left.batch)).step() != SQLITE_ROW) return false;
  left.pending = unsigned_of(count_pending_.number(0));
  return true;
}

bool damaged_rows::count_line(line_number line, line_counts& now) {
  const reset_at_end ended(count_line_);
  if (count_line_.number(1, line).step() != SQLITE_ROW) return false;
  now.active = static_cast<std::uint32_t>(count_line_.number(0));
  now.waiting = static_cast<std::uint32_t>(count_line_.number(1));
  return true;
}

bool damaged_rows::count_jobs() {
  std::map<std::int64_t, queue_counts> seen;
  statement all;
  if (!all.prepare(*on_, "SELECT number FROM queues")) return false;
  int rc = SQLITE_ROW;
  while ((rc = all.step()) == SQLITE_ROW) seen[all.number(0)] = {};
  if (rc != SQLITE_DONE) return false;
  if (!all.prepare(*on_, "SELECT " + column_list() + " FROM jobs")) return false;
  while ((rc = all.step()) == SQLITE_ROW) {
    job j;
    const auto counts = seen.find(all.number(c_queue));
    if (!read_row(all, 0, j) || counts == seen.end()) continue;
    ++counts->second.of(j.state);
    if (!has_ended(j.state)) counts->second.bytes += weight_of(j.spec);
  }
  if (rc != SQLITE_DONE) return false;
  for (const auto& [queue, counts] : seen) {
    const auto of = [&counts](job_state s) { return signed_of(counts.of(s)); };
    count_.number(1, queue)
        .number(2, of(job_state::scheduled))
        .number(3, of(job_state::ready))
        .number(4, of(job_state::retrying))
        .number(5, of(job_state::done))
        .number(6, of(job_state::dead))
        .number(7, of(job_state::cancelled))
        .number(8, signed_of(counts.bytes))
        .number(9, of(job_state::held));
    if (!count_.run()) return false;
  }
  return true;
}

}  // namespace sluice::jobs::detail
