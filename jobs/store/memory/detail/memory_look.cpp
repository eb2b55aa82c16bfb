// The reads of a memory store.

#include <algorithm>

#include "jobs/store/memory/detail/memory_state.hpp"

namespace sluice::jobs::detail {
namespace {

// A page of a list scans at most this many jobs per requested job.
constexpr std::size_t looked_at_for_each = 10;
constexpr std::size_t looked_at_least = 1000;

bool fits(const job_filter& filter, const job& j, queue_number queue) {
  return (!filter.queue || *filter.queue == queue) && (!filter.state || *filter.state == j.state) &&
         (filter.kind.empty() || filter.kind == j.spec.kind) &&
         (filter.batch == 0 || filter.batch == j.spec.batch);
}

}  // namespace

store::contents memory_state::load() const {
  store::contents all;
  all.ids_up_to = ids_up_to_;
  for (const auto& [number, q] : queues_) {
    all.queues.push_back({number, q.name, q.options, q.counts});
  }
  for (const auto& [id, saved] : leases_) {
    if (saved.second.is_cancelled) {
      const auto q = queues_.find(saved.first);
      if (q == queues_.end()) continue;
      all.leases.push_back(
          {cancelled_job(id, q->second.name, saved.second), saved.first, saved.second});
      continue;
    }
    const auto at = jobs_.find(id);
    if (at == jobs_.end() || at->second.job->state != job_state::ready) continue;
    all.leases.push_back({at->second.job, saved.first, saved.second});
  }
  for (const auto& [name, entry] : crons_) all.crons.push_back(entry);
  return all;
}

std::vector<job_ptr> memory_state::ready_after(queue_number queue, position after,
                                               page_limit limit) const {
  std::vector<job_ptr> page;
  const auto q = queues_.find(queue);
  if (q == queues_.end()) return page;
  std::uint64_t bytes = 0;
  for (auto at = q->second.ready.upper_bound(after); at != q->second.ready.end(); ++at) {
    if (page.size() >= limit.jobs || bytes >= limit.bytes) break;
    page.push_back(jobs_.at(at->second).job);
    bytes += weight_of(page.back()->spec);
  }
  return page;
}

due_page memory_state::due(unix_time now, std::size_t limit) const {
  due_page page;
  std::uint64_t bytes = 0;
  for (const auto& [when, id] : due_) {
    if (when > now || page.jobs.size() >= limit || bytes >= page_limit{}.bytes) {
      page.next = when;
      break;
    }
    page.jobs.push_back(jobs_.at(id).job);
    bytes += weight_of(page.jobs.back()->spec);
  }
  for (const auto& [when, id] : due_batches_) {
    if (when > now || page.batches.size() >= limit) {
      page.next = page.next ? std::min(*page.next, when) : when;
      break;
    }
    page.batches.push_back(id);
  }
  return page;
}

timed_page memory_state::timed_after(queue_number queue, due_place after, std::size_t limit) const {
  timed_page page;
  std::size_t looked_at = 0;
  for (auto at = due_.upper_bound({after.at, after.id}); at != due_.end(); ++at) {
    if (page.jobs.size() >= limit || looked_at >= looked_at_least + looked_at_for_each * limit) {
      const auto& [when, id] = *std::prev(at);
      page.cursor = due_place{when, id};
      break;
    }
    ++looked_at;
    const kept_job& kept = jobs_.at(at->second);
    if (kept.queue == queue && waits_for_its_time(kept.job->state)) page.jobs.push_back(*kept.job);
  }
  return page;
}

std::vector<job_ptr> memory_state::victims(queue_number queue, victim which, std::size_t limit,
                                           const std::function<bool(job_id)>& skip) const {
  std::vector<job_ptr> found;
  const auto q = queues_.find(queue);
  if (q == queues_.end()) return found;
  const auto& ready = q->second.ready;
  std::uint64_t bytes = 0;
  const auto wants_more = [&] { return found.size() < limit && bytes < page_limit{}.bytes; };
  const auto take = [&](job_id id) {
    if (skip(id)) return true;
    found.push_back(jobs_.at(id).job);
    bytes += weight_of(found.back()->spec);
    return wants_more();
  };
  // From the least urgent priority on, by arrival within a priority.
  for (auto end = ready.end(); end != ready.begin() && wants_more();) {
    const auto first = ready.lower_bound({std::prev(end)->first.priority, 0});
    if (which == victim::oldest) {
      for (auto at = first; at != end && take(at->second);) ++at;
    } else {
      for (auto at = end; at != first && take(std::prev(at)->second);) --at;
    }
    end = first;
  }
  return found;
}

std::optional<job> memory_state::get(job_id id) const {
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return std::nullopt;
  return *at->second.job;
}

job_page memory_state::list(const job_filter& filter, job_id after, std::size_t limit) const {
  job_page page;
  std::size_t looked_at = 0;
  for (auto at = jobs_.upper_bound(after); at != jobs_.end(); ++at) {
    if (page.jobs.size() >= limit || looked_at >= looked_at_least + looked_at_for_each * limit) {
      page.cursor = std::prev(at)->first;
      break;
    }
    ++looked_at;
    if (fits(filter, *at->second.job, at->second.queue)) page.jobs.push_back(*at->second.job);
  }
  return page;
}

std::optional<batch_info> memory_state::get_batch(job_id id) const {
  const auto at = batches_.find(id);
  return at == batches_.end() ? std::nullopt : std::optional(at->second);
}

batch_page memory_state::list_batches(job_id after, std::size_t limit) const {
  batch_page page;
  for (auto at = batches_.upper_bound(after); at != batches_.end(); ++at) {
    if (page.batches.size() >= limit) {
      page.cursor = page.batches.empty() ? after : page.batches.back().id;
      break;
    }
    page.batches.push_back(at->second);
  }
  return page;
}

log_page memory_state::logs(job_id id, std::uint64_t after, std::size_t limit) const {
  log_page page;
  const auto at = logs_.find(id);
  if (at == logs_.end()) return page;
  const std::vector<log_line>& all = at->second;
  std::uint64_t bytes = 0;
  for (std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(after, all.size()));
       n < all.size(); ++n) {
    if (page.lines.size() >= limit || bytes >= page_limit{}.bytes) {
      page.cursor = n;  // the number of the line before
      break;
    }
    page.lines.push_back(all[n]);
    bytes += all[n].text.size();
  }
  return page;
}

}  // namespace sluice::jobs::detail
