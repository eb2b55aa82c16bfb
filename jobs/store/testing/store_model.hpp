#pragma once

// What a store should hold, kept in the simplest way that can be read at a glance: every answer is
// a scan. The random comparison holds a real store against it.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/testing/store_words.hpp"

namespace sluice::jobs::testing {

class store_model {
 public:
  struct key {
    job_id holder = 0;
    std::optional<unix_time> expires;
  };

  std::map<job_id, job> jobs;
  std::map<std::pair<queue_number, std::string>, key> keys;
  std::map<queue_number, change::queue_settings> queues;
  std::map<job_id, change::lease_record> leases;
  std::uint64_t ids_up_to = 0;

  // The changes of one group, or a single add; who was in the way of each (all zero: added).
  std::vector<job_id> add(const std::vector<job>& group, unix_time now) {
    std::vector<job_id> holders;
    const auto before = keys;
    for (const job& j : group) holders.push_back(take_key(j, now));
    if (std::ranges::any_of(holders, [](job_id h) { return h != 0; })) {
      keys = before;
    } else {
      for (const job& j : group) jobs[j.id] = j;
    }
    return holders;
  }

  void move(job_id id, job_state to, const change::moved& how) {
    job& j = jobs.at(id);
    j.state = to;
    j.due_at = how.due_at;
    if (how.turn != 0) j.turn = how.turn;
    j.attempts = how.attempts.value_or(j.attempts);
    j.ended_at = how.ended_at.value_or(j.ended_at);
    j.spec.priority = how.priority.value_or(j.spec.priority);
    if (how.result) j.result = how.result;
    if (how.error) j.errors.push_back(*how.error);
    if (j.errors.size() > limits::errors_max) j.errors.erase(j.errors.begin());
    if (how.free_key) free_key(j);
  }

  void drop(job_id id) {
    free_key(jobs.at(id));
    jobs.erase(id);
  }

  void free_key(const job& j) {
    const auto at = keys.find({number_of(j.spec.queue), j.spec.unique.key});
    if (at != keys.end() && at->second.holder == j.id && !at->second.expires) keys.erase(at);
  }

  queue_counts counts(queue_number queue) const {
    queue_counts c;
    for (const auto& [id, j] : jobs) {
      if (number_of(j.spec.queue) != queue) continue;
      ++c.of(j.state);
      if (!has_ended(j.state)) c.bytes += weight_of(j.spec);
    }
    return c;
  }

  // The jobs for which `keep` holds, sorted by `before`.
  template <class Keep, class Before>
  std::vector<job> sorted(Keep keep, Before before) const {
    std::vector<job> found;
    for (const auto& [id, j] : jobs) {
      if (keep(j)) found.push_back(j);
    }
    std::ranges::sort(found, before);
    return found;
  }

  std::vector<job> ready(queue_number queue) const {
    return sorted(
        [&](const job& j) {
          return j.state == job_state::ready && number_of(j.spec.queue) == queue;
        },
        [](const job& a, const job& b) {
          return position{a.spec.priority, a.turn} < position{b.spec.priority, b.turn};
        });
  }

  std::vector<job> timed() const {
    return sorted([](const job& j) { return j.due_at != unix_time{}; },
                  [](const job& a, const job& b) {
                    return std::pair(a.due_at, a.id) < std::pair(b.due_at, b.id);
                  });
  }

 private:
  job_id take_key(const job& j, unix_time now) {
    const unique_key& u = j.spec.unique;
    if (u.key.empty()) return 0;
    const auto at = keys.find({number_of(j.spec.queue), u.key});
    if (at != keys.end() && (!at->second.expires || *at->second.expires > now)) {
      return at->second.holder;
    }
    key& mine = keys[{number_of(j.spec.queue), u.key}];
    mine = {j.id, std::nullopt};
    if (u.until == unique_until::elapsed) mine.expires = j.created_at + u.lasts;
    return 0;
  }
};

}  // namespace sluice::jobs::testing
