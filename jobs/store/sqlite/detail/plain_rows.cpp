#include "jobs/store/sqlite/detail/plain_rows.hpp"

#include <algorithm>
#include <string>

#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {

bool plain_rows::is_plain_add(const change& c) noexcept {
  return c.what == change::op::add && c.group == 0 && is_plain(*c.it);
}

bool plain_rows::is_plain_drop(const change& c) noexcept {
  return c.what == change::op::drop &&
         (!c.it || (c.it->spec.unique.key.empty() && !gates::concern(c.it->spec)));
}

bool plain_rows::prepare(connection& on) {
  on_ = &on;
  // OR FAIL: the whole transaction is undone after a failure, so that no statement needs to be able
  // to undo its part.
  const std::string insert =
      "INSERT OR FAIL INTO jobs (" + column_list(plain_columns) + ") VALUES ";
  std::string rows;
  std::string ids;
  for (std::size_t n = 0; n < at_once; ++n) {
    rows += (n > 0 ? ", (" : "(") + parameter_list(plain_columns, n * plain_columns) + ")";
  }
  // The pluses keep the planner from an index: the rows are found by their ids.
  const std::string remove = "DELETE FROM jobs WHERE +queue = ?1 AND +state = ?2 AND id ";
  return add_one_.prepare(on, insert + "(" + parameter_list(plain_columns) + ")") &&
         add_many_.prepare(on, insert + rows) && drop_one_.prepare(on, remove + "= ?3") &&
         drop_many_.prepare(on, remove + "IN (" + parameter_list(at_once, 2) + ")") &&
         is_there_.prepare(on, "SELECT 1 FROM jobs WHERE +queue = ?1 AND +state = ?2 AND id = ?3");
}

void plain_rows::clear() noexcept {
  adds_.clear();
  drops_.clear();
}

bool plain_rows::add(const change& c) {
  adds_.push(c);
  return !adds_.is_full() || write_adds();
}

bool plain_rows::drop(const change& c) {
  const bool is_alike =
      drops_.empty() || ((*drops_.begin())->queue == c.queue && (*drops_.begin())->from == c.from);
  if (!is_alike && !write_drops()) return false;
  drops_.push(c);
  return !drops_.is_full() || write_drops();
}

bool plain_rows::flush() {
  return write_adds() && write_drops();
}

bool plain_rows::write_adds() {
  if (adds_.is_full()) {
    int first = 0;
    for (const change* c : adds_) {
      bind_plain(add_many_, *c->it, c->queue, first);
      first += static_cast<int>(plain_columns);
    }
    adds_.clear();
    return add_many_.run();
  }
  const bool written = std::ranges::all_of(adds_, [this](const change* c) {
    bind_plain(add_one_, *c->it, c->queue);
    return add_one_.run();
  });
  adds_.clear();
  return written;
}

bool plain_rows::write_drops() {
  // A job that is to be dropped may be among those that are still to be added.
  const bool any_new = std::ranges::any_of(drops_, [this](const change* d) {
    return std::ranges::any_of(adds_, [d](const change* a) { return a->it->id <= d->id; });
  });
  if (any_new && !write_adds()) return false;

  const auto bind = [](statement& to, const change& c) {
    to.number(1, c.queue).number(2, static_cast<int>(c.from));
  };
  if (drops_.is_full()) {
    bind(drop_many_, **drops_.begin());
    int at = 3;
    for (const change* c : drops_) drop_many_.number(at++, static_cast<std::int64_t>(c->id));
    if (!drop_many_.run() || !dropped(at_once)) return false;
  } else {
    for (const change* c : drops_) {
      bind(drop_one_, *c);
      drop_one_.number(3, static_cast<std::int64_t>(c->id));
      if (!drop_one_.run()) return false;
      if (sqlite3_changes(on_->handle()) == 1) continue;
      own_error_ = not_as_left(on_->path(), "dropped", std::to_string(c->id), c->id);
      return false;
    }
  }
  drops_.clear();
  return true;
}

bool plain_rows::dropped(std::size_t expected) {
  if (sqlite3_changes(on_->handle()) == static_cast<int>(expected)) return true;
  // Those that were there are gone too by now. With the batch undone, which it is anyway, they are
  // there again, and the first that is not is the one.
  const change* missing = *drops_.begin();
  const bool is_undone = on_->exec("ROLLBACK");
  for (const change* c : drops_) {
    const reset_at_end ended(is_there_);
    is_there_.number(1, c->queue).number(2, static_cast<int>(c->from));
    is_there_.number(3, static_cast<std::int64_t>(c->id));
    missing = c;
    if (!is_undone || is_there_.step() != SQLITE_ROW) break;
  }
  own_error_ =
      not_as_left(on_->path(), "dropped", std::to_string(missing->id), is_undone ? missing->id : 0);
  return false;
}

}  // namespace sluice::jobs::detail
