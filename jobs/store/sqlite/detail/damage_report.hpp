#pragma once

// The damaged rows that reads came across: each is reported to the operator once, and those whose
// control columns are sound wait to be marked dead.
//
// Any thread may report; see store::take_damaged for the other end.

#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "jobs/model/job.hpp"
#include "jobs/store/sqlite/notice.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs::detail {

class damage_report {
 public:
  static constexpr std::size_t reported_max = 1000;

  damage_report(std::string path, notice_callback to)
      : path_(std::move(path)), to_(std::move(to)) {}

  void notify(bool is_damage, const std::string& text) const {
    if (to_) to_({is_damage, path_ + ": " + text});
  }
  // `what` completes "job 17 ".
  void job(job_id id, const std::string& what);
  // Adds it to those that can be marked dead.
  void can_be_marked(job_id id);
  std::vector<job_id> take();

 private:
  const std::string path_;
  const notice_callback to_;

  mutex mutex_;
  std::unordered_set<job_id> reported_;  // protected by mutex_
  std::vector<job_id> damaged_;          // protected by mutex_
};

}  // namespace sluice::jobs::detail
