// Many threads at once: producers; workers that ack, fail, release and abandon; users that cancel,
// remove, purge and configure; and a disk that fails now and then. At the end every acknowledged
// push must be accounted for exactly once.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "jobs/engine/testing/engine_words.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::jobs::testing::engine_stress_test {
namespace {

// The replies that the threads got. All ended jobs are kept, so that the store can confirm each end
// at the end of the test, unless the job was removed.
struct ledger {
  // The interval in which a job with a key was leased, in ticks of one counter.
  struct run {
    job_id id = 0;
    std::uint64_t began = 0;
    std::uint64_t ended = 0;
  };
  std::set<job_id> accepted;
  std::map<job_id, int> acked;
  std::set<job_id> cancelled;
  std::set<job_id> removed;
  std::uint64_t purged = 0;
  std::vector<batch_receipt> batches;
  std::map<std::string, std::vector<run>> runs;  // of each queue and key
  std::uint64_t moments = 0;
};

class EngineStress : public ::testing::Test {
 protected:
  static constexpr std::size_t pushers = 3;
  static constexpr std::size_t workers = 4;
  static constexpr std::size_t pushes_of_each = 600;
  static constexpr std::array<const char*, 3> queues = {"a", "b", "c"};

  void open(std::uint64_t seed) {
    engine_options o;
    o.seed = seed;
    o.window_jobs_max = 8;
    o.window_bytes_max = 20'000;
    o.staged_bytes_max = 4000;
    o.probe_every = 2ms;
    engine_ = std::move(engine::open(make_memory_store(drive.on(contents)), o)).value();
    for (const char* const q : queues) {
      const bool blocks = *q == 'a';
      queue_patch patch;
      patch.capacity_jobs = blocks ? 40 : 400;
      patch.when_full = blocks      ? overflow::block
                        : *q == 'b' ? overflow::drop_oldest
                                    : overflow::reject;
      patch.keep_done = std::chrono::hours(1);
      patch.lease_for = milliseconds(20);
      ASSERT_TRUE(engine_->configure(q, patch).get());
    }
  }
  void fail_sometimes(random dice) {
    // The function is copied for every commit: its state is stored beside it.
    struct state {
      random dice;
      int n;
    };
    const auto faults = std::make_shared<state>(state{dice, 0});
    drive.fails_when([faults](const transaction&) -> std::optional<error> {
      if (++faults->n % 8 != 0 || faults->dice.below(4) != 0) return std::nullopt;
      return error{faults->dice.below(2) == 0 ? error_code::io_error : error_code::disk_full,
                   "now and then"};
    });
  }

