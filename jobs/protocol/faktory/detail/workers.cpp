#include "jobs/protocol/faktory/detail/workers.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice::jobs::faktory {

workers::connection workers::enter() {
  const std::lock_guard hold(mutex_);
  connections_.emplace(++last_, std::make_shared<worker>());
  return last_;
}

void workers::introduce(connection id, const hello_call& call, unix_time now) {
  const std::lock_guard hold(mutex_);
  std::shared_ptr<worker>& own = connections_.at(id);
  if (call.wid.empty()) {
    own->connections = 1;
    return;
  }
  std::shared_ptr<worker>& named = by_wid_[call.wid];
  if (named == nullptr) {
    named = own;
    named->shown = {.wid = call.wid,
                    .hostname = call.hostname,
                    .pid = call.pid,
                    .labels = call.labels,
                    .since = now,
                    .last_beat = now};
    named->requested = initial_state_;
  }
  own = named;
  ++own->connections;
}

std::vector<held_job> workers::leave(connection id) {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return {};
  const std::shared_ptr<worker> own = std::move(found->second);
  connections_.erase(found);
  if (own->connections > 0 && --own->connections > 0) return {};
  by_wid_.erase(own->shown.wid);
  return remove_all(*own);
}

void workers::add_job(connection id, const std::string& jid, held_job job) {
  const std::lock_guard hold(mutex_);
  worker& own = *connections_.at(id);
  own.is_lost = false;
  // The previous holder's lease has expired.
  if (const auto before = held_.find(job.lease.job); before != held_.end()) forget(before);
  const auto at = own.jobs.emplace(jid, job.lease.job).first;
  held_.emplace(job.lease.job, holding{job, &own, at});
  if (own.shown.wid.empty()) nameless_.insert(*at);
}

void workers::forget_ended(connection id, const std::function<bool(job_id)>& is_leased) {
  const std::lock_guard hold(mutex_);
  worker& own = *connections_.at(id);
  if (own.jobs.size() < own.forget_threshold) return;
  for (auto it = own.jobs.begin(); it != own.jobs.end();) {
    const job_id job = (it++)->second;
    if (!is_leased(job)) forget(held_.find(job));
  }
  own.forget_threshold = std::max(forget_threshold_min, 2 * own.jobs.size());
}

workers::held_map::const_iterator workers::find_locked(connection id,
                                                       const std::string& jid) const {
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return held_.end();
  const auto first_of = [&](const held_by_jid& jobs) {
    const auto at = jobs.lower_bound({jid, 0});
    return at == jobs.end() || at->first != jid ? held_.end() : held_.find(at->second);
  };
  const auto own = first_of(entry->second->jobs);
  if (own != held_.end() || !entry->second->shown.wid.empty()) return own;
  return first_of(nameless_);
}

void workers::forget(held_map::const_iterator it) {
  worker& by = *it->second.by;
  if (by.shown.wid.empty()) nameless_.erase(*it->second.at);
  by.jobs.erase(it->second.at);
  held_.erase(it);
}

std::optional<held_job> workers::find(connection id, const std::string& jid) const {
  const std::lock_guard hold(mutex_);
  const auto found = find_locked(id, jid);
  if (found == held_.end()) return std::nullopt;
  return found->second.job;
}

std::optional<held_job> workers::remove_job(connection id, const std::string& jid) {
  const std::lock_guard hold(mutex_);
  const auto found = find_locked(id, jid);
  if (found == held_.end()) return std::nullopt;
  const held_job job = found->second.job;
  forget(found);
  return job;
}

std::vector<workers::fetched> workers::all_fetched() const {
  const std::lock_guard hold(mutex_);
  std::vector<fetched> all;
  all.reserve(held_.size());
  for (const auto& [id, held] : held_) all.push_back({held.at->first, held.job.lease});
  return all;
}

void workers::remove_job(const fetched& job) {
  const std::lock_guard hold(mutex_);
  const auto found = held_.find(job.lease.job);
  if (found != held_.end() && found->second.job.lease == job.lease) forget(found);
}

std::vector<held_job> workers::remove_all(worker& w) {
  std::vector<held_job> all;
  all.reserve(w.jobs.size());
  while (!w.jobs.empty()) {
    const auto it = held_.find(w.jobs.begin()->second);
    check(it != held_.end() && it->second.by == &w, "sluice::jobs::faktory::workers",
          "an entry for each job of a worker");
    all.push_back(it->second.job);
    forget(it);
  }
  return all;
}

workers::beat_answer workers::beat(const beat_call& call, unix_time now) {
  const std::lock_guard hold(mutex_);
  const auto found = by_wid_.find(call.wid);
  if (found == by_wid_.end()) return {};
  worker& w = *found->second;
  w.has_beaten = true;
  w.is_lost = false;
  w.shown.last_beat = now;
  w.shown.rss_kb = call.rss_kb;
  // Unknown states of client libraries count as running.
  w.reported = worker_state_from(call.current_state).value_or(worker_state::running);
  return {beat_result::known, w.requested > w.reported ? w.requested : worker_state::running};
}

std::optional<unix_time> workers::lost_at(connection id, milliseconds silence) const {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second->shown.wid.empty()) return std::nullopt;
  return found->second->shown.last_beat + silence;
}

std::vector<held_job> workers::lose(connection id, milliseconds silence, unix_time now) {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second->has_beaten) return {};
  worker& w = *found->second;
  if (now < w.shown.last_beat + silence) return {};
  w.has_beaten = false;  // until it beats again
  w.is_lost = true;
  ++lost_;
  return remove_all(w);
}

void workers::request(worker& w, worker_state state) {
  w.requested = std::max(w.requested, state);  // `terminate` is not replaced by `quiet`
}

std::optional<faktory_worker> workers::set_state(const std::string& wid, worker_state state) {
  const std::lock_guard hold(mutex_);
  const auto found = by_wid_.find(wid);
  if (found == by_wid_.end()) return std::nullopt;
  request(*found->second, state);
  return shown(*found->second);
}

void workers::set_all_states(worker_state state) {
  const std::lock_guard hold(mutex_);
  initial_state_ = state;
  for (auto& [wid, w] : by_wid_) request(*w, state);
}

bool workers::is_stopping(connection id) const {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(id);
  return found != connections_.end() && found->second->requested != worker_state::running;
}

faktory_worker workers::shown(const worker& w) {
  faktory_worker info = w.shown;
  info.running = w.jobs.size();
  info.state = std::max(w.requested, w.reported);
  return info;
}

faktory_worker_page workers::list(const std::string& after, std::size_t limit) const {
  const std::lock_guard hold(mutex_);
  faktory_worker_page page;
  for (auto it = by_wid_.upper_bound(after); it != by_wid_.end(); ++it) {
    if (it->second->is_lost) continue;
    if (page.workers.size() == limit) {
      page.cursor = page.workers.back().wid;
      break;
    }
    page.workers.push_back(shown(*it->second));
  }
  return page;
}

workers::totals workers::count() const {
  const std::lock_guard hold(mutex_);
  totals all;
  for (const auto& [wid, w] : by_wid_) all.workers += w->is_lost ? 0U : 1U;
  all.jobs = held_.size();
  all.lost = lost_;
  return all;
}

}  // namespace sluice::jobs::faktory
