#include "jobs/store/sqlite/detail/lone_rows.hpp"

#include <algorithm>
#include <string>

#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {

bool lone_rows::is_lone_add(const change& c) noexcept {
  return c.type == change::op::add && c.group == 0 && is_lone(*c.job);
}

bool lone_rows::is_lone_drop(const change& c) noexcept {
  return c.type == change::op::drop &&
         (!c.job || (c.job->spec.unique.key.empty() && !gates::concern(c.job->spec)));
}

void lone_rows::buffer::sort_by_id() noexcept {
  std::sort(changes_.data(), changes_.data() + count_,
            [](const change* a, const change* b) { return a->id < b->id; });
}

bool lone_rows::prepare(connection& on) {
  on_ = &on;
  // The pluses prevent the use of an index: the rows are found by their ids.
  const std::string remove = "DELETE FROM jobs WHERE +queue = ?1 AND +state = ?2 AND id ";
  // OR FAIL: after a failure the whole transaction is rolled back, so a statement needs no journal
  // of its own.
  const auto insert = [](std::size_t columns) {
    return "INSERT OR FAIL INTO jobs (" + column_list(columns) + ", checksum) VALUES ";
  };
  return add_plain_.prepare(on, insert(plain_columns), plain_columns + 1) &&
         add_lone_.prepare(on, insert(lone_columns), lone_columns + 1) &&
         drop_range_.prepare(on, remove + "BETWEEN ?3 AND ?4") &&
         drop_many_.prepare(on, remove + "IN (" + parameter_list(at_once, 2) + ")") &&
         is_there_.prepare(on, "SELECT 1 FROM jobs WHERE +queue = ?1 AND +state = ?2 AND id = ?3");
}

void lone_rows::clear() noexcept {
  adds_.clear();
  drops_.clear();
}

bool lone_rows::add(const change& c) {
  adds_.push(c);
  return !adds_.is_full() || write_adds();
}

bool lone_rows::drop(const change& c) {
  const bool is_alike =
      drops_.empty() || ((*drops_.begin())->queue == c.queue && (*drops_.begin())->from == c.from);
  if (!is_alike && !write_drops()) return false;
  drops_.push(c);
  return !drops_.is_full() || write_drops();
}

bool lone_rows::flush() {
  return write_adds() && write_drops();
}

bool lone_rows::write_adds() {
  const bool are_plain =
      std::ranges::all_of(adds_, [](const change* c) { return is_plain(*c->job); });
  const auto bind = are_plain ? bind_plain : bind_lone;
  row_inserts& add = are_plain ? add_plain_ : add_lone_;
  const bool written = add.run(adds_.size(), [&](statement& target, std::size_t row, int after) {
    const change& c = *adds_.begin()[row];
    bind(target, *c.job, c.queue, after);
  });
  adds_.clear();
  return written;
}

// Jobs end roughly in the order of their ids: a few ranges are dropped by one statement per range,
// and only unordered ids by a statement that sorts them.
bool lone_rows::write_drops() {
  // The add of a job to drop may still be buffered.
  const bool any_new = std::ranges::any_of(drops_, [this](const change* d) {
    return std::ranges::any_of(adds_, [d](const change* a) { return a->job->id <= d->id; });
  });
  if (any_new && !write_adds()) return false;
  if (drops_.empty()) return true;

  drops_.sort_by_id();
  const auto is_gap = [](const change* a, const change* b) { return a->id + 1 != b->id; };
  std::size_t ranges = 1;
  for (auto at = drops_.begin();
       (at = std::adjacent_find(at, drops_.end(), is_gap)) != drops_.end(); ++at) {
    ++ranges;
  }
  constexpr std::size_t ranges_max = at_once / 2;
  if (ranges > ranges_max && drops_.is_full()) {
    if (!drop_all()) return false;
  } else {
    for (auto first = drops_.begin(); first != drops_.end();) {
      auto last = std::adjacent_find(first, drops_.end(), is_gap);
      if (last != drops_.end()) ++last;
      if (!drop_range({first, last})) return false;
      first = last;
    }
  }
  drops_.clear();
  return true;
}

bool lone_rows::drop_range(buffer::range drops) {
  const change& first = *drops.front();
  drop_range_.number(1, first.queue).number(2, static_cast<int>(first.from));
  drop_range_.number(3, static_cast<std::int64_t>(first.id));
  drop_range_.number(4, static_cast<std::int64_t>(drops.back()->id));
  return drop_range_.run() && dropped(drops);
}

bool lone_rows::drop_all() {
  const change& first = **drops_.begin();
  drop_many_.number(1, first.queue).number(2, static_cast<int>(first.from));
  int at = 3;
  for (const change* c : drops_) drop_many_.number(at++, static_cast<std::int64_t>(c->id));
  return drop_many_.run() && dropped({drops_.begin(), drops_.end()});
}

bool lone_rows::dropped(buffer::range drops) {
  if (sqlite3_changes(on_->handle()) == static_cast<int>(drops.size())) return true;
  // The existing jobs have been deleted by now. After a rollback, which is due anyway, they exist
  // again, and the first job that does not is the cause.
  const change* missing = drops.front();
  const bool is_undone = on_->exec("ROLLBACK");
  for (const change* c : drops) {
    const reset_at_end ended(is_there_);
    is_there_.number(1, c->queue).number(2, static_cast<int>(c->from));
    is_there_.number(3, static_cast<std::int64_t>(c->id));
    missing = c;
    if (!is_undone || is_there_.step() != SQLITE_ROW) break;
  }
  own_error_ = changed_elsewhere(on_->path(), "dropped", std::to_string(missing->id),
                                 is_undone ? missing->id : 0);
  return false;
}

}  // namespace sluice::jobs::detail
