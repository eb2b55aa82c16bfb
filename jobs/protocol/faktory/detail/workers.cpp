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
                    .last_beat = now,
                    .running = 0,
                    .rss_kb = 0,
                    .state = {}};
    named->told = for_newcomers_;
  }
  mine = named;
  ++mine->connections;
}

std::vector<lease_ref> workers::leave(connection who) {
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
  for (auto [it, end] = held_.equal_range(jid); it != end;) {
    if (it->second.job.lease.job == job.lease.job) {
      forget(it++);
    } else {
      ++it;
    }
  }
  mine.jids.insert_or_assign(job.lease.job, jid);
  held_.emplace(jid, holding{job, &mine});
}

void workers::forget_ended(connection who, const std::function<bool(job_id)>& is_leased) {
  const std::lock_guard hold(mutex_);
  worker& mine = *connections_.at(who);
  if (mine.jids.size() < mine.looks_at_jobs) return;
  for (auto it = held_.begin(); it != held_.end();) {
    const bool is_over = it->second.by == &mine && !is_leased(it->second.job.lease.job);
    is_over ? forget(it++) : void(++it);
  }
  mine.looks_at_jobs = std::max(looks_at_jobs_first, 2 * mine.jids.size());
}

workers::held_map::iterator workers::find_locked(connection who, const std::string& jid) {
  const auto [begin, end] = held_.equal_range(jid);
  if (begin == end) return held_.end();
  const auto mine = connections_.find(who);
  for (auto it = begin; it != end; ++it) {
    if (mine != connections_.end() && it->second.by == mine->second.get()) return it;
  }
  return begin;
}

void workers::forget(held_map::iterator it) {
  it->second.by->jids.erase(it->second.job.lease.job);
  held_.erase(it);
}

std::optional<held_job> workers::find(connection who, const std::string& jid) const {
  const std::lock_guard hold(mutex_);
  auto& me = const_cast<workers&>(*this);
  const auto found = me.find_locked(who, jid);
  if (found == me.held_.end()) return std::nullopt;
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
  for (const auto& [jid, held] : held_) all.push_back({jid, held.job.lease});
  return all;
}

void workers::put_down(const fetched& it) {
  const std::lock_guard hold(mutex_);
  const auto [begin, end] = held_.equal_range(it.jid);
  const auto found =
      std::find_if(begin, end, [&](const auto& held) { return held.second.job.lease == it.lease; });
  if (found != end) forget(found);
}

std::vector<lease_ref> workers::empty_hands(worker& who) {
  std::vector<lease_ref> all;
  all.reserve(who.jids.size());
  for (const auto& [id, jid] : std::exchange(who.jids, {})) {
    auto [it, end] = held_.equal_range(jid);
    while (it != end && (it->second.by != &who || it->second.job.lease.job != id)) ++it;
    check(it != end, "sluice::jobs::faktory::workers", "what a worker holds to be known");
    all.push_back(it->second.job.lease);
    held_.erase(it);
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
  w.said = said.current_state;
  return {beat_result::heard, w.told == w.said ? std::string() : w.told};
}

std::optional<unix_time> workers::lost_at(connection who, milliseconds silence) const {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(who);
  if (found == connections_.end() || found->second->shown.wid.empty()) return std::nullopt;
  return found->second->shown.last_beat + silence;
}

std::vector<lease_ref> workers::lose(connection who, milliseconds silence, unix_time now) {
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

bool workers::tell(const std::string& wid, std::string_view state) {
  const std::lock_guard hold(mutex_);
  bool any = false;
  for (auto& [name, who] : by_wid_) {
    if (!wid.empty() && name != wid) continue;
    // One that is to end is not to be quiet again.
    if (who->told != "terminate") who->told = state;
    any = true;
  }
  return any;
}

bool workers::is_told(connection who) const {
  const std::lock_guard hold(mutex_);
  const auto found = connections_.find(who);
  return found != connections_.end() && !found->second->told.empty();
}

void workers::tell_newcomers(std::string_view state) {
  const std::lock_guard hold(mutex_);
  for_newcomers_ = state;
}

std::vector<faktory_server::worker> workers::list() const {
  const std::lock_guard hold(mutex_);
  std::vector<faktory_server::worker> all;
  for (const auto& [wid, who] : by_wid_) {
    if (who->is_lost) continue;
    all.push_back(who->shown);
    all.back().running = who->jids.size();
    all.back().state = who->told.empty() ? who->said : who->told;
  }
  return all;
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
