// Jobs that wait for one another, under random calls, failing commits and crashes: the waiting
// rules must hold after every few calls, and no job may remain held forever.
//
// SLUICE_SEED=n runs one seed, SLUICE_LONG=1 runs more of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "jobs/engine/testing/engine_words.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::testing::engine_waiting_model_test {
namespace {

class EngineWaitingModel : public engine_words {
 protected:
  void run(std::uint64_t seed, int steps) {
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    dice = random(seed);
    contents = make_memory_contents();
    options.window_jobs_max = 1 + roll(6);
    options.seed = seed + 1;
    options.events_kept = 64;
    leases.clear();
    acked.clear();
    started.clear();
    out_of_order.clear();
    batches.clear();
    last_id = 0;
    engine_.reset();
    open();
    configure({.lease_for = 4s, .keep_done = roll(2) == 0 ? 0ms : 5000ms, .keep_dead = 30s});
    slots = 1 + static_cast<std::uint32_t>(roll(2));
    configure({.key_concurrency = slots});
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      step();
      if (i % 8 == 0) expect_rules_hold();
    }
    work_off();
    expect_nothing_is_left();
    expect_counts_add_up();
    engine_.reset();
  }

  std::size_t roll(std::size_t below) { return dice.below(static_cast<std::uint32_t>(below)); }
  job_id some_id() { return last_id == 0 ? 1 : 1 + roll(last_id); }

