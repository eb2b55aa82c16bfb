#include "jobs/protocol/faktory/detail/tracked_jobs.hpp"

#include <mutex>

namespace sluice::jobs::faktory {

void tracked_jobs::note_push(const std::string& jid, job_id id, unix_time now) {
  const std::lock_guard hold(mutex_);
  const auto found = entries_.find(jid);
  if (found == entries_.end() || found->second.id != id) store(jid, {id, now});
}

void tracked_jobs::note_start(const std::string& jid, job_id id, unix_time now) {
  const std::lock_guard hold(mutex_);
  store(jid, {id, now});
}

void tracked_jobs::store(const std::string& jid, const entry& e) {
  if (max_ == 0) return;
  const auto [at, is_new] = entries_.insert_or_assign(jid, e);
  if (!is_new) return;
  oldest_.push_back(&at->first);
  if (oldest_.size() <= max_) return;
  entries_.erase(entries_.find(*oldest_.front()));
  oldest_.pop_front();
}

void tracked_jobs::note_end(const std::string& jid, job_state state, unix_time now) {
  const std::lock_guard hold(mutex_);
  if (const auto found = entries_.find(jid); found != entries_.end()) {
    found->second.ended = state;
    found->second.changed_at = now;
  }
}

void tracked_jobs::note_change(const std::string& jid, unix_time now) {
  const std::lock_guard hold(mutex_);
  if (const auto found = entries_.find(jid); found != entries_.end()) {
    found->second.changed_at = now;
  }
}

std::optional<tracked_jobs::entry> tracked_jobs::find(const std::string& jid) const {
  const std::lock_guard hold(mutex_);
  const auto found = entries_.find(jid);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

}  // namespace sluice::jobs::faktory
