#pragma once

// Which job a jid stands for, of the newest jobs that came or went over this protocol.
//
// Any thread may call anything; one short lock. Bounds: `max` jids, the oldest go first.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "jobs/model/job.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs::faktory {

class tracked_jobs {
 public:
  struct entry {
    job_id id = 0;
    unix_time changed_at{};
    std::optional<job_state> ended{};  // how, as this server has seen it
  };

  explicit tracked_jobs(std::size_t max) : max_(max) {}

  // Its push was answered. By then a worker may have had it, and ended it.
  void saw_push(const std::string& jid, job_id id, unix_time now);
  void saw_start(const std::string& jid, job_id id, unix_time now);
  void saw_end(const std::string& jid, job_state how, unix_time now);
  void saw_change(const std::string& jid, unix_time now);
  std::optional<entry> find(const std::string& jid) const;

 private:
  void saw(const std::string& jid, const entry& as);  // with mutex_ held

  const std::size_t max_;
  mutable mutex mutex_;
  // Protected by mutex_.
  std::unordered_map<std::string, entry> entries_;
  std::deque<const std::string*> oldest_;  // the keys of entries_, in the order in which they came
};

}  // namespace sluice::jobs::faktory
