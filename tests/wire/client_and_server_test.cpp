// Every call of the client on a real server has the effect of the same call of the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "tests/wire/served_engine.hpp"

namespace sluice::jobs::client_and_server_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;
using testing::served_engine;

TEST(ClientAndServer, AJobIsStoredAsPushed) {
  served_engine both;
  const job_spec spec{
      .queue = "a/b:c",
      .kind = "k \"quoted\" \xC3\xA4",
      .args = {R"({"n":12345678901234567890,"x":[1.10,null]})"},
      .priority = -7,
      .retry = {.attempts_max = 3, .first = 1500ms, .factor = 1.5, .longest = 1h, .jitter = 0.5},
      .lease_for = 90s,
      .time_limit = 250ms,
      .unique = {.key = "u", .until = unique_until::elapsed, .lasts = 1h},
      .metadata = R"({"trace":"abc"})",
      .keep_for = 2h};
  const auto pushed = both.remote().push(spec);
  ASSERT_TRUE(pushed) << pushed.error().message;
  EXPECT_EQ(both.local().get(pushed->id).get()->spec, spec);
  EXPECT_EQ(both.remote().get(pushed->id)->spec, spec);
  const auto again = both.remote().push(spec);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->outcome, push_receipt::fate::duplicate);
  EXPECT_EQ(again->id, pushed->id);
}

TEST(ClientAndServer, BytesAreUnchanged) {
  served_engine both;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const payload args{bytes, content_type::bytes};
  const auto pushed = both.remote().push({.kind = "k", .args = args});
  const auto leased = both.remote().lease({});
  ASSERT_TRUE(leased) << leased.error().message;
  EXPECT_EQ(leased->front().job->spec.args, args);
  EXPECT_TRUE(both.remote().ack(leased->front().ref(), args));
  EXPECT_EQ(both.remote().get(pushed->id)->result, args);
}

TEST(ClientAndServer, AJobGoesThroughItsLife) {
  served_engine both;
  client& c = both.remote();
  const auto id = c.push({.kind = "k", .retry = {.first = 0ms, .jitter = 0}})->id;

  auto leased = c.lease({.max = 3, .worker = "w", .lease_for = 20s});
  ASSERT_TRUE(leased) << leased.error().message;
  ASSERT_EQ(leased->size(), 1U);
  EXPECT_EQ(leased->front().attempt, 1U);
  EXPECT_EQ(c.get(id)->state, job_state::running);
  const auto extended = c.extend(leased->front().ref(), 40s);
  ASSERT_TRUE(extended) << extended.error().message;
  EXPECT_FALSE(extended->cancelled);
  EXPECT_TRUE(c.release(leased->front().ref()));
  EXPECT_EQ(c.extend(leased->front().ref()).error().code, error_code::lease_lost);

  leased = c.lease({});
  const auto failed =
      c.fail(leased->front().ref(), {.type = "oops", .message = "no", .backtrace = "here\nthere"});
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->state, job_state::retrying);

  leased = c.lease({}, deadline::after(10s));
  ASSERT_TRUE(leased) << leased.error().message;
  EXPECT_EQ(leased->front().attempt, 2U);
  auto waiting = c.async_wait(id, deadline::after(30s));
  EXPECT_TRUE(c.ack(leased->front().ref(), payload{R"({"ok":true})"}));
  const auto ended = waiting.get();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->state, job_state::done);
  EXPECT_EQ(ended->result, payload{R"({"ok":true})"});
  ASSERT_EQ(ended->errors.size(), 1U);
  EXPECT_EQ(ended->errors[0].backtrace, "here\nthere");

  EXPECT_EQ(c.cancel(id).error().code, error_code::wrong_state);
  EXPECT_TRUE(c.remove(id));
  EXPECT_EQ(c.get(id).error().code, error_code::not_found);
  EXPECT_EQ(c.remove(id).error().code, error_code::not_found);
}

TEST(ClientAndServer, ManyArePushedAndAckedTogether) {
  served_engine both;
  client& c = both.remote();
  std::vector<job_spec> specs(100, {.kind = "k"});
  specs[50].kind = "";  // invalid
  const auto pushed = c.push_many(specs);
  ASSERT_EQ(pushed.size(), 100U);
  EXPECT_EQ(pushed[50].error().code, error_code::invalid);
  EXPECT_TRUE(pushed[51]);
  const auto none = c.push_many(specs, bulk::all_or_nothing);
  ASSERT_EQ(none.size(), 100U);
  for (const auto& r : none) EXPECT_FALSE(r);
  EXPECT_EQ(c.queue("default")->counts.ready, 99U);

  const auto leased = c.lease({.max = 1000});
  ASSERT_EQ(leased->size(), 99U);
  std::vector<ack_item> acks;
  for (const auto& j : *leased) acks.push_back({j.ref(), {}});
  acks.push_back({lease_ref{1, 12345}, {}});
  const auto acked = c.ack_many(acks);
  ASSERT_EQ(acked.size(), 100U);
  EXPECT_TRUE(acked[0]);
  EXPECT_EQ(acked[99].error().code, error_code::lease_lost);
  EXPECT_EQ(c.stats()->acked, 99U);
}

