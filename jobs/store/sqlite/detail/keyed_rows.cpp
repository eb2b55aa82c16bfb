#include "jobs/store/sqlite/detail/keyed_rows.hpp"

#include <algorithm>
#include <string>

#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t keyed_columns = plain_columns + 2;

}  // namespace

bool keyed_rows::is_keyed_add(const change& c) noexcept {
  return c.what == change::op::add && c.group == 0 && !c.it->spec.key.empty() &&
         c.it->state == job_state::ready && is_plain_but_for_key(*c.it);
}

bool keyed_rows::is_keyed_drop(const change& c) noexcept {
  if (c.what != change::op::drop || !c.it || c.it->state != c.from) return false;
  const job_spec& s = c.it->spec;
  return c.from == job_state::ready && !s.key.empty() && s.batch == 0 && s.after.empty() &&
         s.unique.key.empty();
}

bool keyed_rows::prepare(connection& on) {
  const std::string insert =
      "INSERT OR FAIL INTO jobs (" + column_list(plain_columns) + ", key, line) VALUES ";
  std::string rows;
  for (std::size_t n = 0; n < at_once; ++n) {
    rows += (n > 0 ? ", (" : "(") + parameter_list(keyed_columns, n * keyed_columns) + ")";
  }
  return add_one_.prepare(on, insert + "(" + parameter_list(keyed_columns) + ")") &&
         add_many_.prepare(on, insert + rows);
}

bool keyed_rows::has(job_id id) const noexcept {
  return std::any_of(held_.data(), held_.data() + count_,
                     [id](const entry& e) { return e.what->it->id == id; });
}

bool keyed_rows::add(std::size_t cause, const change& c) {
  admission how;
  if (!rules_.admit_new(cause, *c.it, c.queue, how)) return false;
  counts_.enter(c.queue, how.state, weight_of(c.it->spec));
  held_[count_++] = {&c, how.state};
  return count_ < at_once || flush();
}

bool keyed_rows::flush() {
  const std::size_t count = count_;
  count_ = 0;
  if (count == at_once) {
    int after = 0;
    for (const entry& e : held_) {
      bind(add_many_, e, after);
      after += static_cast<int>(keyed_columns);
    }
    return add_many_.run();
  }
  return std::all_of(held_.data(), held_.data() + count, [this](const entry& e) {
    bind(add_one_, e, 0);
    return add_one_.run();
  });
}

void keyed_rows::bind(statement& to, const entry& e, int after) {
  constexpr int state_parameter = 3;
  const int key_parameter = after + static_cast<int>(plain_columns) + 1;
  const job& j = *e.what->it;
  bind_plain(to, j, e.what->queue, after);
  to.number(after + state_parameter, static_cast<int>(e.state));
  to.text(key_parameter, j.spec.key);
  to.number(key_parameter + 1, line_of(e.what->queue, j.spec.key));
}

}  // namespace sluice::jobs::detail
