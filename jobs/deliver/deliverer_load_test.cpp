// Concurrency, and the cost of a failing receiver or disk.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "jobs/deliver/deliverer.hpp"
#include "jobs/deliver/testing/delivery_words.hpp"

namespace sluice::jobs::deliverer_load_test {
namespace {

using namespace sluice::jobs::testing;

class deliverer_load_test : public delivery_words {
 protected:
  // Replies after `go`.
  receiver::script held(int status = 200) {
    return [this, status](const received&) {
      go.wait();
      return answer(status);
    };
  }
  event go;
};

// ---- concurrency

TEST_F(deliverer_load_test, NeverMoreAtATimeThanTheConcurrency) {
  receiver endpoint(held());
  deliver_to(endpoint, 3);
  const ids all = push_some(40, {.keep_for = 1h});
  endpoint.await(3);
  settle();
  EXPECT_EQ(counts().running, 3U);  // a job is leased only to be sent
  EXPECT_EQ(stats_of().in_flight, 3U);
  go.set();
  for (const job_id id : all) EXPECT_EQ(ended(id).state, job_state::done);
  EXPECT_EQ(endpoint.most_under_way(), 3);
  EXPECT_EQ(endpoint.requests().size(), 40U);
  EXPECT_LE(endpoint.connections(), 3);
  eventually([&] { return stats_of().delivered == 40; });
  EXPECT_EQ(stats_of().in_flight, 0U);
}

TEST_F(deliverer_load_test, ManyTargetsShareTheSlotsInTurn) {
  posting.requests_max = 4;
  receiver endpoint([](const received&) { return answer(200); });
  allow({&endpoint});
  ids all;
  for (const char* const queue : {"a", "b", "c"}) {
    for (const job_id id : push_some(30, {.queue = queue, .keep_for = 1h})) all.push_back(id);
    configure({.deliver_url = endpoint.url(), .deliver_concurrency = 10}, queue);
  }
  d().refresh();
  for (const job_id id : all) EXPECT_EQ(ended(id).state, job_state::done);
  EXPECT_LE(endpoint.most_under_way(), 4);
  EXPECT_EQ(endpoint.requests().size(), all.size());
}

TEST_F(deliverer_load_test, EveryJobOfABusyQueueIsPostedOnce) {
  receiver endpoint([](const received&) { return answer(200); });
  deliver_to(endpoint, 16);
  constexpr std::size_t count = 2000;
  std::vector<job_spec> specs(count);
  for (job_spec& s : specs) s = {.kind = "k", .keep_for = 1h};
  const auto pushed = e().push_many(specs).get();
  for (const auto& p : pushed) EXPECT_EQ(ended(p->id).state, job_state::done);
  std::set<std::string> seen;
  for (const received& r : endpoint.requests()) seen.insert(r.header("sluice-job-id"));
  EXPECT_EQ(seen.size(), count);
  EXPECT_EQ(endpoint.requests().size(), count);
  EXPECT_LE(endpoint.connections(), 16);
}

TEST_F(deliverer_load_test, TheRateOfAQueueHoldsForItsDeliveries) {
  receiver endpoint([](const received&) { return answer(200); });
  configure({.rate = 10, .rate_burst = 2});
  deliver_to(endpoint, 8);
  push_some(20, {.keep_for = 1h});
  eventually([&] { return counts().done == 2; });
  settle();
  EXPECT_EQ(endpoint.requests().size(), 2U);
  advance(100ms);
  eventually([&] { return counts().done == 3; });
  settle();
  EXPECT_EQ(endpoint.requests().size(), 3U);
}

TEST_F(deliverer_load_test, APausedQueueIsNotDelivered) {
  receiver endpoint([](const received&) { return answer(200); });
  configure({.paused = true});
  deliver_to(endpoint);
  const job_id id = push_kept();
  settle();
  EXPECT_EQ(state(id), job_state::ready);
  configure({.paused = false});
  EXPECT_EQ(ended(id).state, job_state::done);
}

// ---- a receiver that fails

TEST_F(deliverer_load_test, AReceiverThatKeepsFailingIsPausedAndProbed) {
  posting.failures_in_a_row = 3;
  std::atomic<bool> works{false};
  receiver endpoint([&](const received&) { return answer(works ? 200 : 500); });
  deliver_to(endpoint, 1);
  const ids all = push_some(20, {.retry = {.first = 1h}, .keep_for = 24h});
  eventually([&] { return stats_of().is_paused; });
  eventually([&] { return counts().retrying == 3; });
  settle();
  EXPECT_EQ(endpoint.requests().size(), 3U);  // 17 have lost no attempt
  EXPECT_EQ(counts().ready, 17U);

  advance(999ms);
  EXPECT_EQ(endpoint.requests().size(), 3U);
  advance(1ms);
  eventually([&] { return counts().retrying == 4; });  // the probe
  advance(1999ms);                                     // the pause has doubled
  EXPECT_EQ(endpoint.requests().size(), 4U);

  works = true;
  advance(1ms);
  eventually([&] { return counts().done == 16; });
  EXPECT_FALSE(stats_of().is_paused);
  EXPECT_EQ(endpoint.requests().size(), 20U);
  EXPECT_EQ(events_of(delivery_event::event_kind::paused).size(), 1U);
  EXPECT_EQ(events_of(delivery_event::event_kind::resumed).size(), 1U);
}

TEST_F(deliverer_load_test, OnlyRequestsInProgressAtThePauseFail) {
  posting.failures_in_a_row = 2;
  receiver endpoint(held(500));
  deliver_to(endpoint, 8);
  push_some(100, {.retry = {.first = 1h}});
  endpoint.await(8);
  go.set();
  // And the request that followed the first failure, before the second in a row.
  eventually([&] { return stats_of().is_paused && stats_of().failed >= 8; });
  eventually([&] { return stats_of().in_flight == 0 && counts().running == 0; });
  EXPECT_LE(endpoint.requests().size(), 9U);
  EXPECT_GE(counts().ready, 91U);
}

TEST_F(deliverer_load_test, RetryAfterOfABusyReceiverPausesItsQueue) {
  std::atomic<bool> is_busy{true};
  receiver endpoint([&](const received&) {
    return is_busy ? answer(429, "", "Retry-After: 20\r\n") : answer(200);
  });
  deliver_to(endpoint, 1);
  const job_id first = push_kept({.kind = "first"});
  EXPECT_EQ(retrying(first).due_at, time.now() + 20s);
  eventually([&] { return stats_of().is_paused; });
  is_busy = false;
  const job_id second = push_kept();
  advance(19s);
  EXPECT_EQ(state(second), job_state::ready);
  advance(1s);
  EXPECT_EQ(ended(second).state, job_state::done);
  EXPECT_FALSE(stats_of().is_paused);
}

TEST_F(deliverer_load_test, OneBadJobDoesNotPauseItsReceiver) {
  posting.failures_in_a_row = 2;
  receiver endpoint(
      [](const received& r) { return answer(r.header("sluice-kind") == "bad" ? 422 : 200); });
  deliver_to(endpoint, 1);
  for (const job_id id : push_some(10, {.kind = "bad", .keep_for = 1h})) ended(id);
  EXPECT_EQ(ended(push_kept()).state, job_state::done);
  EXPECT_TRUE(events_of(delivery_event::event_kind::paused).empty());
}

TEST_F(deliverer_load_test, ReceiversDoNotPauseForOneAnother) {
  posting.failures_in_a_row = 1;
  receiver bad([](const received&) { return answer(500); });
  receiver good([](const received&) { return answer(200); });
  allow({&bad, &good});
  deliver("bad", {.url = bad.url()});
  deliver("good", {.url = good.url()});
  retrying(push_kept({.queue = "bad"}));
  eventually([&] { return stats_of("bad").is_paused; });
  EXPECT_EQ(ended(push_kept({.queue = "good"})).state, job_state::done);
}

// ---- when the disk fails

TEST_F(deliverer_load_test, OutcomesAreReportedUntilStoredAndNotPostedAgain) {
  receiver endpoint(held());
  deliver_to(endpoint);
  const job_id id = push_kept();
  endpoint.await(1);
  drive.fails(error_code::io_error);
  go.set();
  eventually([&] { return e().stats().commit_errors > 0; });
  drive.works();
  constexpr auto soon = 100ms;
  eventually([&] { return time.timers().earliest() <= time.timers().now() + soon; },
             "the word about it to be put off");
  time.advance(soon);
  eventually([&] { return state(id) == job_state::done; });
  EXPECT_EQ(endpoint.requests().size(), 1U);
  eventually([&] { return stats_of().delivered == 1; });
}

TEST_F(deliverer_load_test, StopsWhileTheDiskFails) {
  receiver endpoint(held());
  deliver_to(endpoint);
  const job_id id = push_kept();
  endpoint.await(1);
  drive.fails(error_code::io_error);
  go.set();
  eventually([&] { return e().stats().commit_errors > 0; });
  EXPECT_FALSE(d().stop(deadline::after(0s)));
  EXPECT_EQ(stats_of().lost, 1U);
  EXPECT_EQ(events_of(delivery_event::event_kind::lost).at(0).job, id);
}

}  // namespace
}  // namespace sluice::jobs::deliverer_load_test
