#pragma once

// Damaged rows that reads found: each is reported to the operator once, and jobs
// with sound control columns wait to be marked dead.
//
// Any thread may report; see store::take_damaged for the other end.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
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
  void job(job_id id, const std::string& what) { once(id, kind::job, "job ", what); }
  void batch(job_id id);
  void log_of(job_id id);  // a line of the log of this job
  // Its control columns are sound.
  void can_be_marked(job_id id);
  std::vector<job_id> take();

 private:
  enum class kind : std::uint8_t { job, batch, log };
  // Reports it, unless that was done before.
  void once(job_id id, kind of, const char* name, const std::string& what);

  const std::string path_;
  const notice_callback to_;

  mutex mutex_;
  std::set<std::pair<job_id, kind>> reported_;  // protected by mutex_
  std::vector<job_id> damaged_;                 // protected by mutex_
};

}  // namespace sluice::jobs::detail
