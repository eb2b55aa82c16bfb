#include "jobs/store/sqlite/detail/gated_rows.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {
namespace {

// True for a drop of a job that is not held and has no unique key to free.
bool is_gated_drop(const change& c) noexcept {
  return c.type == change::op::drop && c.job && c.job->state == c.from &&
         c.from == job_state::ready && c.job->spec.after.empty() && c.job->spec.unique.key.empty();
}

}  // namespace

bool gated_rows::is_gated_add(const change& c) noexcept {
  const job& j = *c.job;
  return (!j.spec.key.empty() || j.spec.batch != 0) && j.state == job_state::ready &&
         is_plain_but_for_gates(j);
}

bool gated_rows::is_keyed_add(const change& c) noexcept {
  return c.type == change::op::add && c.group == 0 && c.job->spec.batch == 0 && is_gated_add(c);
}

bool gated_rows::is_keyed_drop(const change& c) noexcept {
  return is_gated_drop(c) && !c.job->spec.key.empty() && c.job->spec.batch == 0;
}

bool gated_rows::is_batch_job_drop(const change& c) noexcept {
  return is_gated_drop(c) && c.job->spec.key.empty() && c.job->spec.batch != 0;
}

bool gated_rows::prepare(connection& on) {
  return add_.prepare(on,
                      "INSERT OR FAIL INTO jobs (" + column_list(plain_columns) + ", " +
                          gated_columns + ", checksum) VALUES ",
                      plain_columns + gated_columns_count + 1);
}

bool gated_rows::has(job_id id) const noexcept {
  return std::any_of(held_.data(), held_.data() + count_,
                     [id](const entry& e) { return e.add->job->id == id; });
}

bool gated_rows::add(std::size_t cause, const change& c) {
  admission placement;
  if (!rules_.admit_new(cause, *c.job, c.queue, placement)) return false;
  counts_.enter(c.queue, placement.state, weight_of(c.job->spec));
  held_[count_++] = {&c, placement.state};
  return count_ < at_once || flush();
}

bool gated_rows::flush() {
  return add_.run(std::exchange(count_, 0), [this](statement& target, std::size_t row, int after) {
    const entry& e = held_[row];
    bind_gated(target, *e.add->job, e.add->queue, e.state, after);
  });
}

}  // namespace sluice::jobs::detail
