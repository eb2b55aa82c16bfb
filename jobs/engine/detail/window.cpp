#include "jobs/engine/detail/window.hpp"

#include <iterator>

#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {

void window::publish(job_ptr job, const bounds& b) {
  const position where = position_of(*job);
  if (cut_ && horizon_ < where) return;  // it is read when the horizon gets there
  bytes_ += memory_of(*job);
  const std::size_t before = jobs_.size();
  jobs_.emplace_hint(jobs_.end(), where, std::move(job));
  check(jobs_.size() > before, "sluice::jobs::window", "each job once");
  while (jobs_.size() > 1 && (jobs_.size() > b.jobs || bytes_ > b.bytes)) cut_last();
}

std::optional<std::size_t> window::count_before(const position& where) const {
  if (cut_ && horizon_ < where) return std::nullopt;
  return static_cast<std::size_t>(std::distance(jobs_.begin(), jobs_.lower_bound(where)));
}

job_ptr window::take_front() {
  check(!jobs_.empty(), "sluice::jobs::window", "a job to take");
  auto first = jobs_.begin();
  job_ptr job = std::move(first->second);
  jobs_.erase(first);
  bytes_ -= memory_of(*job);
  return job;
}

bool window::erase(const position& where) {
  const auto found = jobs_.find(where);
  if (found == jobs_.end()) return false;
  bytes_ -= memory_of(*found->second);
  jobs_.erase(found);
  return true;
}

void window::extend(std::vector<job_ptr> next, std::optional<position> last_read, bool was_all) {
  for (job_ptr& job : next) {
    bytes_ += memory_of(*job);
    const position where = position_of(*job);
    const std::size_t before = jobs_.size();
    jobs_.emplace_hint(jobs_.end(), where, std::move(job));
    check(jobs_.size() > before, "sluice::jobs::window", "each job once");
  }
  if (last_read) horizon_ = *last_read;
  cut_ = !was_all;
}

void window::drop_from(const position& where) {
  if (cut_ && horizon_ < where) return;
  while (!jobs_.empty() && !(jobs_.rbegin()->first < where)) {
    bytes_ -= memory_of(*jobs_.rbegin()->second);
    jobs_.erase(std::prev(jobs_.end()));
  }
  cut_ = true;
  horizon_ = {where.priority, where.turn - 1};  // sequence numbers start at 1
}

void window::cut_last() {
  const auto last = std::prev(jobs_.end());
  bytes_ -= memory_of(*last->second);
  jobs_.erase(last);
  cut_ = true;
  // Not the position of the evicted job: jobs between the two may be leased and returned.
  horizon_ = jobs_.rbegin()->first;
}

}  // namespace sluice::jobs::detail