TEST(ClientAndServer, QueuesAreConfiguredPausedListedAndPurged) {
  served_engine both;
  client& c = both.remote();
  const auto made =
      c.configure("q/1", {.capacity_jobs = 3, .when_full = overflow::reject, .keep_results = 5s});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->options.capacity_jobs, 3U);
  EXPECT_EQ(made->options.keep_results, 5s);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(c.push({.queue = "q/1", .kind = "k"}));
  EXPECT_EQ(c.push({.queue = "q/1", .kind = "k"}).error().code, error_code::queue_full);
  EXPECT_TRUE(c.configure("q/1", {.paused = true})->options.paused);
  EXPECT_EQ(c.lease({.queues = {"q/1"}}, deadline::after(20ms)).error().code,
            error_code::timed_out);
  EXPECT_EQ(c.queues()->size(), both.local().queues().size());
  EXPECT_EQ(c.purge("q/1").value(), 3U);
  EXPECT_EQ(c.queue("q/1")->counts.unfinished(), 0U);
  EXPECT_EQ(c.queue("none").error().code, error_code::not_found);
}

TEST(ClientAndServer, JobsAreListedPageByPage) {
  served_engine both;
  client& c = both.remote();
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(c.push({.kind = i % 2 == 0 ? "even" : "odd"}));
  std::vector<job_id> seen;
  list_request request{.queue = "default", .state = job_state::ready, .kind = "even", .limit = 4};
  for (int pages = 0; pages < 100; ++pages) {
    const auto page = c.list(request);
    ASSERT_TRUE(page) << page.error().message;
    for (const job& j : page->jobs) seen.push_back(j.id);
    if (!page->cursor) break;
    request.after = *page->cursor;
  }
  EXPECT_EQ(seen.size(), 13U);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST(ClientAndServer, APushWaitsForCapacityAndALeaseForAJob) {
  served_engine both;
  client& c = both.remote();
  ASSERT_TRUE(c.configure("q", {.capacity_jobs = 1, .when_full = overflow::block}));
  ASSERT_TRUE(c.push({.queue = "q", .kind = "k"}));
  EXPECT_EQ(c.push({.queue = "q", .kind = "k"}, deadline::after(30ms)).error().code,
            error_code::timed_out);
  auto second = c.async_push({.queue = "q", .kind = "k"}, deadline::after(30s));
  eventually([&] { return both.local().stats().waiting_pushes == 1; });
  const auto first = c.lease({.queues = {"q"}});
  EXPECT_TRUE(c.ack(first->front().ref()));
  EXPECT_TRUE(second.get());

  auto lease = c.async_lease({.queues = {"later"}}, deadline::after(30s));
  eventually([&] { return both.local().stats().waiting_leases == 1; });
  EXPECT_TRUE(c.push({.queue = "later", .kind = "k"}));
  EXPECT_TRUE(lease.get());
}

TEST(ClientAndServer, AStoppedLeaseIsCancelledAtTheServer) {
  served_engine both;
  client& c = both.remote();
  std::stop_source stop;
  auto lease = c.async_lease({}, stop.get_token());
  eventually([&] { return both.local().stats().waiting_leases == 1; });
  stop.request_stop();
  EXPECT_EQ(lease.get().error().code, error_code::stopped);
  eventually([&] { return both.local().stats().waiting_leases == 0; });
  // A job pushed now is delivered to the next lease.
  ASSERT_TRUE(c.push({.kind = "k"}));
  EXPECT_EQ(c.lease({})->front().attempt, 1U);
}

TEST(ClientAndServer, HealthReportsWhyPushesAreRejected) {
  atomic<bool> full{false};
  served_engine both({.before_apply = [&](const transaction&) -> std::optional<error> {
    if (!full.load()) return std::nullopt;
    return error{error_code::disk_full, "the disk is full"};
  }});
  client& c = both.remote();
  EXPECT_TRUE(c.health()->takes_pushes);
  full.store(true);
  EXPECT_EQ(c.push({.kind = "k"}).error().code, error_code::disk_full);
  eventually([&] {
    const auto now = c.health();
    return now && !now->takes_pushes && now->code == error_code::disk_full;
  });
  full.store(false);
  eventually([&] { return c.health()->takes_pushes; });
  EXPECT_TRUE(c.push({.kind = "k"}));
}

TEST(ClientAndServer, ContinuesWithARestartedServer) {
  served_engine both;
  client& c = both.remote();
  ASSERT_TRUE(c.push({.kind = "k"}));
  both.stop_server();
  EXPECT_EQ(c.push({.kind = "k"}).error().code, error_code::unavailable);
  both.start_server();
  EXPECT_TRUE(c.push({.kind = "k"}));
}

TEST(ClientAndServer, ManyThreadsShareOneClient) {
  constexpr int threads = 8;
  constexpr int each = 200;
  served_engine both;
  std::vector<std::jthread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        const auto pushed = both.remote().push({.kind = "k"});
        ASSERT_TRUE(pushed) << pushed.error().message;
      }
    });
  }
  running.clear();
  EXPECT_EQ(both.remote().queue("default")->counts.ready,
            static_cast<std::uint64_t>(threads * each));
}

}  // namespace
}  // namespace sluice::jobs::client_and_server_test