  void produce(random dice) {
    for (std::size_t i = 0; i < pushes_of_each; ++i) {
      // After a failed commit pushes are rejected until a probe has succeeded.
      sluice::testing::eventually([&] { return engine_->health().takes_pushes; });
      job_spec s;
      s.queue = queues[dice.below(queues.size())];
      s.kind = "k";
      s.priority = dice.below(3);
      s.args.data.assign(dice.below(10) == 0 ? 2000 : 10, '1');
      s.retry = {.attempts_max = 50, .first = milliseconds(1), .factor = 1.0};
      if (dice.below(8) == 0) s.run_at = real_time().now() + milliseconds(dice.below(5));
      if (dice.below(6) == 0) {
        s.unique = {.key = std::to_string(dice.below(20)),
                    .until = static_cast<unique_until>(dice.below(3)),
                    .lasts = milliseconds(5)};
      }
      if (dice.below(4) == 0) s.key = std::to_string(dice.below(8));
      if (dice.below(5) == 0) s.after = {{some_job(dice), {}, after_when::end}};
      stress.did();
      if (dice.below(8) == 0) {
        push_batch(std::move(s), dice);
      } else if (dice.below(5) == 0) {
        const std::vector<job_spec> both(2, s);
        const bulk mode = dice.below(2) == 0 ? bulk::each : bulk::all_or_nothing;
        for (auto& r : engine_->push_many(both, mode, deadline::after(50ms)).get()) note(r);
      } else {
        note(engine_->push(std::move(s), deadline::after(50ms)).get());
      }
    }
  }
  // Two steps and callbacks: all of them are released in the end.
  void push_batch(job_spec s, random& dice) {
    s.unique = {};
    batch_spec b;
    s.step = "first";
    b.jobs.push_back(s);
    s.step = "second";
    s.after = {{0, "first", after_when::end}};
    b.jobs.push_back(s);
    b.on_end = job_spec{.queue = queues[dice.below(queues.size())], .kind = "callback"};
    b.on_end->retry = {.attempts_max = 50, .first = milliseconds(1), .factor = 1.0};
    const auto pushed = engine_->push_batch(std::move(b), deadline::after(50ms)).get();
    if (!pushed) return;
    for (const job_id id : {pushed->jobs[0], pushed->jobs[1], pushed->on_end}) {
      note(push_receipt{id, push_receipt::fate::accepted});
    }
    results.with([&](ledger& l) { l.batches.push_back(*pushed); });
  }
  job_id some_job(random& dice) {
    return results.with([&](ledger& l) {
      if (l.accepted.empty()) return job_id{1};
      const auto at =
          l.accepted.lower_bound(dice.below(static_cast<std::uint32_t>(*l.accepted.rbegin() + 1)));
      return at == l.accepted.end() ? *l.accepted.begin() : *at;
    });
  }
  void note(const result<push_receipt>& r) {
    if (!r || r->outcome != push_receipt::fate::accepted) return;
    results.with([&](ledger& l) { EXPECT_TRUE(l.accepted.insert(r->id).second) << r->id; });
  }

  void work(random dice, std::stop_token stop) {
    while (!stop.stop_requested()) {
      lease_request request{.queues = {"a", "b", "c"}, .max = 1 + dice.below(4), .worker = "w"};
      std::swap(request.queues[0], request.queues[dice.below(3)]);
      auto leased = engine_->lease(request, {deadline::after(20ms), stop}).get();
      if (!leased) continue;
      for (const leased_job& l : *leased) {
        stress.did();
        handle(l, dice);
      }
    }
  }
  std::uint64_t moment() {
    return results.with([](ledger& l) { return ++l.moments; });
  }
  void handle(const leased_job& l, random& dice) {
    ledger::run lease_run{l.job->id, moment(), 0};
    switch (dice.below(12)) {
      case 0:
        (void)engine_->fail(l.ref(), {.type = "io", .for_good = dice.below(4) == 0}).get();
        return;
      case 1:
        (void)engine_->release(l.ref()).get();
        return;
      case 2:
        (void)engine_->release(l.ref(), {.delay = milliseconds(1), .priority = 1}).get();
        return;
      case 3:
        return;  // abandoned: the lease expires
      case 4:
        (void)engine_->extend(l.ref(), milliseconds(20));
        break;
      default:
        break;
    }
    for (int tries = 0; tries < 20; ++tries) {
      lease_run.ended = moment();
      const auto acked = engine_->ack(l.ref(), payload{"1"}).get();
      if (acked) {
        results.with([&](ledger& all) {
          ++all.acked[l.job->id];
          const job_spec& s = l.job->spec;
          if (!s.key.empty()) all.runs[s.queue + "/" + s.key].push_back(lease_run);
        });
        return;
      }
      if (acked.error().code == error_code::lease_lost) return;
    }
  }

