#include "jobs/store/sqlite/detail/damage_report.hpp"

#include <algorithm>
#include <mutex>

namespace sluice::jobs::detail {

void damage_report::batch(job_id id) {
  once(
      id, kind::batch, "batch ",
      "is damaged: its row does not match its checksum. It is not shown, never ends, and jobs that "
      "wait for it stay held");
}

void damage_report::log_of(job_id id) {
  once(id, kind::log, "a log line of job ", "is damaged: it does not match its checksum");
}

void damage_report::once(job_id id, kind of, const char* name, const std::string& problem) {
  bool is_last = false;
  {
    const std::lock_guard hold(mutex_);
    if (reported_.size() >= reported_max || !reported_.insert({id, of}).second) return;
    is_last = reported_.size() == reported_max;
  }
  notify(true, name + std::to_string(id) + " " + problem +
                   "; run 'sluice check', and see docs/reference/store.md#damage");
  if (is_last) notify(true, "further damaged rows are not reported");
}

void damage_report::can_be_marked(job_id id) {
  const std::lock_guard hold(mutex_);
  if (damaged_.size() >= reported_max || std::ranges::find(damaged_, id) != damaged_.end()) return;
  damaged_.push_back(id);
}

std::vector<job_id> damage_report::take() {
  const std::lock_guard hold(mutex_);
  return std::exchange(damaged_, {});
}

}  // namespace sluice::jobs::detail
