#include "jobs/store/sqlite/detail/gated_rows.hpp"

#include <algorithm>
#include <string>

#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t gated_columns = plain_columns + 3;

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
  const std::string insert =
      "INSERT OR FAIL INTO jobs (" + column_list(plain_columns) + ", key, line, batch) VALUES ";
  std::string rows;
  for (std::size_t n = 0; n < at_once; ++n) {
    rows += (n > 0 ? ", (" : "(") + parameter_list(gated_columns, n * gated_columns) + ")";
  }
  return add_one_.prepare(on, insert + "(" + parameter_list(gated_columns) + ")") &&
         add_many_.prepare(on, insert + rows);
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
  const std::size_t count = count_;
  count_ = 0;
  if (count == at_once) {
    int after = 0;
    for (const entry& e : held_) {
      bind(add_many_, e, after);
      after += static_cast<int>(gated_columns);
    }
    return add_many_.run();
  }
  return std::all_of(held_.data(), held_.data() + count, [this](const entry& e) {
    bind(add_one_, e, 0);
    return add_one_.run();
  });
}

void gated_rows::bind(statement& to, const entry& e, int after) {
  constexpr int state_parameter = 3;
  const int key_parameter = after + static_cast<int>(plain_columns) + 1;
  const job& j = *e.what->it;
  bind_plain(to, j, e.what->queue, after);
  to.number(after + state_parameter, static_cast<int>(e.state));
  if (j.spec.key.empty()) {
    to.null(key_parameter).null(key_parameter + 1);
  } else {
    to.text(key_parameter, j.spec.key);
    to.number(key_parameter + 1, line_of(e.what->queue, j.spec.key));
  }
  const auto batch = static_cast<std::int64_t>(j.spec.batch);
  to.number_or_null(key_parameter + 2, batch, batch == 0);
}

}  // namespace sluice::jobs::detail
