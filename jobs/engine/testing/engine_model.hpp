#pragma once

// A simple model of the engine: every job, lease and unique key in a map, and every query a loop
// over all of them. The test makes each change in both (engine_model_test).
//
// Every duration is of whole seconds, and time advances one second at a time, so both agree on the
// time of every event.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/model/job.hpp"
#include "jobs/model/queue.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs::testing {

using namespace std::chrono_literals;

struct model_job {
  std::string queue;
  std::int64_t priority = 0;
  std::uint64_t arrival = 0;  // its position among the ready jobs of its priority
  job_state state = job_state::ready;
  bool has_place = false;  // holds its key although it is scheduled
  std::uint32_t attempts = 0;
  std::size_t errors = 0;
  unix_time due{};
  unique_key unique;
  std::string key;
  milliseconds keep{0};
  milliseconds lease_for{0};
  std::uint32_t attempts_max = 3;
  std::optional<payload> result;
};

struct model_lease {
  std::uint64_t key = 0;
  unix_time until{};
  milliseconds lasts{0};
  std::string queue;  // of its job, which may be deleted
  std::string line;   // the key of its job
  bool is_cancelled = false;
};

struct model_queue {
  std::uint64_t capacity = 1000;
  overflow when_full = overflow::reject;
  bool paused = false;
  std::uint32_t concurrency = 0;
  std::uint32_t key_concurrency = 1;
};

struct held_key {
  job_id holder = 0;
  std::optional<unix_time> expires;
};

class model {
 public:
  std::map<job_id, model_job> jobs;
  std::map<job_id, model_lease> leases;
  std::map<std::string, model_queue> queues;
  std::map<std::pair<std::string, std::string>, held_key> keys;
  unix_time now{};
  std::uint64_t arrivals = 0;

  using job_ids = std::vector<job_id>;

