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

void workers::introduce(connection who, const hello_call& said, unix_time now) {
  const std::lock_guard hold(mutex_);
  std::shared_ptr<worker>& mine = connections_.at(who);
  if (said.wid.empty()) {
    mine->connections = 1;
    return;
  }
  std::shared_ptr<worker>& named = by_wid_[said.wid];
  if (named == nullptr) {
    named = mine;
    named->shown = {.wid = said.wid,
                    .hostname = said.hostname,
                    .pid = said.pid,
                    .labels = said.labels,
                    .since = now,
                    .last_beat = now};
    named->told = for_newcomers_;
  }
  mine = named;
  ++mine->connections;
}

std::vector<held_job> workers::leave(connection who) {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(who);
  if (found == connections_.end()) return {};
  const std::shared_ptr<worker> mine = std::move(found->second);
  connections_.erase(found);
  if (mine->connections > 0 && --mine->connections > 0) return {};
  by_wid_.erase(mine->shown.wid);
  return empty_hands(*mine);
}

void workers::took(connection who, const std::string& jid, held_job job) {
  const std::lock_guard hold(mutex_);
  worker& mine = *connections_.at(who);
  mine.is_lost = false;
  // Whoever had this job before has it no more: its lease ran out.
  if (const auto before = held_.find(job.lease.job); before != held_.end()) forget(before);
  const auto at = mine.jobs.emplace(jid, job.lease.job).first;
  held_.emplace(job.lease.job, holding{job, &mine, at});
  if (mine.shown.wid.empty()) nameless_.insert(*at);
}

void workers::forget_ended(connection who, const std::function<bool(job_id)>& is_leased) {
  const std::lock_guard hold(mutex_);
  worker& mine = *connections_.at(who);
  if (mine.jobs.size() < mine.looks_at_jobs) return;
  for (auto it = mine.jobs.begin(); it != mine.jobs.end();) {
    const job_id id = (it++)->second;
    if (!is_leased(id)) forget(held_.find(id));
  }
  mine.looks_at_jobs = std::max(looks_at_jobs_first, 2 * mine.jobs.size());
}

workers::held_map::const_iterator workers::find_locked(connection who,
                                                       const std::string& jid) const {
  const auto mine = connections_.find(who);
  if (mine == connections_.end()) return held_.end();
  const auto first_of = [&](const held_by_jid& jobs) {
    const auto at = jobs.lower_bound({jid, 0});
    return at == jobs.end() || at->first != jid ? held_.end() : held_.find(at->second);
  };
  const auto own = first_of(mine->second->jobs);
  if (own != held_.end() || !mine->second->shown.wid.empty()) return own;
  return first_of(nameless_);
}

void workers::forget(held_map::const_iterator it) {
  worker& by = *it->second.by;
  if (by.shown.wid.empty()) nameless_.erase(*it->second.at);
  by.jobs.erase(it->second.at);
  held_.erase(it);
}

std::optional<held_job> workers::find(connection who, const std::string& jid) const {
  const std::lock_guard hold(mutex_);
  const auto found = find_locked(who, jid);
  if (found == held_.end()) return std::nullopt;
  return found->second.job;
}

std::optional<held_job> workers::put_down(connection who, const std::string& jid) {
  const std::lock_guard hold(mutex_);
  const auto found = find_locked(who, jid);
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

void workers::put_down(const fetched& it) {
  const std::lock_guard hold(mutex_);
  const auto found = held_.find(it.lease.job);
  if (found != held_.end() && found->second.job.lease == it.lease) forget(found);
}

std::vector<held_job> workers::empty_hands(worker& who) {
  std::vector<held_job> all;
  all.reserve(who.jobs.size());
  while (!who.jobs.empty()) {
    const auto it = held_.find(who.jobs.begin()->second);
    check(it != held_.end() && it->second.by == &who, "sluice::jobs::faktory::workers",
          "what a worker holds to be known");
    all.push_back(it->second.job);
    forget(it);
  }
  return all;
}

workers::beat_answer workers::beat(const beat_call& said, unix_time now) {
  const std::lock_guard hold(mutex_);
  const auto found = by_wid_.find(said.wid);
  if (found == by_wid_.end()) return {};
  worker& w = *found->second;
  w.has_beaten = true;
  w.is_lost = false;
  w.shown.last_beat = now;
  w.shown.rss_kb = said.rss_kb;
  // A state that only its own language knows is none of ours.
  w.said = worker_state_from(said.current_state).value_or(worker_state::running);
  return {beat_result::heard, w.told > w.said ? w.told : worker_state::running};
}

std::optional<unix_time> workers::lost_at(connection who, milliseconds silence) const {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(who);
  if (found == connections_.end() || found->second->shown.wid.empty()) return std::nullopt;
  return found->second->shown.last_beat + silence;
}

std::vector<held_job> workers::lose(connection who, milliseconds silence, unix_time now) {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(who);
  if (found == connections_.end() || !found->second->has_beaten) return {};
  worker& w = *found->second;
  if (now < w.shown.last_beat + silence) return {};
  w.has_beaten = false;  // until it beats again
  w.is_lost = true;
  ++lost_;
  return empty_hands(w);
}

void workers::tell(worker& who, worker_state what) {
  who.told = std::max(who.told, what);  // one that is to end is not to be quiet again
}

std::optional<faktory_worker> workers::tell(const std::string& wid, worker_state what) {
  const std::lock_guard hold(mutex_);
  const auto found = by_wid_.find(wid);
  if (found == by_wid_.end()) return std::nullopt;
  tell(*found->second, what);
  return shown(*found->second);
}

void workers::tell_all(worker_state what) {
  const std::lock_guard hold(mutex_);
  for_newcomers_ = what;
  for (auto& [wid, who] : by_wid_) tell(*who, what);
}

bool workers::is_told(connection who) const {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(who);
  return found != connections_.end() && found->second->told != worker_state::running;
}

faktory_worker workers::shown(const worker& who) {
  faktory_worker it = who.shown;
  it.running = who.jobs.size();
  it.state = std::max(who.told, who.said);
  return it;
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
  for (const auto& [wid, who] : by_wid_) all.workers += who->is_lost ? 0U : 1U;
  all.jobs = held_.size();
  all.lost = lost_;
  return all;
}

}  // namespace sluice::jobs::faktory
