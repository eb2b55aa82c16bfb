#pragma once

// A model of a store in the simplest form: every query is a scan over all jobs, without indexes to
// maintain. The random test compares a real store with it.

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
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
  std::map<job_id, std::set<std::pair<job_id, after_when>>> open;  // open dependencies of each job
  std::map<job_id, batch_info> batches;
  std::map<std::pair<queue_number, std::string>, key> keys;
  std::map<queue_number, change::queue_settings> queues;
  std::map<job_id, change::lease_record> leases;
  std::uint64_t ids_up_to = 0;

  unix_time now{};              // of the transaction
  std::size_t cause = 0;        // the current change
  std::vector<effect> effects;  // of the transaction

  // Adds one group, or a single job; returns the conflict of each change (empty: added).
  std::vector<conflict> add(const std::vector<job>& group, const batch_info* with_batch) {
    std::vector<conflict> found;
    const auto before = keys;
    std::set<job_id> own;
    if (with_batch != nullptr) {
      own.insert(with_batch->id);
      found.push_back({0, 0, conflict::reason::other_of_group});
    }
    for (const job& j : group) own.insert(j.id);
    if (own.size() == 1) own.clear();
    bool is_free = true;
    for (const job& j : group) {
      const job_id holder = take_key(j);
      const auto refusal = refusal_of(j.spec, own);
      found.push_back({found.size(), holder, conflict::reason::other_of_group});
      if (refusal) found.back().cause = *refusal;
      if (holder != 0) found.back().cause = conflict::reason::duplicate;
      is_free = is_free && holder == 0 && !refusal;
    }
    if (!is_free) {
      keys = before;
      return found;
    }
    if (with_batch != nullptr) batches[with_batch->id] = *with_batch;
    for (const job& j : group) {
      admit_new(j);
      ++cause;
    }
    return {};
  }

  void move(job_id id, job_state next, const change::moved& fields) {
    job& j = jobs.at(id);
    const job was = j;
    j.due_at = fields.due_at;
    if (fields.turn != 0) j.turn = fields.turn;
    j.attempts = fields.attempts.value_or(j.attempts);
    j.ended_at = fields.ended_at.value_or(j.ended_at);
    j.spec.priority = fields.priority.value_or(j.spec.priority);
    if (fields.result) j.result = fields.result;
    if (fields.progress) j.progress = fields.progress;
    if (fields.error) j.errors.push_back(*fields.error);
    if (j.errors.size() > limits::errors_max) j.errors.erase(j.errors.begin());
    if (fields.attempt) add_attempt(j.history, *fields.attempt);
    if (fields.free_key) free_key(j);
    j.has_place = next == job_state::scheduled && has_place(was);
    job_state state = next;
    if (next == job_state::ready && j.blockers > 0) state = job_state::held;
    if (next == job_state::ready && j.blockers == 0 && !has_place(was)) state = state_in_line(j);
    j.state = state;
    if (state != next) {
      j.due_at = {};
      note(effect::kind::held, j);
    }
    if (has_ended(was.state) && !has_ended(next)) revive(was);
    if (!has_ended(was.state) && has_ended(next)) end(was, next);
    fire_all();
  }

  void drop(job_id id, job_state as) {
    const job was = jobs.at(id);
    forget(was);
    if (!has_ended(was.state)) end(was, has_ended(as) ? as : job_state::cancelled);
    fire_all();
    to_fire.push_back({id, gone});
    fire_all();
  }

  void close_batch(job_id id) {
    const auto at = batches.find(id);
    if (at == batches.end() || !at->second.open) return;
    at->second.open = false;
    settle(at->second, at->second.failed > 0);
    fire_all();
  }

  void drop_batch(job_id id) {
    if (const auto at = batches.find(id); at != batches.end() && !at->second.has_ended()) return;
    batches.erase(id);
    to_fire.push_back({id, gone});
    fire_all();
  }

  void free_key(const job& j) {
    if (j.spec.unique.until == unique_until::elapsed) return;
    const auto at = keys.find({number_of(j.spec.queue), j.spec.unique.key});
    if (at != keys.end() && at->second.holder == j.id) keys.erase(at);
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

  // Returns the jobs for which `keep` is true, sorted by `before`.
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

  std::vector<job> timed(queue_number queue) const {
    std::vector<job> all = timed();
    std::erase_if(all, [&](const job& j) {
      return number_of(j.spec.queue) != queue ||
             (j.state != job_state::scheduled && j.state != job_state::retrying);
    });
    return all;
  }

  std::vector<std::pair<unix_time, job_id>> timed_batches() const {
    std::vector<std::pair<unix_time, job_id>> found;
    for (const auto& [id, b] : batches) {
      if (b.due_at != unix_time{}) found.emplace_back(b.due_at, id);
    }
    std::ranges::sort(found);
    return found;
  }

 private:
  // The result of success, end and failure of a dependency.
  enum class fate { open, met, lost };
  using fates = std::array<fate, 3>;
  static constexpr fates unknown{fate::open, fate::open, fate::open};
  static constexpr fates done{fate::met, fate::met, fate::lost};
  static constexpr fates failed{fate::open, fate::met, fate::met};
  static constexpr fates gone{fate::lost, fate::met, fate::lost};

  static fates fates_of(job_state state) {
    if (!has_ended(state)) return unknown;
    return state == job_state::done ? done : failed;
  }
  static fates fates_of(const batch_info& b) {
    if (b.has_ended()) return b.failed == 0 ? done : failed;
    return {fate::open, fate::open, b.failed > 0 ? fate::met : fate::open};
  }
  fates fates_of(job_id on) const {
    if (const auto j = jobs.find(on); j != jobs.end()) return fates_of(j->second.state);
    const auto b = batches.find(on);
    return b != batches.end() ? fates_of(b->second) : done;
  }
  static fate one_of(const fates& all, after_when when) {
    return all[static_cast<std::size_t>(when)];
  }

  // ---- keys

  static bool has_place(const job& j) {
    return !j.spec.key.empty() && (j.state == job_state::ready || j.state == job_state::retrying ||
                                   (j.state == job_state::scheduled && j.has_place));
  }
  static bool waits(const job& j) {
    return !j.spec.key.empty() && j.state == job_state::held && j.blockers == 0;
  }
  template <class Which>
  std::vector<job_id> of_key_of(const job& as, Which which) const {
    std::vector<job_id> found;
    for (const auto& [id, j] : jobs) {
      const bool is_alike = j.spec.key == as.spec.key && j.spec.queue == as.spec.queue;
      if (id != as.id && is_alike && which(j)) found.push_back(id);
    }
    return found;
  }
  std::uint32_t slots(const job& j) const {
    return queues.at(number_of(j.spec.queue)).options.key_concurrency;
  }
  // Returns the state of a job that only its key can block.
  job_state state_in_line(const job& j) const {
    if (j.spec.key.empty()) return job_state::ready;
    const bool is_free = of_key_of(j, has_place).size() < slots(j) && of_key_of(j, waits).empty();
    return is_free ? job_state::ready : job_state::held;
  }
  void fill_line(const job& left) {
    while (of_key_of(left, has_place).size() < slots(left)) {
      const auto waiting = of_key_of(left, waits);
      if (waiting.empty()) return;
      const job_id first =
          *std::ranges::min_element(waiting, {}, [&](job_id id) { return jobs.at(id).turn; });
      jobs.at(first).state = job_state::ready;
      note(effect::kind::released, jobs.at(first));
    }
  }

  // ---- adds and ends

  std::optional<conflict::reason> refusal_of(const job_spec& spec,
                                             const std::set<job_id>& own) const {
    if (spec.batch != 0 && !own.contains(spec.batch)) {
      const auto b = batches.find(spec.batch);
      if (b == batches.end()) return conflict::reason::no_such_batch;
      if (b->second.has_ended()) return conflict::reason::batch_ended;
    }
    for (const dependency& d : spec.after) {
      if (!own.contains(d.on) && one_of(fates_of(d.on), d.when) == fate::lost) {
        return conflict::reason::skipped;
      }
    }
    return std::nullopt;
  }

  void admit_new(job j) {
    const job_state wanted = j.state;
    for (const dependency& d : j.spec.after) {
      if (one_of(fates_of(d.on), d.when) == fate::open) open[j.id].insert({d.on, d.when});
    }
    j.blockers = static_cast<std::uint32_t>(open.contains(j.id) ? open[j.id].size() : 0);
    if (j.blockers > 0) {
      j.state = job_state::held;
      j.due_at = {};
    } else if (j.state == job_state::ready) {
      j.state = state_in_line(j);
    }
    jobs[j.id] = j;
    if (const auto b = batches.find(j.spec.batch); b != batches.end()) {
      ++b->second.total;
      ++b->second.pending;
    }
    if (j.state != wanted) note(effect::kind::held, j);
  }

  void revive(const job& was) {
    const auto b = batches.find(was.spec.batch);
    if (b == batches.end()) return;
    ++b->second.pending;
    if (was.state != job_state::done) --b->second.failed;
    b->second.ended_at = {};
    b->second.due_at = {};
  }

  void end(const job& was, job_state as) {
    if (has_place(was) || waits(was)) fill_line(was);
    leave_batch(was, as == job_state::done ? 0 : 1);
    to_fire.push_back({was.id, fates_of(as)});
  }

  void leave_batch(const job& was, std::uint64_t failures) {
    const auto b = batches.find(was.spec.batch);
    if (b == batches.end()) return;
    const bool had_failed = b->second.failed > 0;
    --b->second.pending;
    b->second.failed += failures;
    settle(b->second, had_failed);
  }

  void settle(batch_info& b, bool had_failed) {
    if (b.has_ended()) {
      b.ended_at = now;
      b.due_at = now + (b.failed == 0 ? b.keep_done : b.keep_failed);
      effect e;
      e.type = effect::kind::batch_ended;
      e.cause = cause;
      e.id = b.id;
      e.batch = std::make_shared<batch_info>(b);
      effects.push_back(std::move(e));
    }
    if (b.has_ended() || (!had_failed && b.failed > 0)) to_fire.push_back({b.id, fates_of(b)});
  }

  void forget(const job& j) {
    free_key(j);
    open.erase(j.id);
    jobs.erase(j.id);
  }

  // ---- waiting jobs

  void fire_all() {
    while (!to_fire.empty()) {
      const auto [on, results] = to_fire.front();
      to_fire.pop_front();
      std::vector<std::pair<job_id, after_when>> waiting;
      for (const auto& [id, all] : open) {
        for (const auto& [each, when] : all) {
          if (each == on) waiting.emplace_back(id, when);
        }
      }
      for (const auto& [id, when] : waiting) {
        if (open.contains(id)) fire(id, on, when, one_of(results, when));
      }
    }
  }

  void fire(job_id id, job_id on, after_when when, fate result) {
    if (result == fate::open) return;
    job& j = jobs.at(id);
    if (result == fate::lost && j.state == job_state::held) {
      const job was = j;
      forget(was);
      note(effect::kind::skipped, was);
      to_fire.push_back({id, gone});
      return leave_batch(was, 0);
    }
    open[id].erase({on, when});
    if (--j.blockers > 0) return;
    open.erase(id);
    if (j.state != job_state::held) return;
    j.state = j.spec.run_at > now ? job_state::scheduled : state_in_line(j);
    if (j.state == job_state::scheduled) j.due_at = j.spec.run_at;
    if (j.state != job_state::held) note(effect::kind::released, j);
  }

  void note(effect::kind type, const job& j) {
    effect e;
    e.type = type;
    e.cause = cause;
    e.id = j.id;
    e.queue = number_of(j.spec.queue);
    if (type != effect::kind::skipped) e.new_state = j.state;
    e.due_at = type == effect::kind::skipped ? unix_time{} : j.due_at;
    e.blockers = type == effect::kind::held ? j.blockers : 0;
    e.weight = weight_of(j.spec);
    if (type != effect::kind::held) e.job = std::make_shared<const job>(j);
    effects.push_back(std::move(e));
  }

  job_id take_key(const job& j) {
    const unique_key& u = j.spec.unique;
    if (u.key.empty()) return 0;
    const auto at = keys.find({number_of(j.spec.queue), u.key});
    if (at != keys.end() && (!at->second.expires || *at->second.expires > now)) {
      return at->second.holder;
    }
    key& taken = keys[{number_of(j.spec.queue), u.key}];
    taken = {j.id, std::nullopt};
    if (u.until == unique_until::elapsed || u.lasts > milliseconds(0)) {
      taken.expires = j.created_at + u.lasts;
    }
    return 0;
  }

  std::deque<std::pair<job_id, fates>> to_fire;
};

}  // namespace sluice::jobs::testing
