// Workers on a real engine with an in-memory store: behaviour that a fake source cannot show.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "jobs/worker/process.hpp"
#include "jobs/worker/worker.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/cpu_time.hpp"

namespace sluice::jobs::worker_engine_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;

struct sum {
  int a = 0;
  int b = 0;

  static constexpr auto fields = std::tuple{field("a", &sum::a), field("b", &sum::b)};
};

class WorkerOnEngine : public ::testing::Test {
 protected:
  std::unique_ptr<engine> engine_ = engine::open(make_memory_store()).value();
};

TEST_F(WorkerOnEngine, DoesAJobAndKeepsItsResult) {
  worker w(work_from(*engine_));
  w.handle("sum", [](const sum& s) { return s.a + s.b; });
  w.start();
  const auto pushed = engine_->push({.kind = "sum", .args = encode(sum{1, 2})}).get();
  ASSERT_TRUE(pushed) << pushed.error().message;
  const auto ended = engine_->wait(pushed->id).get();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->state, job_state::done);
  EXPECT_EQ(decode<int>(*ended->result).value(), 3);
}

TEST_F(WorkerOnEngine, KeepsProgressAndLogsWithTheJob) {
  worker w(work_from(*engine_));
  w.handle("k", [](job_context& ctx) {
    ctx.log("first");
    ctx.progress(50, "half");
    ctx.log("second");
    ctx.progress(100);
    return 1;
  });
  w.start();
  const auto pushed = engine_->push({.kind = "k"}).get();
  const auto ended = engine_->wait(pushed->id).get();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->progress, (progress{100, ""}));
  const auto page = engine_->logs(pushed->id).get();
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->lines.size(), 2U);
  EXPECT_EQ(page->lines[0].text, "first");
  EXPECT_EQ(page->lines[1].text, "second");
  EXPECT_EQ(page->lines[1].attempt, 1U);
}

TEST_F(WorkerOnEngine, RetriesFailedJobsAndKeepsEveryError) {
  worker w(work_from(*engine_));
  w.handle("flaky", [](job_context& ctx) {
    if (ctx.attempt() < 3) throw std::runtime_error("attempt " + std::to_string(ctx.attempt()));
    return ctx.attempt();
  });
  w.start();
  const auto pushed =
      engine_->push({.kind = "flaky", .retry = {.first = 1ms, .longest = 1ms}}).get();
  const auto ended = engine_->wait(pushed->id).get();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->state, job_state::done);
  ASSERT_EQ(ended->errors.size(), 2U);
  EXPECT_EQ(ended->errors[1].message, "attempt 2");
  EXPECT_EQ(ended->errors[1].type, "std::runtime_error");
}

TEST_F(WorkerOnEngine, ReceivesACancelThroughItsHeartbeat) {
  manual_time time;
  const auto held = engine::open(make_memory_store(), {.time = &time}).value();
  event begun;
  atomic<stop_reason> why{stop_reason::none};
  worker w(work_from(*held), {.lease_for = 30s, .time = &time});
  w.handle("long", [&](job_context& ctx) {
    event stopped;
    const std::stop_callback on_stop(ctx.stop_token(), [&] { stopped.set(); });
    begun.set();
    stopped.wait();
    why.store(ctx.why_stopped());
    throw std::runtime_error("stopped");
  });
  w.start();
  const auto pushed = held->push({.kind = "long"}).get();
  begun.wait();
  ASSERT_TRUE(held->cancel(pushed->id).get());
  time.advance(10s);  // the heartbeat
  eventually([&] { return why.load() != stop_reason::none; });
  EXPECT_EQ(why.load(), stop_reason::cancelled);
  EXPECT_EQ(held->wait(pushed->id).get()->state, job_state::cancelled);
}

TEST_F(WorkerOnEngine, ReleasesAtShutdownAJobThatAnotherWorkerThenDoes) {
  const auto pushed = engine_->push({.kind = "long", .keep_for = 1h}).get();
  event begun;
  {
    worker first(work_from(*engine_));
    first.handle("long", [&](job_context& ctx) {
      event stopped;
      const std::stop_callback on_stop(ctx.stop_token(), [&] { stopped.set(); });
      begun.set();
      stopped.wait();
      throw std::runtime_error("stopped");
    });
    first.start();
    begun.wait();
    EXPECT_EQ(first.stop(deadline::after(0s)), status::timed_out);
  }
  worker second(work_from(*engine_));
  second.handle("long", [](job_context& ctx) { return ctx.attempt(); });
  second.start();
  const auto ended = engine_->wait(pushed->id).get();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->result, payload{"1"});  // the attempt was not counted
  EXPECT_TRUE(ended->errors.empty());
}

