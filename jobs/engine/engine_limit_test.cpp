// Limits: rates, concurrency, weights between queues, rates of keys.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_limit_test {
namespace {

class EngineLimit : public engine_words {
 protected:
  // Leases all jobs that may start now.
  std::size_t start_all(const std::string& queue = "default") {
    auto leased = try_lease({.queues = {queue}, .max = 1000});
    return leased ? leased->size() : 0;
  }
  void push_many(std::size_t count, const std::string& queue = "default") {
    const std::vector<job_spec> specs(count, {.queue = queue, .kind = "k"});
    for (const auto& pushed : e().push_many(specs).get()) ASSERT_TRUE(pushed);
  }
  // Starts `count` jobs, one lease after the other; returns the number per queue.
  std::map<std::string, int> take_from(std::vector<std::string> queues, int count,
                                       std::size_t max = 1) {
    std::map<std::string, int> taken;
    for (int n = 0; n < count;) {
      auto leased = try_lease({.queues = queues, .max = max});
      if (!leased) break;
      std::vector<ack_item> acks;
      for (const leased_job& l : *leased) {
        ++taken[l.job->spec.queue];
        ++n;
        acks.push_back({l.ref(), {}});
      }
      for (const auto& acked : e().ack_many(acks).get()) EXPECT_TRUE(acked);
    }
    return taken;
  }
};

TEST_F(EngineLimit, ARateIsKeptExactly) {
  configure({.rate = 100, .rate_burst = 1});
  push_many(1000);
  std::size_t started = start_all();
  EXPECT_EQ(started, 1U);
  for (int ms = 1; ms <= 2000; ++ms) {
    time.advance(1ms);
    started += start_all();
    ASSERT_EQ(started, 1U + static_cast<std::size_t>(ms / 10)) << ms << " ms";
  }
}

TEST_F(EngineLimit, ABurstIsPermittedAfterAPause) {
  configure({.rate = 10, .rate_burst = 5});
  push_many(100);
  EXPECT_EQ(start_all(), 5U);
  EXPECT_EQ(start_all(), 0U);
  time.advance(100ms);
  EXPECT_EQ(start_all(), 1U);
  time.advance(10min);
  EXPECT_EQ(start_all(), 5U);  // never more than the burst
  time.advance(250ms);
  EXPECT_EQ(start_all(), 2U);
  time.advance(50ms);
  EXPECT_EQ(start_all(), 1U);
}

TEST_F(EngineLimit, TheDefaultBurstIsATenthOfASecond) {
  configure({.rate = 200});
  push_many(100);
  EXPECT_EQ(start_all(), 20U);
  configure({.rate = 5});
  EXPECT_EQ(start_all(), 1U);
}

TEST_F(EngineLimit, ATinyRateIsValid) {
  configure({.lease_for = 24h * 365});  // their leases do not expire in this test
  push_many(3);
  configure({.rate = 1e-300, .rate_burst = 1});
  EXPECT_EQ(start_all(), 1U);
  configure({.rate = 1e-9, .rate_burst = 1});
  EXPECT_EQ(start_all(), 1U);
  time.advance(24h * 300);
  EXPECT_EQ(start_all(), 0U);
  configure({.rate = 1e-3, .rate_burst = 10'000'000});
  EXPECT_EQ(start_all(), 1U);
}

TEST_F(EngineLimit, WaitingWorkersAreServedAtTheRate) {
  configure({.rate = 10, .rate_burst = 1});
  push_many(10);
  EXPECT_EQ(start_all(), 1U);
  auto first = e().lease({});
  auto second = e().lease({});
  settle();
  const std::uint64_t commits = e().stats().commits;
  time.advance(99ms);
  settle();
  EXPECT_FALSE(first.is_ready());
  time.advance(1ms);
  EXPECT_TRUE(first.get());
  settle();
  EXPECT_FALSE(second.is_ready());
  time.advance(100ms);
  EXPECT_TRUE(second.get());
  EXPECT_EQ(e().stats().commits, commits) << "a rate costs no commits";
}

TEST_F(EngineLimit, AnArrivingJobStartsAtTheRate) {
  configure({.rate = 10, .rate_burst = 1});
  push();
  EXPECT_EQ(start_all(), 1U);
  auto waits = e().lease({});
  push();
  settle();
  EXPECT_FALSE(waits.is_ready());
  time.advance(100ms);
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineLimit, APausedQueueIgnoresItsRate) {
  configure({.rate = 10, .rate_burst = 1});
  push_many(3);
  EXPECT_EQ(start_all(), 1U);
  auto waits = e().lease({});
  configure({.paused = true});
  advance(10s);
  EXPECT_FALSE(waits.is_ready());
  configure({.paused = false});
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineLimit, PausingGivesNoNewBurst) {
  configure({.rate = 1, .rate_burst = 3});
  push_many(10);
  EXPECT_EQ(start_all(), 3U);
  configure({.paused = true});
  configure({.paused = false});
  EXPECT_EQ(start_all(), 0U);
  configure({.rate = 2});
  EXPECT_EQ(start_all(), 3U);
}

TEST_F(EngineLimit, AChangedRateAppliesToWaitingCalls) {
  configure({.rate = 0.001, .rate_burst = 1});
  push_many(3);
  EXPECT_EQ(start_all(), 1U);
  auto waits = e().lease({});
  settle();
  EXPECT_FALSE(waits.is_ready());
  configure({.rate = 0});
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(start_all(), 1U);
}

TEST_F(EngineLimit, ConcurrencyIsFreedByEveryEnd) {
  configure({.lease_for = 10s, .concurrency = 2});
  push_many(20);
  auto running = lease(10);
  ASSERT_EQ(running.size(), 2U);
  EXPECT_EQ(start_all(), 0U);
  const lease_request one;
  future<result<std::vector<leased_job>>> waits = e().lease(one);
  const auto next_after = [&](const std::function<void()>& ends) {
    EXPECT_FALSE(waits.is_ready());
    ends();
    const auto got = waits.get();
    EXPECT_TRUE(got);
    running.push_back(got->front());
    waits = e().lease(one);
    settle();
  };
  next_after([&] { EXPECT_TRUE(ack(running[0])); });
  next_after([&] { EXPECT_TRUE(fail(running[1])); });
  next_after([&] {  // a cancel alone frees nothing: the worker may still run it
    EXPECT_TRUE(e().cancel(running[2].job->id).get());
    settle();
    EXPECT_FALSE(waits.is_ready());
    EXPECT_TRUE(ack(running[2]));
  });
  next_after([&] { EXPECT_TRUE(e().release(running[3].ref(), {.delay = 1h}).get()); });
  next_after([&] { EXPECT_TRUE(e().release(running[4].ref()).get()); });
  EXPECT_EQ(e().queue("default")->counts.running, 2U);
  settle();
  time.advance(10s);  // both leases expire: one slot for the waiting call
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(start_all(), 1U);
}

TEST_F(EngineLimit, ACancelledJobCountsUntilItsLeaseEnds) {
  configure({.lease_for = 10s, .concurrency = 2});
  push_many(6);
  const auto running = lease(10);
  ASSERT_EQ(running.size(), 2U);
  for (const leased_job& l : running) ASSERT_TRUE(e().cancel(l.job->id).get());
  EXPECT_EQ(e().queue("default")->counts.running, 0U);
  EXPECT_EQ(start_all(), 0U);
  const job_id next = push();
  EXPECT_EQ(code_of(e().lease_job(next).get()), error_code::overloaded);
  EXPECT_TRUE(e().extend(running[0].ref(), 20s)->cancelled);
  ASSERT_TRUE(ack(running[1]));
  EXPECT_EQ(start_all(), 1U);
  advance(10s);  // the lease of the job just started expires
  EXPECT_EQ(start_all(), 1U);
  advance(10s);  // and so do the other two
  EXPECT_EQ(start_all(), 2U);
}

TEST_F(EngineLimit, ACancelReturnsNoTokenToTheRate) {
  configure({.rate = 1, .rate_burst = 1});
  push_many(3);
  const leased_job l = take();
  ASSERT_TRUE(e().cancel(l.job->id).get());
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(start_all(), 0U);
  advance(1s);
  EXPECT_EQ(start_all(), 1U);
}

TEST_F(EngineLimit, AHigherConcurrencyAppliesToWaitingCalls) {
  configure({.concurrency = 1});
  push_many(3);
  EXPECT_EQ(start_all(), 1U);
  auto waits = e().lease({});
  configure({.concurrency = 2});
  EXPECT_TRUE(waits.get());
}

// Shares of queues.

TEST_F(EngineLimit, SharesFollowTheWeights) {
  configure({.weight = 1}, "a");
  configure({.weight = 3}, "b");
  push_many(4000, "a");
  push_many(4000, "b");
  const auto taken = take_from({"a", "b"}, 4000);
  EXPECT_NEAR(taken.at("a"), 1000, 20);
  EXPECT_NEAR(taken.at("b"), 3000, 60);
  const auto many = take_from({"b", "a"}, 800, 50);
  EXPECT_NEAR(many.at("a"), 200, 8);
}

TEST_F(EngineLimit, AnIdleQueueNeitherStarvesNorCatchesUp) {
  configure({.weight = 1}, "a");
  configure({.weight = 1}, "late");
  push_many(3000, "a");
  EXPECT_EQ(take_from({"a", "late"}, 1000).at("a"), 1000);
  push_many(500, "late");
  const auto taken = take_from({"a", "late"}, 200);
  EXPECT_NEAR(taken.at("a"), 100, 2);
  EXPECT_NEAR(taken.at("late"), 100, 2);
}

TEST_F(EngineLimit, QueuesEmptiedByOthersDoNotDisturbTheShares) {
  push_many(3000, "busy");
  push_many(300, "a");
  push_many(300, "b");
  std::map<std::string, int> taken;
  for (int i = 0; i < 100; ++i) {
    take_from({"busy"}, 7);
    for (const auto& [name, n] : take_from({"a", "b"}, 1)) taken[name] += n;
  }
  EXPECT_NEAR(taken["a"], 50, 1);
  EXPECT_NEAR(taken["b"], 50, 1);
  // Even when a third queue is far ahead in virtual time, none starves.
  const auto all = take_from({"busy", "a", "b"}, 90);
  for (const char* const q : {"busy", "a", "b"}) EXPECT_NEAR(all.at(q), 30, 2) << q;
}

TEST_F(EngineLimit, ManyQueuesAreAllServed) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back("q" + std::to_string(i));
    push_many(5, names.back());
  }
  const auto taken = take_from(names, 300, 7);
  ASSERT_EQ(taken.size(), 100U);
  for (const auto& [name, n] : taken) EXPECT_NEAR(n, 3, 1) << name;
}

