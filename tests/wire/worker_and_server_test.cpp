// Workers on a real server: every job is done once, also through outages of the server.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "jobs/worker/worker.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/cpu_time.hpp"
#include "tests/wire/served_engine.hpp"

namespace sluice::jobs::worker_and_server_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;
using testing::served_engine;

TEST(WorkerAndServer, DoesEveryJobOnce) {
  constexpr std::size_t jobs = 5'000;
  served_engine both;
  std::vector<job_spec> specs;
  for (std::size_t i = 0; i < jobs; ++i) specs.push_back({.kind = "count", .args = encode(i)});
  for (const auto& pushed : both.remote().push_many(specs)) ASSERT_TRUE(pushed);
  std::vector<atomic<int>> done(jobs);
  worker w(work_from(both.remote()), {.concurrency = 8, .prefetch = 64});
  w.handle("count", [&](std::size_t i) { done[i].fetch_add(1); });
  w.start();
  eventually([&] { return both.local().stats().acked == jobs; });
  for (const auto& count : done) ASSERT_EQ(count.load(), 1);
  const auto stats = w.stats();
  std::printf("%zu jobs with %llu lease calls and %llu ack calls\n", jobs,
              static_cast<unsigned long long>(stats.lease_calls),
              static_cast<unsigned long long>(stats.ack_calls));
  EXPECT_EQ(w.stop(), status::ok);
}

TEST(WorkerAndServer, IsNotifiedOfACancel) {
  manual_time time;
  served_engine both({}, {.time = &time});
  event begun;
  atomic<stop_reason> why{stop_reason::none};
  worker w(work_from(both.remote()), {.lease_for = 30s, .time = &time});
  w.handle("long", [&](job_context& ctx) {
    event stopped;
    const std::stop_callback on_stop(ctx.stop_token(), [&] { stopped.set(); });
    begun.set();
    stopped.wait();
    why.store(ctx.why_stopped());
    throw std::runtime_error("stopped");
  });
  w.start();
  const auto id = both.remote().push({.kind = "long"})->id;
  begun.wait();
  ASSERT_TRUE(both.remote().cancel(id));
  time.advance(10s);  // the heartbeat
  eventually([&] { return why.load() != stop_reason::none; });
  EXPECT_EQ(why.load(), stop_reason::cancelled);
  EXPECT_EQ(both.remote().wait(id, deadline::after(30s))->state, job_state::cancelled);
}

TEST(WorkerAndServer, ReportsResultsToARestartedServer) {
  served_engine both;
  event begun;
  event go;
  atomic<int> unavailable{0};
  atomic<int> back{0};
  worker w(work_from(both.remote()),
           {.concurrency = 2,
            .backoff_first = 5ms,
            .backoff_longest = 50ms,
            .on_event = [&](const worker_event& e) {
              if (e.kind == worker_event::event_kind::source_unavailable) {
                unavailable.fetch_add(1);
              }
              if (e.kind == worker_event::event_kind::source_back) {
                back.fetch_add(1);
              }
            }});
  w.handle("long", [&] {
    begun.set();
    go.wait();
    return 1;
  });
  w.handle("short", [] { return 2; });
  w.start();
  const auto id = both.remote().push({.kind = "long"})->id;
  begun.wait();
  both.stop_server();
  eventually([&] { return unavailable.load() == 1; });
  go.set();
  eventually([&] { return w.stats().unsettled == 1; });
  both.start_server();
  const auto ended = both.remote().wait(id, deadline::after(30s));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->result, payload{"1"});
  EXPECT_TRUE(ended->errors.empty());
  const auto next = both.remote().push({.kind = "short"})->id;
  EXPECT_EQ(both.remote().wait(next, deadline::after(30s))->result, payload{"2"});
  EXPECT_EQ(back.load(), 1);
}

TEST(WorkerAndServer, UsesNoCpuWhileThereIsNoJob) {
  served_engine both;
  std::vector<std::unique_ptr<worker>> workers;
  for (int i = 0; i < 8; ++i) {
    workers.push_back(std::make_unique<worker>(work_from(both.remote())));
    workers.back()->start();
  }
  eventually([&] { return both.local().stats().waiting_leases == 8; });
  EXPECT_LT(sluice::testing::least_cpu_time_while_idle(5ms), 5ms);
}

TEST(WorkerAndServer, LeavesNoLeaseBehindWhenItStops) {
  served_engine both;
  for (int round = 0; round < 20; ++round) {
    worker w(work_from(both.remote()), {.concurrency = 4, .prefetch = 8});
    w.handle("k", [] {});
    w.start();
    std::vector<job_spec> specs(50, {.kind = "k"});
    for (const auto& pushed : both.remote().push_many(specs)) ASSERT_TRUE(pushed);
    EXPECT_EQ(w.stop(), status::ok);
    // The server releases jobs whose delivery was in progress.
    eventually([&] { return both.local().stats().running == 0; });
  }
  worker last(work_from(both.remote()), {.concurrency = 4});
  last.handle("k", [](job_context& ctx) { EXPECT_EQ(ctx.attempt(), 1U); });
  last.start();
  eventually([&] { return both.local().stats().acked == 1000; });
  EXPECT_EQ(both.local().stats().expired, 0U);
}

}  // namespace
}  // namespace sluice::jobs::worker_and_server_test