TEST_F(WorkerOnEngine, RunsACommandForEachJob) {
  worker w(work_from(*engine_), {.concurrency = 4});
  const auto command = process_command::shell("tr a-z A-Z").value();
  w.handle_others([command](job_context& ctx) { return command.run(ctx); });
  w.start();
  std::vector<job_id> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(
        engine_->push({.kind = "any", .args = encode("word " + std::to_string(i))}).get()->id);
  }
  for (int i = 0; i < 20; ++i) {
    const auto ended = engine_->wait(ids[static_cast<std::size_t>(i)]).get();
    ASSERT_TRUE(ended);
    EXPECT_EQ(decode<std::string>(*ended->result).value(), "WORD " + std::to_string(i));
  }
}

TEST_F(WorkerOnEngine, UsesNoCpuWhileIdle) {
  event begun;
  event go;
  worker idle(work_from(*engine_), {.queues = {"nothing"}, .concurrency = 4});
  idle.start();
  worker busy(work_from(*engine_), {.concurrency = 1, .prefetch = 4});
  busy.handle("long", [&] {
    begun.set();
    go.wait();
  });
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(engine_->push({.kind = "long"}).get());
  busy.start();
  begun.wait();
  eventually([&] { return busy.stats().waiting == 4; });
  EXPECT_LT(sluice::testing::least_cpu_time_while_idle(5ms), 5ms);
  go.set();
  eventually([&] { return busy.stats().succeeded == 8; });
}

TEST_F(WorkerOnEngine, DoesEveryJobOnceWhileWorkersComeAndGo) {
  constexpr std::size_t jobs = 20'000;
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 20'260'115);
  std::vector<atomic<int>> done(jobs);
  std::vector<job_spec> specs;
  for (std::size_t i = 0; i < jobs; ++i) {
    specs.push_back({.kind = i % 2 == 0 ? "plain" : "coroutine", .args = encode(i)});
  }
  for (const auto& pushed : engine_->push_many({specs.begin(), specs.begin() + jobs / 2}).get()) {
    ASSERT_TRUE(pushed);
  }
  for (const auto& pushed : engine_->push_many({specs.begin() + jobs / 2, specs.end()}).get()) {
    ASSERT_TRUE(pushed);
  }
  const auto start = [&](std::size_t concurrency, std::size_t prefetch) {
    auto w = std::make_unique<worker>(
        work_from(*engine_), worker_options{.concurrency = concurrency, .prefetch = prefetch});
    w->handle("plain", [&](std::size_t i) { done[i].fetch_add(1); });
    w->handle("coroutine", [&](const std::size_t& i) -> task<> {
      co_await this_task::yield();
      done[i].fetch_add(1);
    });
    w->start();
    return w;
  };
  // One worker runs throughout; others are started and stopped repeatedly.
  const auto steady = start(4, 16);
  random dice(seed);
  int rounds = 0;
  std::uint64_t others = 0;
  while (engine_->stats().acked < jobs && rounds < 200) {
    const auto passing = start(1 + dice.below(8), dice.below(32));
    const auto enough = others + 1 + dice.below(200);
    eventually([&] {
      return passing->stats().succeeded >= enough - others || engine_->stats().acked == jobs;
    });
    EXPECT_EQ(passing->stop(), status::ok);
    others += passing->stats().succeeded;
    EXPECT_EQ(passing->stats().lost, 0U);
    ++rounds;
  }
  eventually([&] { return engine_->stats().acked == jobs; });
  for (const auto& count : done) ASSERT_EQ(count.load(), 1);
  EXPECT_EQ(engine_->stats().running, 0U);
  std::printf("%zu jobs, %d workers started and stopped, which did %llu of them, seed %llu\n", jobs,
              rounds, static_cast<unsigned long long>(others),
              static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace sluice::jobs::worker_engine_test
