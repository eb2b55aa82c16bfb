#pragma once

// Facts about batches that only this protocol needs: the parent, and the ids of the callbacks.
//
// Any thread may call any function; one short lock. Bounds: `max` batches, the oldest are dropped
// first; a restart drops all.

#include <cstddef>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "jobs/model/job.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs::faktory {

class batch_table {
 public:
  struct entry {
    job_id parent = 0;                 // zero: none
    job_id success = 0, complete = 0;  // zero: none
  };

  explicit batch_table(std::size_t max) : max_(max) {}

  void add(job_id batch, entry e) {
    const std::lock_guard hold(mutex_);
    entries_[batch] = e;
    oldest_.push_back(batch);
    if (oldest_.size() <= max_) return;
    entries_.erase(oldest_.front());
    oldest_.pop_front();
  }
  entry find(job_id batch) const {
    const std::lock_guard hold(mutex_);
    const auto found = entries_.find(batch);
    return found == entries_.end() ? entry{} : found->second;
  }

 private:
  const std::size_t max_;
  mutable mutex mutex_;
  // Protected by mutex_.
  std::unordered_map<job_id, entry> entries_;
  std::deque<job_id> oldest_;
};

}  // namespace sluice::jobs::faktory