  void meddle(random dice, std::stop_token stop) {
    while (!stop.stop_requested()) {
      stress.did();
      const job_id id = some_job(dice);
      switch (dice.below(16)) {
        case 0:
        case 1:
        case 2:
          if (engine_->cancel(id).get()) {
            results.with([&](ledger& l) { l.cancelled.insert(id); });
          }
          break;
        case 3:
          (void)engine_->retry(id).get();
          break;
        case 4:
          if (engine_->remove(id).get()) {
            results.with([&](ledger& l) { l.removed.insert(id); });
          }
          break;
        case 5:
          if (dice.below(10) == 0) {
            const auto purged = engine_->purge(queues[dice.below(queues.size())]).get();
            if (purged) results.with([&](ledger& l) { l.purged += *purged; });
            purge_failed = purge_failed || !purged;
          }
          break;
        case 6: {
          queue_patch patch;
          patch.capacity_jobs = 20 + dice.below(100);
          (void)engine_->configure("a", patch).get();
          break;
        }
        case 7:
          (void)engine_->configure("b", {.paused = true}).get();
          while (!engine_->configure("b", {.paused = false}).get()) {
          }
          break;
        case 8:
          (void)engine_->wait(id, deadline::after(1ms)).get();
          break;
        case 9: {
          std::stop_source gone;
          auto waits = engine_->lease({.queues = {"nobody", "c"}}, gone.get_token());
          gone.request_stop();
          auto got = waits.get();
          if (got) {
            for (const leased_job& l : *got) (void)engine_->release(l.ref()).get();
          }
          break;
        }
        default:
          (void)engine_->get(id).get();
          (void)engine_->list({.queue = "a", .limit = 10}).get();
          (void)engine_->queues();
          (void)engine_->stats();
          break;
      }
    }
  }

  std::map<job_id, job_state> list_all() {
    std::map<job_id, job_state> all;
    list_request request{.limit = 1000};
    for (;;) {
      auto page = engine_->list(request).get();
      EXPECT_TRUE(page);
      if (!page) return all;
      for (const job& j : page->jobs) all.emplace(j.id, j.state);
      if (!page->cursor) return all;
      request.after = *page->cursor;
    }
  }

  // A cancelled job frees its key while it is still leased.
  void check_keys() {
    results.with([&](ledger& l) {
      std::size_t looked_at = 0;
      for (auto& [key, runs] : l.runs) {
        std::erase_if(runs, [&](const ledger::run& r) { return l.cancelled.contains(r.id); });
        std::ranges::sort(runs, {}, &ledger::run::began);
        for (std::size_t i = 1; i < runs.size(); ++i, ++looked_at) {
          EXPECT_LT(runs[i - 1].ended, runs[i].began)
              << "jobs " << runs[i - 1].id << " and " << runs[i].id << " of " << key;
        }
      }
      EXPECT_GT(looked_at, 10U) << "too few for a stress";
    });
  }

  void check_totals() {
    const std::map<job_id, job_state> there = list_all();
    std::map<std::string, queue_counts> counts;
    for (const queue_info& q : engine_->queues()) counts[q.name] = q.counts;
    results.with([&](ledger& l) {
      EXPECT_GT(l.accepted.size(), pushes_of_each / 2) << "too few for a stress";
      for (const auto& [id, state] : there) {
        EXPECT_TRUE(l.accepted.contains(id)) << "job " << id << " was never acknowledged";
        EXPECT_TRUE(has_ended(state)) << "job " << id << " is " << to_string(state);
        EXPECT_FALSE(l.removed.contains(id)) << "job " << id << " was removed";
        EXPECT_TRUE(state != job_state::done || l.acked.contains(id)) << "job " << id;
      }
      for (const auto& [id, times] : l.acked) {
        EXPECT_TRUE(l.accepted.contains(id));
        // A cancelled job may also be acked, and a retry runs it again.
        EXPECT_TRUE(times == 1 || l.cancelled.contains(id)) << "job " << id << " " << times;
      }
      for (const batch_receipt& b : l.batches) {
        const auto now = engine_->get_batch(b.id).get();
        ASSERT_TRUE(now);
        EXPECT_TRUE(now->has_ended()) << "batch " << b.id;
        EXPECT_EQ(now->total, 2U);
      }
      const std::uint64_t dropped = engine_->stats().dropped;
      if (!purge_failed) {
        EXPECT_EQ(l.accepted.size(), there.size() + l.removed.size() + l.purged + dropped)
            << "there " << there.size() << ", removed " << l.removed.size() << ", purged "
            << l.purged << ", dropped " << dropped;
      }
    });
    std::map<std::string, std::uint64_t> sums;
    for (const auto& [name, c] : counts) {
      EXPECT_EQ(c.unfinished(), 0U) << name;
      EXPECT_EQ(c.bytes, 0U) << name;
      sums[name] = c.done + c.dead + c.cancelled;
    }
    std::uint64_t sum = 0;
    for (const auto& [name, n] : sums) sum += n;
    EXPECT_EQ(sum, there.size());
    const engine_stats s = engine_->stats();
    EXPECT_EQ(s.running, 0U);
    EXPECT_EQ(s.window_jobs, 0U);
    EXPECT_EQ(s.window_bytes, 0U);
    EXPECT_EQ(s.waiting_leases + s.waiting_pushes, 0U);
  }

