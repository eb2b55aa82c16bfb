// Compares the engine with a simple model: random calls, one after the other, on windows of a few
// jobs; after every call both must have the same state. When a lease begins, the leases of its
// queue and of its key must be within their limits, in any order of other ends.
//
// SLUICE_SEED=n runs one seed, SLUICE_LONG=1 runs more of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "jobs/engine/testing/engine_model.hpp"
#include "jobs/engine/testing/engine_words.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::testing::engine_model_test {
namespace {

class EngineModel : public engine_words {
 protected:
  void run(std::uint64_t seed, int steps) {
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    dice = random(seed);
    m = model{};
    m.now = time.now();
    contents = make_memory_contents();
    options.window_jobs_max = 1 + roll(6);
    options.window_bytes_max = roll(2) == 0 ? 2000 : 1 << 20;
    options.seed = seed + 1;
    engine_.reset();
    open();
    for (const char* const q : {"a", "b"}) {
      model_queue& modelled = m.queues[q];
      modelled.key_concurrency = 1 + static_cast<std::uint32_t>(roll(2));
      queue_patch patch;
      patch.keep_done = 0ms;
      patch.keep_dead = keep_killed;
      patch.key_concurrency = modelled.key_concurrency;
      ASSERT_TRUE(e().configure(q, patch).get());
    }
    for (int i = 0; i < steps && !HasFatalFailure() && !HasNonfatalFailure(); ++i) {
      step();
      if (i % 16 == 0) compare();
    }
    compare();
    expect_counts_add_up();
    engine_.reset();
  }

  std::size_t roll(std::size_t below) { return dice.below(static_cast<std::uint32_t>(below)); }
  std::string some_queue() { return roll(3) == 0 ? "b" : "a"; }
  milliseconds seconds(std::uint64_t below) { return std::chrono::seconds(roll(below)); }
  job_id some_job() {
    if (m.jobs.empty()) return 1;
    auto at = m.jobs.begin();
    std::advance(at, roll(m.jobs.size()));
    return at->first;
  }
  std::optional<job_id> some_lease() {
    if (m.leases.empty()) return std::nullopt;
    auto at = m.leases.begin();
    std::advance(at, roll(m.leases.size()));
    return at->first;
  }
  lease_ref ref(job_id id) { return {id, m.leases.at(id).key}; }

  void step() {
    switch (roll(31)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return push_one();
      case 5:
        return push_group();
      case 6:
      case 7:
      case 8:
      case 9:
        return lease_some();
      case 10:
      case 11:
      case 12:
        return ack_one();
      case 13:
      case 14:
        return fail_one();
      case 15:
        return release_one();
      case 16:
        return extend_one();
      case 17:
        return cancel_one();
      case 18:
        return retry_one();
      case 19:
        return remove_one();
      case 20:
      case 21:
      case 22:
        return pass_a_second();
      case 23:
        return roll(4) == 0 ? purge_one() : configure_one();
      case 24:
        return fail_a_commit();
      case 25:
        return lease_this();
      case 26:
        return peek_one();
      case 27:
        return kick_some();
      case 28:
        return kill_one();
      case 29:
        return cancel_a_lease();
      default:
        return roll(6) == 0 ? start_again() : pass_a_second();
    }
  }

  job_spec random_spec() {
    job_spec s;
    s.queue = some_queue();
    s.kind = "k";
    s.args.data.assign(roll(3) == 0 ? roll(3000) : 2, '1');
    s.priority = static_cast<std::int64_t>(roll(3)) - 1;
    if (roll(4) == 0) s.run_at = m.now + seconds(5);
    s.retry = {.attempts_max = 3, .first = 2s, .factor = 1.0, .jitter = 0};
    s.lease_for = 1s + seconds(5);
    s.keep_for = seconds(4);
    if (roll(3) == 0) s.key = "k" + std::to_string(roll(2));
    if (roll(3) == 0) {
      s.unique.key = "key" + std::to_string(roll(4));
      s.unique.until = static_cast<unique_until>(roll(3));
      const bool needs_time = s.unique.until == unique_until::elapsed;
      if (needs_time || roll(2) == 0) s.unique.lasts = 1s + seconds(5);
    }
    return s;
  }
  model_job of(const job_spec& s) {
    model_job j;
    j.queue = s.queue;
    j.priority = s.priority;
    j.unique = s.unique;
    j.key = s.key;
    j.keep = *s.keep_for;
    j.lease_for = s.lease_for;
    j.attempts_max = s.retry.attempts_max;
    if (s.run_at > m.now) {
      j.state = job_state::scheduled;
      j.due = s.run_at;
    } else {
      m.arrive(j);
    }
    return j;
  }
  void accept(job_id id, const job_spec& s) {
    EXPECT_TRUE(known_ids.insert(id).second) << "id " << id << " again";
    model_job j = of(s);
    m.take_key(id, j);
    m.jobs.emplace(id, std::move(j));
  }

