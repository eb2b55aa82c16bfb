#pragma once

// Maps jids to ids, for the newest jobs that were pushed or fetched with this protocol.
//
// Any thread may call any function; one short lock. Bounds: `max` jids, the oldest are dropped
// first.

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
    std::optional<job_state> ended{};  // the final state, if this server saw it
  };

  explicit tracked_jobs(std::size_t max) : max_(max) {}

  // Called when a push is answered. A worker may have fetched and ended the job before.
  void note_push(const std::string& jid, job_id id, unix_time now);
  void note_start(const std::string& jid, job_id id, unix_time now);
  void note_end(const std::string& jid, job_state state, unix_time now);
  void note_change(const std::string& jid, unix_time now);
  std::optional<entry> find(const std::string& jid) const;

 private:
  void store(const std::string& jid, const entry& e);  // with mutex_ held

  const std::size_t max_;
  mutable mutex mutex_;
  // Protected by mutex_.
  std::unordered_map<std::string, entry> entries_;
  std::deque<const std::string*> oldest_;  // the keys of entries_, in order of insertion
};

}  // namespace sluice::jobs::faktory