  sluice::testing::stress stress;
  disk drive;
  std::shared_ptr<memory_contents> contents = make_memory_contents();
  std::unique_ptr<engine> engine_;
  guarded<ledger> results;
  atomic<bool> purge_failed{false};  // then its count is unknown
};

TEST_F(EngineStress, EveryAcknowledgedPushIsAccountedForOnce) {
  open(stress.generator(0).next() | 1);
  fail_sometimes(stress.generator(1));
  {
    std::vector<seam::thread> consumers;
    std::stop_source stop;
    for (std::size_t i = 0; i < workers; ++i) {
      consumers.emplace_back(
          [this, i, token = stop.get_token()] { work(stress.generator(10 + i), token); });
    }
    seam::thread meddler([this, token = stop.get_token()] { meddle(stress.generator(2), token); });
    {
      std::vector<seam::thread> producers;
      for (std::size_t i = 0; i < pushers; ++i) {
        producers.emplace_back([this, i] { produce(stress.generator(20 + i)); });
      }
    }
    drive.works();
    // Runs the remaining jobs.
    sluice::testing::eventually([&] {
      const auto all = engine_->queues();
      return std::ranges::all_of(all,
                                 [](const queue_info& q) { return q.counts.unfinished() == 0; });
    });
    stop.request_stop();
  }
  sluice::testing::eventually(
      [&] { return engine_->drained(deadline::after(1s)).get() == status::ok; });
  EXPECT_GT(engine_->stats().commit_errors, 0U) << "otherwise no disk failure was tested";
  check_totals();
  check_keys();
  engine_->stop();
}

// Stops in the middle: each call is answered, and acknowledged jobs are stored.
TEST_F(EngineStress, AStopInTheMiddleLosesNothing) {
  for (int life = 0; life < 5; ++life) {
    open(stress.generator(0).next() | 1);
    std::vector<seam::thread> threads;
    std::stop_source stop;
    for (std::size_t i = 0; i < pushers; ++i) {
      threads.emplace_back([this, life, i] {
        random dice = stress.generator(100 * static_cast<std::uint64_t>(life) + i);
        for (;;) {
          stress.did();
          const auto r =
              engine_->push({.queue = "d", .kind = "k", .priority = dice.below(3)}).get();
          note(r);
          if (!r && r.error().code == error_code::shutting_down) return;
        }
      });
    }
    threads.emplace_back([this, life, token = stop.get_token()] {
      random dice = stress.generator(100 * static_cast<std::uint64_t>(life) + 50);
      while (!token.stop_requested()) {
        auto leased = engine_->lease({.queues = {"d"}, .max = 3}, deadline::after(5ms)).get();
        if (!leased) {
          if (leased.error().code == error_code::shutting_down) return;
          continue;
        }
        for (const leased_job& l : *leased) handle(l, dice);
      }
    });
    const std::uint64_t enough = engine_->stats().pushed + 1000;
    sluice::testing::eventually([&] { return engine_->stats().pushed >= enough; });
    engine_->stop();
    threads.clear();
    engine_.reset();
  }
  open(1);
  std::set<job_id> there;
  for (const auto& [id, state] : list_all()) there.insert(id);
  results.with([&](ledger& l) { EXPECT_EQ(there, l.accepted); });
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_stress_test