  void push_one() {
    const job_spec s = random_spec();
    const model_queue& q = m.queues.at(s.queue);
    const auto pushed = e().push(s, at_once()).get();
    settle();  // a unique push evicts after it was accepted
    const bool is_full = m.unfinished(s.queue) + 1 > q.capacity;
    const job_id holder = m.holder_of(s.queue, s.unique);
    if (is_full && (q.when_full == overflow::reject || q.when_full == overflow::block)) {
      return expect_error(pushed, error_code::queue_full);
    }
    if (is_full && q.when_full == overflow::drop_newest) {
      ASSERT_TRUE(pushed);
      ASSERT_EQ(pushed->outcome, push_receipt::fate::dropped);
      return;
    }
    std::vector<job_id> victims;
    if (is_full) {
      // Returns as many jobs as bring the queue below its capacity.
      model rest = m;
      while (rest.unfinished(s.queue) + 1 > q.capacity) {
        const auto gone = rest.victim_of(s.queue, q.when_full);
        if (!gone) return expect_error(pushed, error_code::queue_full);
        victims.push_back(*gone);
        rest.jobs.erase(*gone);
      }
    }
    ASSERT_TRUE(pushed) << pushed.error().message;
    // A key held by a victim is free for the evicting push only if that push has no key of its own
    // that is checked first.
    if (holder != 0) {
      ASSERT_EQ(pushed->outcome, push_receipt::fate::duplicate);
      ASSERT_EQ(pushed->id, holder);
      return;
    }
    ASSERT_EQ(pushed->outcome, push_receipt::fate::accepted);
    for (const job_id gone : victims) m.forget(gone);
    accept(pushed->id, s);
  }
  void push_group() {
    std::vector<job_spec> specs;
    for (std::uint64_t n = 1 + roll(3); n > 0; --n) specs.push_back(random_spec());
    const auto results = e().push_many(specs, bulk::all_or_nothing, at_once()).get();
    std::map<std::string, std::uint64_t> wanted;
    for (const job_spec& s : specs) ++wanted[s.queue];
    for (const auto& [name, count] : wanted) {
      const model_queue& q = m.queues.at(name);
      if (count > q.capacity) return expect_error(results[0], error_code::too_large);
    }
    for (const auto& [name, count] : wanted) {
      const model_queue& q = m.queues.at(name);
      if (m.unfinished(name) + count > q.capacity) {
        return expect_error(results[0], error_code::queue_full);
      }
    }
    std::set<std::pair<std::string, std::string>> own;
    bool is_free = true;
    for (const job_spec& s : specs) {
      if (s.unique.key.empty()) continue;
      is_free = is_free && m.holder_of(s.queue, s.unique) == 0 &&
                own.insert({s.queue, s.unique.key}).second;
    }
    if (!is_free) return expect_error(results[0], error_code::duplicate);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      ASSERT_TRUE(results[i]) << results[i].error().message;
      accept(results[i]->id, specs[i]);
    }
  }
  void lease_some() {
    const std::string queue = some_queue();
    const std::size_t max = 1 + roll(3);
    const auto leased = try_lease({.queues = {queue}, .max = max});
    const ids expected = takes(queue, max);
    if (expected.empty()) return expect_error(leased, error_code::timed_out);
    ASSERT_TRUE(leased) << leased.error().message << ", expected job " << expected[0];
    ASSERT_LE(leased->size(), expected.size());
    for (std::size_t i = 0; i < leased->size(); ++i) {
      const leased_job& l = leased->at(i);
      ASSERT_EQ(l.job->id, expected[i]);
      start(l);
    }
    settle();
  }
  // The jobs that a lease of at most `max` takes, if the window has them all.
  ids takes(const std::string& queue, std::size_t max) {
    ids all;
    if (m.queues.at(queue).paused) return all;
    model then = m;
    for (const job_id id : m.ready(queue)) {
      if (all.size() == max || !then.has_slot(queue)) break;
      const model_job& j = m.jobs.at(id);
      if (!then.key_is_free(j)) continue;
      then.leases[id] = {.queue = queue, .line = j.key};
      all.push_back(id);
    }
    return all;
  }
  void start(const leased_job& l) {
    model_job& j = m.jobs.at(l.job->id);
    EXPECT_EQ(l.attempt, j.attempts + 1);
    EXPECT_EQ(l.until, m.now + j.lease_for);
    m.leases[l.job->id] = {l.key, l.until, j.lease_for, j.queue, j.key, false};
    const model_queue& q = m.queues.at(j.queue);
    const std::uint64_t of_queue = q.concurrency > 0 ? m.leases_of(j.queue) : 0;
    const std::uint64_t of_key = j.key.empty() ? 0 : m.leases_of(j.queue, j.key);
    EXPECT_LE(of_queue, q.concurrency) << j.queue;
    EXPECT_LE(of_key, q.key_concurrency) << j.key;
    if (j.unique.until == unique_until::started && j.attempts == 0) m.free_key(l.job->id, j);
  }
  void lease_this() {
    const job_id id = some_job();
    const auto leased = e().lease_job(id).get();
    const auto at = m.jobs.find(id);
    if (at == m.jobs.end()) return expect_error(leased, error_code::not_found);
    model_job& j = at->second;
    const bool has_ended = j.state == job_state::done || j.state == job_state::cancelled;
    if (m.leases.contains(id) || has_ended || j.state == job_state::held) {
      return expect_error(leased, error_code::wrong_state);
    }
    if (!m.has_slot(j.queue) || !m.key_is_free(j)) {
      return expect_error(leased, error_code::overloaded);
    }
    if (j.state == job_state::dead) j.attempts = 0;
    if (j.state != job_state::ready) m.arrive(j);
    if (j.state == job_state::held) return expect_error(leased, error_code::wrong_state);
    ASSERT_TRUE(leased) << leased.error().message;
    start(*leased);
    settle();
  }
  void peek_one() {
    const std::string queue = some_queue();
    const auto state = std::array{job_state::ready, job_state::scheduled, job_state::dead}[roll(3)];
    const auto found = e().peek(queue, state).get();
    const ids expected =
        state == job_state::ready ? m.next(queue) : m.buried(queue, state == job_state::dead);
    if (expected.empty()) return expect_error(found, error_code::not_found);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->id, expected[0]);
  }
  void kick_some() {
    const std::string queue = some_queue();
    const std::size_t max = roll(4);
    const auto kicked = e().kick(queue, max).get();
    ids expected = m.buried(queue, true);
    if (expected.empty()) expected = m.buried(queue, false);
    expected.resize(std::min(max, expected.size()));
    ASSERT_TRUE(kicked) << kicked.error().message;
    EXPECT_EQ(kicked->count, expected.size());
    EXPECT_EQ(kicked->ids, expected);
    for (const job_id id : expected) {
      model_job& j = m.jobs.at(id);
      if (has_ended(j.state)) j.attempts = 0;
      m.arrive(j);
    }
  }
  void ack_one() {
    const auto id = some_lease();
    if (!id) return;
    std::optional<payload> value;
    if (roll(2) == 0) value = payload{std::to_string(*id)};
    ASSERT_TRUE(e().ack(ref(*id), value).get());
    const bool was_cancelled = m.leases.at(*id).is_cancelled;
    m.leases.erase(*id);
    if (was_cancelled) return;
    model_job& j = m.jobs.at(*id);
    ++j.attempts;
    j.result = value;
    m.end(*id, job_state::done, j.keep);
  }
  void fail_one() {
    const auto id = some_lease();
    if (!id) return;
    failure why{.type = "io", .for_good = roll(5) == 0};
    if (roll(2) == 0) why.retry_in = seconds(3);
    const auto failed = e().fail(ref(*id), why).get();
    ASSERT_TRUE(failed);
    if (m.leases.at(*id).is_cancelled) {
      EXPECT_EQ(failed->state, job_state::cancelled);
      m.leases.erase(*id);
      return;
    }
    m.fail(*id, why.for_good, why.retry_in.value_or(2s));
    const auto at = m.jobs.find(*id);
    EXPECT_EQ(failed->state, at == m.jobs.end() ? job_state::dead : at->second.state);
    pass_no_time();
  }
  void release_one() {
    const auto id = some_lease();
    if (!id) return;
    give_back release_options;
    if (roll(2) == 0) release_options.delay = seconds(3);
    if (roll(3) == 0) release_options.priority = static_cast<std::int64_t>(roll(3)) - 1;
    ASSERT_TRUE(e().release(ref(*id), release_options).get());
    const bool was_cancelled = m.leases.at(*id).is_cancelled;
    m.leases.erase(*id);
    if (was_cancelled) return;
    model_job& j = m.jobs.at(*id);
    if (release_options.priority) j.priority = *release_options.priority;
    if (release_options.delay == 0ms) return;  // it keeps its position among jobs of its priority
    j.has_place = !j.key.empty();
    j.state = job_state::scheduled;
    j.due = m.now + release_options.delay;
  }
  void extend_one() {
    const auto id = some_lease();
    if (!id) return;
    model_lease& l = m.leases.at(*id);
    const milliseconds by = seconds(6);
    const auto extended = e().extend(ref(*id), by);
    ASSERT_TRUE(extended);
    l.until = m.now + (by > 0ms ? by : l.lasts);
    EXPECT_EQ(extended->until, l.until);
    EXPECT_EQ(extended->cancelled, l.is_cancelled);
  }
  void cancel_one() { cancel(some_job()); }
  void cancel_a_lease() {
    if (const auto id = some_lease()) cancel(*id);
  }
  void cancel(job_id id) {
    const auto cancelled = e().cancel(id).get();
    const auto at = m.jobs.find(id);
    if (at == m.jobs.end()) return expect_error(cancelled, error_code::not_found);
    if (has_ended(at->second.state)) return expect_error(cancelled, error_code::wrong_state);
    ASSERT_TRUE(cancelled);
    if (const auto l = m.leases.find(id); l != m.leases.end()) l->second.is_cancelled = true;
    m.end(id, job_state::cancelled, at->second.keep);
  }
  void retry_one() {
    const job_id id = some_job();
    const auto retried = e().retry(id).get();
    const auto at = m.jobs.find(id);
    if (at == m.jobs.end()) return expect_error(retried, error_code::not_found);
    model_job& j = at->second;
    if (m.leases.contains(id) || j.state == job_state::ready || j.state == job_state::done ||
        j.state == job_state::held) {
      return expect_error(retried, error_code::wrong_state);
    }
    ASSERT_TRUE(retried);
    if (has_ended(j.state)) j.attempts = 0;
    m.arrive(j);
  }
  void kill_one() {
    const job_id id = some_job();
    const auto killed = e().kill(id, {.type = "killed"}).get();
    const auto at = m.jobs.find(id);
    if (at == m.jobs.end()) return expect_error(killed, error_code::not_found);
    model_job& j = at->second;
    if (m.leases.contains(id) || has_ended(j.state)) {
      return expect_error(killed, error_code::wrong_state);
    }
    ASSERT_TRUE(killed);
    j.errors = std::min<std::size_t>(j.errors + 1, limits::errors_max);
    m.end(id, job_state::dead, j.keep == 0ms ? keep_killed : j.keep);
  }
  void remove_one() {
    const job_id id = some_job();
    const auto removed = e().remove(id).get();
    if (!m.jobs.contains(id)) return expect_error(removed, error_code::not_found);
    if (m.leases.contains(id)) return expect_error(removed, error_code::wrong_state);
    ASSERT_TRUE(removed);
    m.forget(id);
  }
  void purge_one() {
    const std::string queue = some_queue();
    const auto purged = e().purge(queue).get();
    ASSERT_TRUE(purged);
    std::uint64_t count = 0;
    for (auto at = m.jobs.begin(); at != m.jobs.end();) {
      const auto& [id, j] = *at++;
      if (j.queue != queue || m.leases.contains(id)) continue;
      m.forget(id);
      ++count;
    }
    EXPECT_EQ(*purged, count);
  }
  void configure_one() {
    const std::string queue = some_queue();
    model_queue& q = m.queues.at(queue);
    q.paused = roll(5) == 0;
    q.capacity = roll(2) == 0 ? 1000 : 2 + roll(10);
    q.concurrency = roll(2) == 0 ? 0 : 1 + static_cast<std::uint32_t>(roll(3));
    constexpr std::array words = {overflow::reject, overflow::drop_newest, overflow::drop_oldest,
                                  overflow::latest, overflow::block};
    q.when_full = words[roll(words.size())];
    queue_patch patch;
    patch.capacity_jobs = q.capacity;
    patch.when_full = q.when_full;
    patch.concurrency = q.concurrency;
    patch.paused = q.paused;
    ASSERT_TRUE(e().configure(queue, patch).get());
  }
  // Calls on a failing disk change nothing.
  void fail_a_commit() {
    drive.fails(roll(2) == 0 ? error_code::io_error : error_code::disk_full);
    switch (roll(4)) {
      case 0: {
        job_spec s = random_spec();
        const auto pushed = e().push(std::move(s), at_once()).get();
        EXPECT_TRUE(!pushed || pushed->outcome == push_receipt::fate::dropped);
        break;
      }
      case 1:
        if (const auto id = some_lease(); id && !m.leases.at(*id).is_cancelled) {
          EXPECT_FALSE(e().ack(ref(*id)).get());
          // The lease is extended for a retry.
          model_lease& l = m.leases.at(*id);
          l.until = std::max(l.until, m.now + options.probe_every * 2);
        }
        break;
      case 2:
        EXPECT_FALSE(e().cancel(some_job()).get());
        break;
      default:
        EXPECT_FALSE(e().remove(some_job()).get());
        break;
    }
    settle();
    drive.works();
    pass_a_second();  // the probe
    EXPECT_TRUE(e().health().takes_pushes);
  }
  // A stop, after which leases expire as they would have without it, or a crash, after which they
  // no longer exist.
  void start_again() {
    settle();
    if (roll(2) == 0) {
      crash();
      for (auto at = m.leases.begin(); at != m.leases.end();) {
        at = m.leases.erase(at);
      }
    } else {
      reopen();
    }
  }
  void pass_a_second() {
    advance(1s);
    m.tick();
  }
  void pass_no_time() {
    settle();
    m.pass_time();
  }

  template <class T>
  void expect_error(const result<T>& r, error_code code) {
    ASSERT_FALSE(r) << "expected " << to_string(code);
    ASSERT_EQ(to_string(r.error().code), to_string(code)) << r.error().message;
  }

  void compare() {
    settle();
    std::map<job_id, job> there;
    for (job& j : list_all({.limit = 1000})) there.emplace(j.id, std::move(j));
    ids only_there;
    for (const auto& [id, j] : there) {
      if (!m.jobs.contains(id)) only_there.push_back(id);
    }
    EXPECT_EQ(only_there, ids{});
    for (const auto& [id, j] : m.jobs) {
      const auto at = there.find(id);
      ASSERT_NE(at, there.end()) << "job " << id << " is lost";
      const job_state expected = m.is_leased(id) ? job_state::running : j.state;
      EXPECT_EQ(to_string(at->second.state), to_string(expected)) << "job " << id;
      EXPECT_EQ(at->second.attempts, j.attempts) << "job " << id;
      EXPECT_EQ(at->second.errors.size(), j.errors) << "job " << id;
      EXPECT_EQ(at->second.due_at, j.due) << "job " << id;
      EXPECT_EQ(at->second.spec.priority, j.priority) << "job " << id;
      EXPECT_EQ(at->second.result, j.result) << "job " << id;
    }
    EXPECT_EQ(e().stats().running,
              static_cast<std::uint64_t>(std::ranges::count_if(
                  m.leases, [](const auto& l) { return !l.second.is_cancelled; })));
    EXPECT_LE(e().stats().window_jobs, options.window_jobs_max * 2);
  }

  static constexpr milliseconds keep_killed{3000};

  random dice{1};
  model m;
  std::set<job_id> known_ids;
};

TEST_F(EngineModel, AgreesWithTheEngine) {
  const auto seeds = sluice::testing::seeds(sluice::testing::test_name(),
                                            {.ci = 200, .full = 1000, .sanitized = 50});
  for (std::uint64_t i = 0; i < seeds.count && !HasFailure(); ++i) {
    known_ids.clear();
    run(seeds.first + i, 150);
  }
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_model_test