  void step() {
    switch (roll(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return note(try_push(random_spec(), at_once()));
      case 4:
        return push_a_batch();
      case 5:
      case 6:
      case 7:
      case 8:
        return lease_some();
      case 9:
      case 10:
      case 11:
        return end_one();
      case 12:
        return (void)e().cancel(some_id()).get();
      case 13:
        return (void)e().retry(some_id()).get();
      case 14:
        if (roll(3) == 0) (void)e().remove(some_id()).get();
        return;
      case 15:
        return change_a_batch();
      case 16:
        return several_in_one_commit();
      case 17:
        return fail_a_commit();
      case 18:
        return roll(4) == 0 ? start_again() : advance(1s);
      default:
        return advance(1s);
    }
  }

  job_spec random_spec() {
    job_spec s;
    s.kind = "k";
    s.priority = static_cast<std::int64_t>(roll(3));
    s.retry = {.attempts_max = 2, .first = 2s, .factor = 1.0, .jitter = 0};
    s.lease_for = std::chrono::seconds(1 + roll(6));
    if (roll(2) == 0) s.key = "key" + std::to_string(roll(3));
    if (roll(6) == 0) s.run_at = time.now() + std::chrono::seconds(1 + roll(3));
    for (std::size_t n = roll(3); n > 0 && last_id > 0; --n) {
      s.after.push_back({some_id(), {}, static_cast<after_when>(roll(3))});
    }
    if (!batches.empty() && roll(4) == 0) s.batch = batches[roll(batches.size())].id;
    if (roll(8) == 0) s.unique.key = "u" + std::to_string(roll(2));
    return s;
  }
  void note(const result<push_receipt>& pushed) {
    if (pushed) last_id = std::max(last_id, pushed->id);
  }
  void push_a_batch() {
    batch_spec b;
    b.open = roll(4) == 0;
    for (std::size_t i = roll(4); i > 0; --i) {
      job_spec s = random_spec();
      s.step = std::to_string(i);
      if (!b.jobs.empty() && roll(2) == 0) {
        s.after.push_back({.step = b.jobs.back().step, .when = static_cast<after_when>(roll(2))});
      }
      b.jobs.push_back(std::move(s));
    }
    job_spec callback;
    callback.retry = {.attempts_max = 2, .first = 2s, .factor = 1.0, .jitter = 0};
    if (roll(2) == 0) b.on_success = callback;
    if (roll(2) == 0) b.on_end = callback;
    if (roll(2) == 0) b.on_failure = callback;
    const auto pushed = try_push_batch(std::move(b), at_once());
    if (!pushed) return;
    last_id = std::max(last_id, pushed->id);
    for (const job_id id : pushed->jobs) last_id = std::max(last_id, id);
    last_id = std::max({last_id, pushed->on_success, pushed->on_end, pushed->on_failure});
    batches.push_back(*pushed);
  }
  void lease_some() {
    auto leased = try_lease({.max = 1 + roll(3)});
    if (!leased) return;
    for (leased_job& l : *leased) {
      const job& j = *l.job;
      // Jobs without dependencies that were never changed start in order of arrival; if several may
      // run at a time, by priority first.
      const bool is_plain = slots == 1 && !j.spec.key.empty() && j.spec.after.empty() &&
                            j.spec.run_at == unix_time{} && j.turn == j.id && j.attempts == 0;
      if (is_plain && j.spec.batch == 0 && !out_of_order.contains(j.id)) {
        job_id& last = started[j.spec.key];
        EXPECT_LE(last, j.id) << "key " << j.spec.key;
        last = j.id;
      }
      out_of_order.insert(j.id);  // a second start has no defined order
      leases.push_back(std::move(l));
    }
  }
  leased_job some_lease() {
    const std::size_t at = roll(leases.size());
    leased_job l = leases[at];
    leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(at));
    return l;
  }
  void end_one() {
    if (leases.empty()) return;
    const leased_job l = some_lease();
    switch (roll(6)) {
      case 0:
        return (void)fail(l, {.for_good = roll(2) == 0});
      case 1:
        return (void)e().release(l.ref(), {.delay = std::chrono::seconds(roll(3))}).get();
      case 2:
        return;  // its lease expires
      default:
        if (ack(l)) note_acked(l);
    }
  }
  void note_acked(const leased_job& l) {
    const auto now = e().get(l.job->id).get();
    const bool was_cancelled = now && now->state != job_state::done;
    if (!was_cancelled) ++acked[l.job->id];
  }
  void change_a_batch() {
    if (batches.empty()) return;
    const job_id id = batches[roll(batches.size())].id;
    switch (roll(4)) {
      case 0:
        return (void)e().cancel_batch(id).get();
      case 1:
        return (void)e().retry_batch(id).get();
      default:
        return (void)e().close_batch(id).get();
    }
  }
  void several_in_one_commit() {
    settle();
    drive.block();
    auto before = begin_push({.queue = "elsewhere"});
    drive.await_blocked();
    std::optional<leased_job> l;
    if (!leases.empty()) l = some_lease();
    std::optional<future<void_result>> ends;
    if (l) ends = e().ack(l->ref());
    auto cancelled = e().cancel(some_id());
    auto removed = e().remove(some_id());
    auto retried = e().retry(some_id());
    auto pushed = e().push(random_spec(), at_once());
    if (roll(2) == 0) time.advance(1s);
    drive.unblock();
    note(before.get());
    if (ends && ends->get()) note_acked(*l);
    (void)cancelled.get();
    (void)removed.get();
    (void)retried.get();
    note(pushed.get());
    settle();
  }
  void fail_a_commit() {
    settle();
    drive.fails(roll(2) == 0 ? error_code::io_error : error_code::disk_full);
    if (!leases.empty() && roll(2) == 0) {
      const leased_job& l = leases[roll(leases.size())];
      (void)ack(l);
    } else {
      (void)e().cancel(some_id()).get();
    }
    settle();
    drive.works();
    advance(1s);
  }
  void start_again() {
    settle();
    if (roll(2) == 0) {
      crash();
      leases.clear();
    } else {
      reopen();
    }
  }

  std::map<job_id, job> all_jobs() {
    std::map<job_id, job> all;
    for (job& j : list_all({.limit = 1000})) all.emplace(j.id, std::move(j));
    return all;
  }
  // Returns whether a dependency can still be met and has not been.
  bool is_open(const dependency& d, const std::map<job_id, job>& all) {
    if (const auto at = all.find(d.on); at != all.end()) {
      const job_state s = at->second.state;
      return !has_ended(s) || (d.when == after_when::success && s != job_state::done);
    }
    const auto b = e().get_batch(d.on).get();
    if (!b) return false;
    if (d.when == after_when::failure) return b->failed == 0;
    return !b->has_ended() || (d.when == after_when::success && b->failed > 0);
  }

