#pragma once

// Collects damaged rows that reads found: reports each to the operator once, and keeps the jobs
// with sound control columns until the engine marks them dead (store::take_damaged).
//
// Any thread may report.

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

  damage_report(std::string path, notice_callback notify)
      : path_(std::move(path)), notify_(std::move(notify)) {}

  void notify(bool is_damage, const std::string& text) const {
    if (notify_) notify_({is_damage, path_ + ": " + text});
  }
  // `problem` completes "job 17 ".
  void job(job_id id, const std::string& problem) { once(id, kind::job, "job ", problem); }
  void batch(job_id id);
  void log_of(job_id id);  // a line of the log of this job
  // Adds a job with sound control columns to those of take().
  void can_be_marked(job_id id);
  std::vector<job_id> take();

 private:
  enum class kind : std::uint8_t { job, batch, log };
  // Reports a row, unless it was reported before.
  void once(job_id id, kind of, const char* name, const std::string& problem);

  const std::string path_;
  const notice_callback notify_;

  mutex mutex_;
  std::set<std::pair<job_id, kind>> reported_;  // protected by mutex_
  std::vector<job_id> damaged_;                 // protected by mutex_
};

}  // namespace sluice::jobs::detail
