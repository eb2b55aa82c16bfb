#include "jobs/store/sqlite/detail/job_finder.hpp"

#include <string>
#include <utility>

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t looked_at_for_each = 10;
constexpr std::size_t looked_at_least = 1000;

}  // namespace

bool job_finder::prepare(connection& on) {
  on_ = &on;
  // Two ranges of one index: a comparison of pairs would scan all jobs with an equal time again.
  const std::string of_due =
      "SELECT id, queue, state, due_at FROM jobs INDEXED BY jobs_due WHERE due_at IS NOT NULL AND ";
  // A scan reads only the columns of the filter, which are before `args` in the row: the payload of
  // a skipped job is not read.
  return names_.prepare(on) &&
         get_.prepare(on, "SELECT " + column_list() + " FROM jobs WHERE id = ?1") &&
         scan_.prepare(on,
                       "SELECT id, queue, state, kind FROM jobs WHERE id > ?1 "
                       "ORDER BY id LIMIT ?2") &&
         scan_state_.prepare(on,
                             "SELECT id, queue, state, kind FROM jobs INDEXED BY jobs_by_state "
                             "WHERE state = ?3 AND state <> 2 AND id > ?1 ORDER BY id LIMIT ?2") &&
         scan_batch_.prepare(on,
                             "SELECT id, queue, state, kind FROM jobs INDEXED BY jobs_batch "
                             "WHERE batch = ?3 AND batch IS NOT NULL AND id > ?1 "
                             "ORDER BY id LIMIT ?2") &&
         scan_due_.prepare(on, of_due + "due_at = ?1 AND id > ?2 UNION ALL " + of_due +
                                   "due_at > ?1 ORDER BY due_at, id LIMIT ?3");
}

result<timed_page> job_finder::timed_after(queue_number queue, due_place after, std::size_t limit) {
  const reset_at_end ended(scan_due_);
  const std::size_t looked_at_most = looked_at_least + looked_at_for_each * limit;
  scan_due_.number(1, after.at.ms).number(2, static_cast<std::int64_t>(after.id));
  scan_due_.number(3, static_cast<std::int64_t>(looked_at_most) + 1);
  timed_page page;
  std::uint64_t bytes = 0;
  due_place last = after;
  for (std::size_t looked_at = 0;; ++looked_at) {
    const int rc = scan_due_.step();
    if (rc == SQLITE_DONE) return page;
    if (rc != SQLITE_ROW) return on_->failure("searching for the next jobs of a queue");
    if (page.jobs.size() >= limit || looked_at >= looked_at_most || bytes >= page_limit{}.bytes) {
      page.cursor = last;
      return page;
    }
    last = {unix_time{scan_due_.number(3)}, static_cast<job_id>(scan_due_.number(0))};
    const auto state = static_cast<job_state>(scan_due_.number(2));
    if (scan_due_.number(1) != queue || !waits_for_its_time(state)) continue;
    auto found = get(last.id);
    if (!found) return std::move(found.error());
    if (!*found || (*found)->is_damaged) continue;
    bytes += weight_of((*found)->spec);
    page.jobs.push_back(std::move(**found));
  }
}

result<job> job_finder::read(const statement& from, soundness& as) {
  auto found = read_job(from, names_, as);
  if (!found || !found->is_damaged) return found;
  const bool is_shown = as == soundness::control;
  damage_->job(found->id, is_shown ? "is damaged: its data does not match its checksum. It is dead"
                                   : unsound_row);
  if (is_shown && found->state != job_state::dead) damage_->can_be_marked(found->id);
  return found;
}

result<std::optional<job>> job_finder::read_sound(const statement& from) {
  soundness as = soundness::sound;
  auto found = read(from, as);
  if (!found) return std::move(found.error());
  if (found->is_damaged) return std::optional<job>();
  return std::optional<job>(std::move(*found));
}

result<std::optional<job>> job_finder::get(job_id id) {
  const reset_at_end ended(get_);
  const int rc = get_.number(1, static_cast<std::int64_t>(id)).step();
  if (rc == SQLITE_DONE) return std::optional<job>();
  if (rc != SQLITE_ROW) return on_->failure("reading a job");
  soundness as = soundness::sound;
  auto found = read(get_, as);
  if (!found) return std::move(found.error());
  if (found->is_damaged) {
    const unix_time seen = found->ended_at != unix_time{} ? found->ended_at : found->created_at;
    *found = damaged_view(std::move(*found), seen);
  }
  return std::optional<job>(std::move(*found));
}

result<std::optional<job>> job_finder::get_as_stored(job_id id) {
  const reset_at_end ended(get_);
  const int rc = get_.number(1, static_cast<std::int64_t>(id)).step();
  if (rc == SQLITE_DONE) return std::optional<job>();
  if (rc != SQLITE_ROW) return on_->failure("reading a job");
  soundness as = soundness::sound;
  auto found = read(get_, as);
  if (!found) return std::move(found.error());
  if (as == soundness::none) return std::optional<job>();
  return std::optional<job>(std::move(*found));
}

result<job_page> job_finder::list(const job_filter& filter, job_id after, std::size_t limit) {
  if (!on_->end_transaction() || !on_->exec("BEGIN")) return on_->failure("listing jobs");
  auto page = list_in_transaction(filter, after, limit);
  if (!on_->exec("COMMIT") && page) return on_->failure("listing jobs");
  return page;
}

result<job_page> job_finder::list_in_transaction(const job_filter& filter, job_id after,
                                                 std::size_t limit) {
  const bool by_batch = filter.batch != 0;
  const bool by_state = !by_batch && filter.state && *filter.state != job_state::ready;
  statement& scan = by_batch ? scan_batch_ : by_state ? scan_state_ : scan_;
  const reset_at_end ended(scan);
  const std::size_t looked_at_most = looked_at_least + looked_at_for_each * limit;
  scan.number(1, static_cast<std::int64_t>(after));
  scan.number(2, static_cast<std::int64_t>(looked_at_most) + 1);
  if (by_state) scan.number(3, static_cast<std::int64_t>(*filter.state));
  if (by_batch) scan.number(3, static_cast<std::int64_t>(filter.batch));

  job_page page;
  std::uint64_t bytes = 0;
  job_id last = after;
  for (std::size_t looked_at = 0;; ++looked_at) {
    const int rc = scan.step();
    if (rc == SQLITE_DONE) return page;
    if (rc != SQLITE_ROW) return on_->failure("listing jobs");
    if (page.jobs.size() >= limit || looked_at >= looked_at_most || bytes >= page_limit{}.bytes) {
      page.cursor = last;
      return page;
    }
    last = static_cast<job_id>(scan.number(0));
    if (filter.queue && scan.number(1) != *filter.queue) continue;
    if (filter.state && scan.number(2) != static_cast<std::int64_t>(*filter.state)) continue;
    if (!filter.kind.empty() && scan.view(3) != filter.kind) continue;
    auto found = get(last);
    if (!found) return std::move(found.error());
    if (!*found) continue;  // impossible within one snapshot
    bytes += weight_of((*found)->spec) + ((*found)->result ? (*found)->result->data.size() : 0);
    page.jobs.push_back(std::move(**found));
  }
}

}  // namespace sluice::jobs::detail