TEST_F(EngineLimit, StrictLeasesFromTheFirstQueueWithJobs) {
  push_many(2, "second");
  push_many(2, "first");
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) {
    auto l = try_lease({.queues = {"first", "second"}, .pick = lease_request::order::strict});
    ASSERT_TRUE(l);
    order.push_back(l->front().job->spec.queue);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"first", "first", "second", "second"}));
}

TEST_F(EngineLimit, UrgentLeasesByPriorityThenByArrivalAcrossQueues) {
  const job_id b1 = push({.queue = "b"});
  const job_id a1 = push({.queue = "a", .priority = 1});
  const job_id c1 = push({.queue = "c"});
  const job_id b2 = push({.queue = "b", .priority = 7});
  const job_id a2 = push({.queue = "a"});
  const lease_request request{
      .queues = {"a", "b", "c"}, .pick = lease_request::order::urgent, .max = 2};
  EXPECT_EQ(ids_of(*try_lease(request)), (ids{b2, a1}));
  EXPECT_EQ(ids_of(*try_lease(request)), (ids{b1, c1}));
  EXPECT_EQ(ids_of(*try_lease(request)), (ids{a2}));
  EXPECT_EQ(code_of(try_lease(request)), error_code::timed_out);
}

TEST_F(EngineLimit, UrgentSkipsBlockedQueues) {
  configure({.paused = true}, "paused");
  configure({.rate = 1, .rate_burst = 1}, "slow");
  configure({.concurrency = 1}, "narrow");
  for (const char* const q : {"paused", "slow", "narrow"}) {
    push({.queue = q, .priority = 9});
    push({.queue = q, .priority = 9});
  }
  push({.queue = "held", .priority = 9});
  EXPECT_TRUE(e().pause_for("held", 1h));
  push_many(2, "free");
  auto leased = try_lease({.queues = {"paused", "slow", "narrow", "held", "free"},
                           .pick = lease_request::order::urgent,
                           .max = 10});
  ASSERT_TRUE(leased);
  std::vector<std::string> order;
  for (const leased_job& l : *leased) order.push_back(l.job->spec.queue);
  EXPECT_EQ(order, (std::vector<std::string>{"slow", "narrow", "free", "free"}));
}