  bool is_leased(job_id id) const {
    const auto at = leases.find(id);
    return at != leases.end() && !at->second.is_cancelled;
  }
  std::uint64_t unfinished(const std::string& queue) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(jobs, [&](const auto& one) {
      return one.second.queue == queue && !has_ended(one.second.state);
    }));
  }
  // Leases that have not ended, including leases of cancelled jobs.
  std::uint64_t leases_of(const std::string& queue) const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(leases, [&](const auto& one) { return one.second.queue == queue; }));
  }
  std::uint64_t leases_of(const std::string& queue, const std::string& key) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(leases, [&](const auto& one) {
      return one.second.queue == queue && one.second.line == key;
    }));
  }
  bool has_cancelled_lease(const std::string& queue, const std::string& key) const {
    return std::ranges::any_of(leases, [&](const auto& one) {
      return one.second.queue == queue && one.second.line == key && one.second.is_cancelled;
    });
  }
  // Returns whether the leases of its key permit another one.
  bool key_is_free(const model_job& j) const {
    return j.key.empty() || !has_cancelled_lease(j.queue, j.key) ||
           leases_of(j.queue, j.key) < queues.at(j.queue).key_concurrency;
  }
  bool has_slot(const std::string& queue) const {
    const std::uint32_t most = queues.at(queue).concurrency;
    return most == 0 || leases_of(queue) < most;
  }
  // The ready jobs without a lease, in order.
  job_ids ready(const std::string& queue) const {
    std::vector<std::pair<std::pair<std::int64_t, std::uint64_t>, job_id>> order;
    for (const auto& [id, j] : jobs) {
      if (j.queue != queue || j.state != job_state::ready || is_leased(id)) continue;
      order.push_back({{-j.priority, j.arrival}, id});
    }
    std::ranges::sort(order);
    job_ids all;
    for (const auto& [place, id] : order) all.push_back(id);
    return all;
  }
  // The part of `ready` whose keys are free.
  job_ids next(const std::string& queue) const {
    job_ids all = ready(queue);
    std::erase_if(all, [this](job_id id) { return !key_is_free(jobs.at(id)); });
    return all;
  }
  // The jobs for `kick`, in order.
  job_ids buried(const std::string& queue, bool dead) const {
    std::vector<std::pair<unix_time, job_id>> order;
    for (const auto& [id, j] : jobs) {
      const bool fits = dead ? j.state == job_state::dead
                             : j.state == job_state::scheduled || j.state == job_state::retrying;
      if (j.queue == queue && fits) order.emplace_back(dead ? unix_time{} : j.due, id);
    }
    std::ranges::sort(order);
    job_ids all;
    for (const auto& [due, id] : order) all.push_back(id);
    return all;
  }
  std::optional<job_id> victim_of(const std::string& queue, overflow word) const {
    const job_ids order = ready(queue);
    if (order.empty()) return std::nullopt;
    const std::int64_t least = jobs.at(order.back()).priority;
    if (word == overflow::latest) return order.back();
    return *std::ranges::find_if(order, [&](job_id id) { return jobs.at(id).priority == least; });
  }
  job_id holder_of(const std::string& queue, const unique_key& u) const {
    if (u.key.empty()) return 0;
    const auto at = keys.find({queue, u.key});
    if (at == keys.end() || (at->second.expires && *at->second.expires <= now)) return 0;
    return at->second.holder;
  }
  void take_key(job_id id, const model_job& j) {
    if (j.unique.key.empty()) return;
    held_key& k = keys[{j.queue, j.unique.key}];
    k = {id, std::nullopt};
    if (j.unique.lasts > 0ms) k.expires = now + j.unique.lasts;
  }
  void free_key(job_id id, const model_job& j) {
    if (j.unique.until == unique_until::elapsed) return;
    const auto at = keys.find({j.queue, j.unique.key});
    if (at != keys.end() && at->second.holder == id) keys.erase(at);
  }
  void forget(job_id id) {
    const model_job gone = jobs.at(id);
    free_key(id, gone);
    jobs.erase(id);
    fill_line(gone.queue, gone.key);
  }
  void end(job_id id, job_state ended_as, milliseconds keep) {
    if (keep == 0ms) return forget(id);
    model_job& j = jobs.at(id);
    free_key(id, j);
    j.state = ended_as;
    j.due = now + keep;
    j.has_place = false;
    fill_line(j.queue, j.key);
  }
  // A job with a taken key becomes held. A deferred job keeps its position.
  void arrive(model_job& j) {
    const bool has_place = j.state == job_state::retrying || j.has_place;
    j.arrival = ++arrivals;
    j.due = {};
    j.has_place = false;
    const bool is_held = !has_place && !j.key.empty() && is_taken(j.queue, j.key);
    j.state = is_held ? job_state::held : job_state::ready;
  }
  std::uint64_t places(const std::string& queue, const std::string& key) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(jobs, [&](const auto& one) {
      const model_job& j = one.second;
      return j.queue == queue && j.key == key &&
             (j.state == job_state::ready || j.state == job_state::retrying || j.has_place);
    }));
  }
  bool is_taken(const std::string& queue, const std::string& key) const {
    const bool waits = std::ranges::any_of(jobs, [&](const auto& one) {
      const model_job& j = one.second;
      return j.queue == queue && j.key == key && j.state == job_state::held;
    });
    return waits || places(queue, key) >= queues.at(queue).key_concurrency;
  }
  // Releases the held job that arrived first into a free slot of its key.
  void fill_line(const std::string& queue, const std::string& key) {
    while (!key.empty() && places(queue, key) < queues.at(queue).key_concurrency) {
      model_job* first = nullptr;
      for (auto& [id, j] : jobs) {
        const bool waits = j.queue == queue && j.key == key && j.state == job_state::held;
        if (waits && (first == nullptr || j.arrival < first->arrival)) first = &j;
      }
      if (first == nullptr) return;
      first->state = job_state::ready;
    }
  }
  void fail(job_id id, bool for_good, milliseconds pause) {
    leases.erase(id);
    model_job& j = jobs.at(id);
    ++j.attempts;
    j.errors = std::min<std::size_t>(j.errors + 1, limits::errors_max);
    if (for_good || j.attempts >= j.attempts_max) return end(id, job_state::dead, j.keep);
    j.state = job_state::retrying;
    j.due = now + pause;
  }
  // All jobs due by now, the earliest first.
  void pass_time() {
    std::vector<std::pair<unix_time, job_id>> due;
    for (const auto& [id, j] : jobs) {
      if (j.due != unix_time{} && j.due <= now) due.emplace_back(j.due, id);
    }
    std::ranges::sort(due);
    for (const auto& [when, id] : due) {
      if (has_ended(jobs.at(id).state)) {
        jobs.erase(id);
      } else {
        arrive(jobs.at(id));
      }
    }
  }
  void tick() {
    now = now + 1s;
    pass_time();
    job_ids late;
    for (const auto& [id, l] : leases) {
      if (l.until <= now) late.push_back(id);
    }
    for (const job_id id : late) {
      if (leases.at(id).is_cancelled) {
        leases.erase(id);
      } else {
        fail(id, false, 2s);
      }
    }
    pass_time();
  }
};

}  // namespace sluice::jobs::testing