  void expect_rules_hold() {
    settle();
    const std::map<job_id, job> all = all_jobs();
    std::map<std::string, std::size_t> active;
    std::map<std::string, std::size_t> running;
    std::map<std::string, std::size_t> in_line;
    std::map<job_id, std::uint64_t> pending;
    for (const auto& [id, j] : all) {
      if (j.spec.batch != 0 && !has_ended(j.state)) ++pending[j.spec.batch];
      if (j.state == job_state::held) {
        std::set<std::pair<job_id, after_when>> open;
        for (const dependency& d : j.spec.after) {
          if (is_open(d, all)) open.emplace(d.on, d.when);
        }
        // A met dependency stays met, even if its job was retried later.
        EXPECT_LE(j.blockers, open.size())
            << "job " << id << " waits for a dependency that cannot be met";
      }
      if (j.spec.key.empty()) continue;
      if (j.state == job_state::running) ++running[j.spec.key];
      if (j.state == job_state::held && j.blockers == 0) ++in_line[j.spec.key];
      const bool has_place = j.state == job_state::ready || j.state == job_state::running ||
                             j.state == job_state::retrying ||
                             (j.state == job_state::scheduled && j.has_place);
      if (has_place) ++active[j.spec.key];
    }
    for (const auto& [key, n] : active) EXPECT_LE(n, slots) << key;
    for (const auto& [key, n] : running) EXPECT_LE(n, slots) << key;
    for (const auto& [key, n] : in_line) {
      EXPECT_EQ(active[key], slots) << n << " wait for " << key << ", which is free";
    }
    for (const batch_receipt& b : batches) {
      const auto now = e().get_batch(b.id).get();
      if (!now) continue;
      EXPECT_EQ(now->pending, pending[b.id]) << "batch " << b.id;
    }
    for (const auto& [id, times] : acked) EXPECT_EQ(times, 1) << "job " << id << " was done twice";
  }

  // Closes open batches and runs all jobs that can run.
  void work_off() {
    for (const batch_receipt& b : batches) (void)e().close_batch(b.id).get();
    for (const leased_job& l : leases) {
      if (ack(l)) note_acked(l);
    }
    leases.clear();
    for (int idle = 0; idle < 45; ++idle) {  // longer than dead jobs are kept
      auto leased = try_lease({.queues = {"default", "elsewhere"}, .max = 100});
      if (!leased) {
        advance(1s);
        continue;
      }
      idle = 0;
      for (const leased_job& l : *leased) {
        if (ack(l)) note_acked(l);
      }
    }
  }
  // A job that remains held waits for a job that has failed.
  void expect_nothing_is_left() {
    expect_rules_hold();
    const std::map<job_id, job> all = all_jobs();
    std::set<job_id> stuck;
    for (const auto& [id, j] : all) {
      if (has_ended(j.state)) continue;
      EXPECT_EQ(to_string(j.state), "held") << "job " << id;
      EXPECT_GT(j.blockers, 0U) << "job " << id;
      stuck.insert(id);
    }
    for (const job_id id : stuck) {
      const auto& after = all.at(id).spec.after;
      const bool waits_for_failed = std::ranges::any_of(after, [&](const dependency& d) {
        if (const auto at = all.find(d.on); at != all.end()) {
          return at->second.state == job_state::dead || at->second.state == job_state::cancelled ||
                 stuck.contains(d.on);
        }
        const auto b = e().get_batch(d.on).get();
        return b && (b->failed > 0 || b->pending > 0);
      });
      EXPECT_TRUE(waits_for_failed) << "job " << id << " is held without a reason";
    }
  }

  random dice{1};
  std::vector<leased_job> leases;
  std::map<job_id, int> acked;
  std::map<std::string, job_id> started;  // by key: the last that started
  std::set<job_id> out_of_order;
  std::vector<batch_receipt> batches;
  job_id last_id = 0;
  std::uint32_t slots = 1;
};

TEST_F(EngineWaitingModel, TheRulesHoldForRandomCalls) {
  const auto seeds = sluice::testing::seeds(sluice::testing::test_name(), {.ci = 25, .full = 250});
  for (std::uint64_t i = 0; i < seeds.count && !HasFailure(); ++i) run(seeds.first + i, 200);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_waiting_model_test
