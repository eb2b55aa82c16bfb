#include "jobs/store/sqlite/detail/gated_rows.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {
namespace {

// Of a job that is as it was left, waits for nothing and has no unique key to be freed.
bool is_gated_drop(const change& c) noexcept {
  return c.what == change::op::drop && c.it && c.it->state == c.from &&
         c.from == job_state::ready && c.it->spec.after.empty() && c.it->spec.unique.key.empty();
}

}  // namespace

bool gated_rows::is_gated_add(const change& c) noexcept {
  const job& j = *c.it;
  return (!j.spec.key.empty() || j.spec.batch != 0) && j.state == job_state::ready &&
         is_plain_but_for_gates(j);
}

bool gated_rows::is_keyed_add(const change& c) noexcept {
  return c.what == change::op::add && c.group == 0 && c.it->spec.batch == 0 && is_gated_add(c);
}

bool gated_rows::is_keyed_drop(const change& c) noexcept {
  return is_gated_drop(c) && !c.it->spec.key.empty() && c.it->spec.batch == 0;
}

bool gated_rows::is_batched_drop(const change& c) noexcept {
  return is_gated_drop(c) && c.it->spec.key.empty() && c.it->spec.batch != 0;
}

bool gated_rows::prepare(connection& on) {
  return add_.prepare(on,
                      "INSERT OR FAIL INTO jobs (" + column_list(plain_columns) + ", " +
                          gated_columns + ", checksum) VALUES ",
                      plain_columns + gated_columns_count + 1);
}

bool gated_rows::has(job_id id) const noexcept {
  return std::any_of(held_.data(), held_.data() + count_,
                     [id](const entry& e) { return e.what->it->id == id; });
}

bool gated_rows::add(std::size_t cause, const change& c) {
  admission how;
  if (!rules_.admit_new(cause, *c.it, c.queue, how)) return false;
  counts_.enter(c.queue, how.state, weight_of(c.it->spec));
  held_[count_++] = {&c, how.state};
  return count_ < at_once || flush();
}

bool gated_rows::flush() {
  return add_.run(std::exchange(count_, 0), [this](statement& to, std::size_t row, int after) {
    const entry& e = held_[row];
    bind_gated(to, *e.what->it, e.what->queue, e.state, after);
  });
}

}  // namespace sluice::jobs::detail