TEST_F(EngineLimit, UrgentLeasesFromQueuesOnDisk) {
  options.window_jobs_max = 2;
  for (int i = 0; i < 10; ++i) {
    push({.queue = "a", .priority = i});
    push({.queue = "b", .priority = i});
  }
  reopen();
  std::size_t taken = 0;
  while (try_lease({.queues = {"a", "b"}, .pick = lease_request::order::urgent})) ++taken;
  EXPECT_EQ(taken, 20U);
}

TEST_F(EngineLimit, AQueueAtItsLimitDoesNotBlockOthers) {
  configure({.rate = 1, .rate_burst = 1}, "slow");
  configure({.concurrency = 1}, "narrow");
  for (const char* const q : {"slow", "narrow", "free"}) push_many(10, q);
  auto leased = try_lease({.queues = {"slow", "narrow", "free"}, .max = 30});
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->size(), 12U);
}

// Rates of keys.

TEST_F(EngineLimit, AJobOfAKeyAboveItsRateIsDeferred) {
  configure({.key_rate = 10, .key_burst = 1});
  const job_id a = push({.key = "k"});
  const job_id b = push({.key = "k"});
  const job_id c = push({.key = "k"});
  const job_id other = push({.key = "other"});
  EXPECT_EQ(drain(), (ids{a, other}));
  settle();
  EXPECT_EQ(state(b), job_state::scheduled);
  EXPECT_EQ(get(b).due_at, time.now() + 100ms);
  EXPECT_EQ(state(c), job_state::held);
  advance(99ms);
  EXPECT_TRUE(is_empty());
  advance(1ms);
  EXPECT_EQ(drain(), ids{b});
  settle();
  EXPECT_EQ(get(c).due_at, time.now() + 100ms);
  advance(100ms);
  EXPECT_EQ(drain(), ids{c});
}

TEST_F(EngineLimit, AWaitingWorkerGetsTheDeferredJob) {
  configure({.key_rate = 2, .key_burst = 1});
  push({.key = "k"});
  const job_id b = push({.key = "k"});
  ASSERT_TRUE(ack(take()));
  auto waits = e().lease({});
  settle();
  EXPECT_EQ(state(b), job_state::scheduled);
  advance(500ms);
  const auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(ids_of(*got), ids{b});
}

TEST_F(EngineLimit, TheRateOfAKeyHoldsOverTime) {
  configure({.key_concurrency = 5, .key_rate = 20, .key_burst = 4});
  for (int i = 0; i < 60; ++i) push({.key = "k"});
  std::size_t started = drain().size();
  EXPECT_EQ(started, 4U);
  std::vector<job_id> order;
  // Intervals that are not whole milliseconds: a deferred job returns slightly early or late.
  for (int i = 0; i < 200; ++i) {
    advance(10'100us);
    for (const job_id id : drain()) order.push_back(id);
  }
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_NEAR(static_cast<double>(order.size()), 2.02 * 20, 2);
}

TEST_F(EngineLimit, DeferredJobsSurviveACrash) {
  configure({.key_rate = 1, .key_burst = 1});
  push({.key = "k"});
  const job_id b = push({.key = "k"});
  const job_id c = push({.key = "k"});
  EXPECT_EQ(drain().size(), 1U);
  settle();
  crash();
  EXPECT_EQ(state(b), job_state::scheduled);
  EXPECT_TRUE(is_empty());
  advance(1s);
  EXPECT_EQ(drain(), ids{b});
  advance(1s);
  EXPECT_EQ(drain(), ids{c});
}

TEST_F(EngineLimit, AJobThatCouldNotBeDeferredIsLeasedWhenTheStoreRecovers) {
  configure({.key_rate = 1, .key_burst = 1});
  push({.key = "k"});
  const job_id b = push({.key = "k"});
  ASSERT_TRUE(ack(take()));
  auto waits = e().lease({});
  settle();
  ASSERT_TRUE(e().retry(b).get());  // deferred once more
  drive.fails(error_code::io_error);
  settle();
  advance(1s);
  const std::uint64_t errors = e().stats().commit_errors;
  advance(10ms);
  EXPECT_LE(e().stats().commit_errors, errors + 1) << "no retries while the store fails";
  drive.works();
  advance(2s);
  const auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(ids_of(*got), ids{b});
}

TEST_F(EngineLimit, ADeferredJobCanBeCancelled) {
  configure({.key_rate = 1, .key_burst = 1});
  push({.key = "k"});
  const job_id b = push({.key = "k"});
  const job_id c = push({.key = "k"});
  EXPECT_EQ(drain().size(), 1U);
  ASSERT_TRUE(e().cancel(b).get());
  EXPECT_EQ(state(b), job_state::cancelled);
  for (int i = 0; i < 4 && has(c); ++i) {
    advance(1s);
    drain();
  }
  EXPECT_FALSE(has(c));
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_limit_test
