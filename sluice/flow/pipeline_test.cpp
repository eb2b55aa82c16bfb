#include "sluice/flow/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::pipeline_test {
namespace {

using namespace std::chrono_literals;

// The results of the last stage, from any thread.
template <class T>
class collected {
 public:
  auto add() {
    return [this](T item) {
      const std::lock_guard hold(mutex_);
      items_.push_back(std::move(item));
    };
  }
  std::vector<T> all() const {
    const std::lock_guard hold(mutex_);
    return items_;
  }
  std::size_t size() const {
    const std::lock_guard hold(mutex_);
    return items_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> items_;  // protected by mutex_
};

std::vector<int> up_to(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int same(int n) {
  return n;
}

class pipeline_test : public ::testing::Test {
 protected:
  // A stage that holds selected items until they are released or the pipeline is stopped.
  auto holds(int which) {
    return [this, which](int n) { return hold(n == which || which < 0, n); };
  }
  task<int> hold(bool held, int n) {
    if (!held) co_return n;
    const auto result = co_await gate.async_wait(co_await this_task::stop_token());
    if (!result) throw future_error(future_error::cancelled);
    co_return n;
  }

  thread_pool pool{{.core = 2, .name = "line"}};
  manual_executor manual;
  manual_clock clock;
  event gate;
  collected<int> got;
};

TEST_F(pipeline_test, MovesEveryItemThroughEveryStage) {
  collected<std::string> texts;
  auto line = pipeline<int>::on(pool)
                  .stage("double", [](int n) { return 2 * n; })
                  .stage("print", [](int n) { return std::to_string(n); })
                  .sink("keep", texts.add());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(line.push(i), status::ok);
  line.drain();
  EXPECT_EQ(texts.all(), (std::vector<std::string>{"0", "2", "4", "6", "8"}));
  EXPECT_EQ(line.unprocessed(), 0U);
}

TEST_F(pipeline_test, MovesItemsThatCannotBeCopied) {
  auto line = pipeline<std::unique_ptr<int>>::on(pool)
                  .filter("some", [](const std::unique_ptr<int>& p) { return *p % 2 == 0; })
                  .stage("more",
                         [](std::unique_ptr<int> p) {
                           ++*p;
                           return p;
                         })
                  .sink("keep", [keep = got.add()](std::unique_ptr<int>&& p) mutable { keep(*p); });
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(line.push(std::make_unique<int>(i)));
  line.drain();
  EXPECT_EQ(got.all(), (std::vector{1, 3}));
}

TEST_F(pipeline_test, FiltersAndSplits) {
  auto line = pipeline<int>::on(pool)
                  .filter("odd", [](int n) { return n % 2 == 1 ? std::optional(n) : std::nullopt; })
                  .flat_map("repeat",
                            [](int n) { return std::vector<int>(static_cast<std::size_t>(n), n); })
                  .sink("keep", got.add());
  for (const int i : up_to(6)) EXPECT_TRUE(line.push(i));
  line.drain();
  EXPECT_EQ(got.all(), (std::vector{1, 3, 3, 3, 5, 5, 5, 5, 5}));
  const auto stats = line.stats();
  ASSERT_EQ(stats.size(), 3U);
  EXPECT_EQ(stats[0].in, 6U);
  EXPECT_EQ(stats[0].out, 3U);
  EXPECT_EQ(stats[1].in, 3U);
  EXPECT_EQ(stats[1].out, 9U);
  EXPECT_EQ(stats[2].name, "keep");
  EXPECT_EQ(stats[2].out, 9U);
}

TEST_F(pipeline_test, EveryKindOfStageMayBeATask) {
  const auto later = [](int n) -> task<int> {
    co_await this_task::yield();
    co_return n + 1;
  };
  const auto odd = [](int n) -> task<std::optional<int>> {
    co_await this_task::yield();
    co_return n % 2 == 1 ? std::optional(n) : std::nullopt;
  };
  const auto small = [](const int& n) -> task<bool> {
    co_await this_task::yield();
    co_return n < 8;
  };
  const auto twice = [](int n) -> task<std::vector<int>> {
    co_await this_task::yield();
    co_return std::vector{n, n};
  };
  const auto keep = [this](int n) -> task<> {
    co_await this_task::yield();
    got.add()(n);
  };
  auto line = pipeline<int>::on(pool)
                  .stage("later", later)
                  .filter("odd", odd)
                  .filter("small", small)
                  .flat_map("twice", twice)
                  .sink("keep", keep);
  for (const int i : up_to(10)) EXPECT_TRUE(line.push(i));
  line.drain();
  EXPECT_EQ(got.all(), (std::vector{1, 1, 3, 3, 5, 5, 7, 7}));
}

TEST_F(pipeline_test, OneThreadIsEnoughForManyStages) {
  thread_pool one({.core = 1});
  const stage_options tight{.capacity = 1};
  auto line = pipeline<int>::on(one)
                  .stage("1", same, tight)
                  .stage("2", same, {.parallelism = 3, .capacity = 1, .ordered = true})
                  .stage("3", same, tight)
                  .flat_map(
                      "4",
                      [](int n) {
                        return std::vector{n, n, n};
                      },
                      tight)
                  .stage("5", same, tight)
                  .stage("6", same, {.parallelism = 2, .capacity = 1, .ordered = true})
                  .sink("7", got.add(), tight);
  for (const int i : up_to(500)) ASSERT_TRUE(line.push(i));
  line.drain();
  EXPECT_EQ(got.size(), 1'500U);
  EXPECT_TRUE(std::ranges::is_sorted(got.all()));
}

TEST_F(pipeline_test, RunsOnEveryExecutor) {
  {
    auto line = pipeline<int>::on(manual).stage("same", same).sink("keep", got.add());
    for (const int i : up_to(3)) EXPECT_TRUE(line.push(i));
    line.close();
    EXPECT_FALSE(line.has_ended());
    manual.run_all();
    EXPECT_TRUE(line.has_ended());
    EXPECT_EQ(got.size(), 3U);
  }
  inline_executor here;
  auto line = pipeline<int>::on(here).stage("same", same).sink("keep", got.add());
  EXPECT_TRUE(line.push(3));
  EXPECT_EQ(got.size(), 4U) << "at once, on this thread";
  line.drain();
}

// ---- order

TEST_F(pipeline_test, UnorderedAQuickItemPassesASlowOne) {
  auto line =
      pipeline<int>::on(pool).stage("work", holds(0), {.parallelism = 2}).sink("keep", got.add());
  for (const int i : up_to(4)) EXPECT_TRUE(line.push(i));
  eventually([&] { return got.size() == 3; });
  gate.set();
  line.drain();
  EXPECT_EQ(got.all(), (std::vector{1, 2, 3, 0}));
}

TEST_F(pipeline_test, OrderedAQuickItemWaitsForASlowOneWithinTheWindow) {
  auto line = pipeline<int>::on(pool)
                  .stage("work", holds(0), {.parallelism = 2, .ordered = true, .window = 5})
                  .sink("keep", got.add());
  for (const int i : up_to(10)) EXPECT_TRUE(line.push(i));
  eventually([&] { return line.stats()[0].in == 5; });
  eventually([&] { return line.stats()[0].active == 1; });
  EXPECT_EQ(got.size(), 0U);
  EXPECT_EQ(line.stats()[0].in, 5U) << "no further ahead than the window";
  gate.set();
  line.drain();
  EXPECT_EQ(got.all(), up_to(10));
}

TEST_F(pipeline_test, ASkippedItemLeavesNoGapInTheOrder) {
  std::atomic<int> reported{0};
  auto line = pipeline<int>::on(pool)
                  .stage("work",
                         [](int n) {
                           if (n % 3 == 0) throw std::runtime_error("three");
                           return n;
                         },
                         {.parallelism = 4,
                          .ordered = true,
                          .errors = stage_errors::skip,
                          .on_error =
                              [&](const pipeline_error& e) {
                                EXPECT_EQ(e.stage(), "work");
                                ++reported;
                              }})
                  .sink("keep", got.add());
  std::vector<int> expected;
  for (const int i : up_to(100)) {
    EXPECT_TRUE(line.push(i));
    if (i % 3 != 0) expected.push_back(i);
  }
  line.drain();
  EXPECT_EQ(got.all(), expected);
  EXPECT_EQ(line.stats()[0].skipped, 34U);
  EXPECT_EQ(reported, 34);
  EXPECT_EQ(line.unprocessed(), 0U);
}

TEST_F(pipeline_test, AFailedStartHasRunNothing) {
  std::atomic<int> calls{0};
  const auto make_one_that_is_too_large = [&] {
    auto line = pipeline<>::from(pool, "numbers", [&]() -> std::optional<int> { return ++calls; })
                    .stage("work", same, {.parallelism = 4})
                    .sink("too many hands", got.add(),
                          {.parallelism = std::numeric_limits<std::size_t>::max() / 2});
  };
  EXPECT_THROW(make_one_that_is_too_large(), std::length_error);
  EXPECT_EQ(calls, 0) << "the stages before it had not begun";
}

// ---- backpressure

TEST_F(pipeline_test, ASlowStageFillsTheQueuesBeforeItAndThenTheSourceWaits) {
  auto line = pipeline<int>::on(pool)
                  .stage("quick", same, {.capacity = 3})
                  .sink("slow", holds(-1), {.parallelism = 2, .capacity = 4});
  // 2 in the sink, 4 in its queue, 1 in the first stage, 3 in the queue of that.
  for (const int i : up_to(10)) EXPECT_EQ(line.push(int(i), 1min), status::ok);
  eventually([&] {
    const auto now = line.stats();
    return now[0].queued == 3 && now[0].active == 0 && now[1].queued == 4 && now[1].active == 2;
  });
  EXPECT_EQ(line.try_push(10), status::full);
  EXPECT_EQ(line.push(10, 1ms), status::timed_out);
  EXPECT_EQ(line.push(10, std::chrono::steady_clock::now()), status::timed_out);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(line.push(10, source.get_token()), status::stopped);
  std::optional<status> pushed;
  const auto push_one = [](pipeline<int>& target, std::optional<status>& result) -> task<> {
    result = co_await target.async_push(10);
  };
  std::jthread pusher([&] { sync_wait(push_one(line, pushed)); });
  gate.set();
  pusher.join();
  EXPECT_EQ(pushed, status(status::ok));
  line.drain();
  EXPECT_EQ(line.stats()[1].out, 11U);
  EXPECT_EQ(line.push(11), status::closed);
}

// Counts its instances.
class tracked {
 public:
  tracked() { count(); }
  tracked(tracked&&) noexcept { count(); }
  tracked& operator=(tracked&&) noexcept = default;
  ~tracked() { --alive; }
  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> most{0};

 private:
  static void count() {
    const int now = ++alive;
    int seen = most.load();
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
  }
};

TEST_F(pipeline_test, TheItemsInsideAreBoundedForAnySource) {
  tracked::most = 0;
  {
    auto line = pipeline<tracked>::on(pool)
                    .stage("a", [](tracked t) { return t; }, {.parallelism = 2, .capacity = 4})
                    .stage("b", [](tracked t) { return t; },
                           {.parallelism = 2, .capacity = 4, .ordered = true, .window = 4})
                    .sink("slow",
                          [](tracked) {
                            for (int i = 0; i < 100; ++i) std::this_thread::yield();
                          },
                          {.capacity = 4});
    for (int i = 0; i < 3'000; ++i) ASSERT_TRUE(line.push(tracked()));
    line.drain();
  }
  EXPECT_EQ(tracked::alive, 0);
  // 12 in queues, 2 + 4 + 1 in workers and windows, each perhaps twice during a move.
  EXPECT_LE(tracked::most, 40);
}

// ---- sources

TEST_F(pipeline_test, AFunctionMayBeTheSource) {
  int next = 0;
  auto line = pipeline<>::from(pool, "count",
                               [&]() -> std::optional<int> {
                                 return next < 100 ? std::optional(next++) : std::nullopt;
                               })
                  .stage("same", same, {.parallelism = 2, .ordered = true})
                  .sink("keep", got.add());
  line.join();
  EXPECT_EQ(got.all(), up_to(100));
  EXPECT_EQ(line.stats()[0].name, "count");
  EXPECT_EQ(line.stats()[0].out, 100U);
}

TEST_F(pipeline_test, ASourceIsCalledOnlyWhileThereIsCapacity) {
  std::atomic<int> next{0};
  const auto count = [&]() -> task<std::optional<int>> { co_return next++; };
  auto line = pipeline<>::from(pool, "count", [&] {
                return count();
              }).sink("slow", holds(-1), {.capacity = 4});
  eventually([&] { return line.stats()[1].queued == 4; });
  eventually([&] { return next == 6; });  // one in the sink, four in its queue, one in the source
  line.close();
  gate.set();
  line.join();
  EXPECT_EQ(next, 6);
  EXPECT_EQ(line.stats()[1].out, 6U) << "closing loses nothing";
}

TEST_F(pipeline_test, ASourceThatThrowsStopsTheLine) {
  auto line = pipeline<>::from(pool, "read", []() -> std::optional<int> {
                throw std::runtime_error("no such file");
              }).sink("keep", got.add());
  try {
    line.join();
    FAIL();
  } catch (const pipeline_error& e) {
    EXPECT_EQ(e.stage(), "read");
  }
}

// ---- errors

TEST_F(pipeline_test, AnErrorStopsTheLineAndNamesTheStage) {
  auto line = pipeline<int>::on(pool)
                  .stage("parse", same)
                  .stage("check",
                         [](int n) {
                           if (n == 3) throw std::out_of_range("three");
                           return n;
                         })
                  .sink("keep", got.add());
  status result = status::ok;
  int pushed = 0;
  for (; result; ++pushed) {
    ASSERT_LT(pushed, 1'000'000) << "push returns closed after the error";
    result = line.push(pushed);
  }
  EXPECT_EQ(result, status::closed);
  for (int again = 0; again < 2; ++again) {
    try {
      line.join();
      FAIL();
    } catch (const pipeline_error& e) {
      EXPECT_EQ(e.stage(), "check");
      EXPECT_STREQ(e.what(), "sluice: stage 'check' threw: three");
      EXPECT_THROW(e.rethrow_nested(), std::out_of_range);
    }
  }
  const auto stats = line.stats();
  EXPECT_EQ(got.size() + line.unprocessed(), static_cast<std::size_t>(pushed - 1))
      << "each item that was pushed is processed or counted";
  EXPECT_EQ(stats[1].in, stats[1].out + stats[1].undelivered);
  EXPECT_GE(stats[1].undelivered, 1U);
}

TEST_F(pipeline_test, OnlyTheFirstErrorCounts) {
  auto line = pipeline<int>::on(pool).sink(
      "fail", [](int n) { throw std::runtime_error(std::to_string(n)); }, {.parallelism = 4});
  for (const int i : up_to(20)) (void)line.push(i);
  EXPECT_THROW(line.drain(), pipeline_error);
  EXPECT_EQ(line.stats()[0].out, 0U);
}

TEST_F(pipeline_test, AnErrorThatNoJoinHasThrownIsReportedToTheExecutor) {
  std::vector<std::string> messages;
  const auto tell = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const pipeline_error& e) {
      messages.push_back(e.what());
    }
  };
  thread_pool own_pool({.core = 1, .on_error = tell});
  const auto fails = [](int) { throw std::out_of_range("three"); };
  {
    auto line = pipeline<int>::on(own_pool).sink("keep", fails);
    (void)line.push(1);
  }
  EXPECT_EQ(messages, std::vector<std::string>{"sluice: stage 'keep' threw: three"});
  {
    auto line = pipeline<int>::on(own_pool).sink("keep", fails);
    (void)line.push(1);
    EXPECT_THROW(line.drain(), pipeline_error);
  }
  EXPECT_EQ(messages.size(), 1U) << "it was thrown";
}

TEST_F(pipeline_test, BothErrorsAreReportedWhenOnErrorOfAStageThrows) {
  ::testing::internal::CaptureStderr();
  auto line = pipeline<int>::on(pool).sink(
      "keep", [](int) { throw std::out_of_range("three"); },
      {.errors = stage_errors::skip,
       .on_error = [](const pipeline_error&) { throw std::runtime_error("log is full"); }});
  (void)line.push(1);
  line.drain();
  EXPECT_EQ(line.stats()[0].skipped, 1U);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: a function of stage 'keep' threw: three\n"
            "sluice: on_error of stage 'keep' threw: log is full\n");
}

TEST(pipeline_DeathTest, APipelineThatOutlivesItsPoolIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::optional<pipeline<int>> late;
        thread_pool other({.core = 1, .name = "io"});
        late.emplace(pipeline<int>::on(other).sink("keep", [](int) {}));
      },
      "sluice::thread_pool \"io\": .*found 1 pipeline ");
}

// ---- the end

TEST_F(pipeline_test, StoppingCountsTheItemsNotProcessed) {
  auto line = pipeline<int>::on(pool)
                  .stage("work", holds(-1), {.parallelism = 2, .capacity = 8})
                  .sink("keep", got.add());
  for (const int i : up_to(7)) EXPECT_TRUE(line.push(i));
  eventually([&] { return line.stats()[0].active == 2; });
  EXPECT_EQ(line.stop(), 7U) << "2 in stopped workers, and 5 in the queue";
  EXPECT_EQ(got.size(), 0U);
  line.join();  // it has ended, and not by an error
  EXPECT_EQ(line.push(1), status::closed);
}

TEST_F(pipeline_test, AStopTokenStopsTheLine) {
  std::stop_source source;
  auto line = pipeline<int>::on(pool, {.stop = source.get_token()})
                  .stage("work", holds(-1), {.capacity = 8})
                  .sink("keep", got.add());
  for (const int i : up_to(3)) EXPECT_TRUE(line.push(i));
  source.request_stop();
  line.join();
  EXPECT_EQ(line.unprocessed(), 3U);
}

TEST_F(pipeline_test, ADeadlineDrainsFirstAndThenStops) {
  auto line =
      pipeline<int>::on(pool).stage("work", holds(2), {.capacity = 8}).sink("keep", got.add());
  for (const int i : up_to(5)) EXPECT_TRUE(line.push(i));
  std::size_t left = 0;
  std::jthread owner([&] { left = line.shutdown(deadline::after(5s, clock)); });
  eventually([&] { return clock.pending() == 1 && got.size() == 2; });
  clock.advance(5s);
  owner.join();
  EXPECT_EQ(left, 3U);
  EXPECT_EQ(got.all(), (std::vector{0, 1}));

  collected<int> others;
  auto quick = pipeline<int>::on(pool).sink("keep", others.add());
  for (const int i : up_to(5)) EXPECT_TRUE(quick.push(i));
  EXPECT_EQ(quick.shutdown(1min), 0U) << "in time nothing is left";
  EXPECT_EQ(others.size(), 5U);
}

TEST_F(pipeline_test, CanBeAwaited) {
  auto line = pipeline<int>::on(pool).stage("work", holds(1)).sink("keep", got.add());
  for (const int i : up_to(3)) EXPECT_TRUE(line.push(i));
  line.close();
  eventually([&] { return got.size() == 1; });  // the first item is not among the remaining ones
  const auto wait_for = [](pipeline_handle& l, wait_limits limits) -> task<status> {
    co_return co_await l.async_join(std::move(limits));
  };
  EXPECT_EQ(sync_wait(wait_for(line, deadline::after(1ms))), status::timed_out);
  EXPECT_EQ(sync_wait(line.async_shutdown(1ms)), 2U);
  EXPECT_EQ(sync_wait(wait_for(line, {})), status::ok);
}

TEST_F(pipeline_test, TheDestructorDrains) {
  {
    auto line = pipeline<int>::on(pool).sink("keep", got.add());
    for (const int i : up_to(10)) EXPECT_TRUE(line.push(i));
    const auto moved = std::move(line);
  }
  EXPECT_EQ(got.size(), 10U);
}

// ---- counters

TEST_F(pipeline_test, CountsTheTimeOfEachStage) {
  auto line = pipeline<int>::on(manual, {.clock = &clock})
                  .stage("quick",
                         [&](int n) {
                           clock.advance(1ms);
                           return n;
                         })
                  .sink("slow", [&](int) { clock.advance(10ms); }, {.capacity = 1});
  clock.advance(5ms);  // no worker waits for an item yet
  manual.run_all();
  clock.advance(7ms);
  for (const int i : up_to(4)) EXPECT_TRUE(line.push(i));
  line.close();
  manual.run_all();
  const auto stats = line.stats();
  EXPECT_EQ(stats[0].busy, 4ms);
  EXPECT_EQ(stats[1].busy, 40ms);
  EXPECT_GE(stats[0].blocked, 10ms) << "the slow stage blocked it";
  EXPECT_EQ(stats[1].blocked, 0ms);
  EXPECT_EQ(stats[0].idle, 7ms);
  EXPECT_EQ(stats[0].in, 4U);
  EXPECT_EQ(stats[1].in, 4U);
  EXPECT_EQ(stats[1].capacity, 1U);
  EXPECT_EQ(stats[1].active, 0U);
}

// ---- random lines

TEST(pipeline_stress_test, RandomPipelinesLoseNothingAndKeepTheirOrder) {
  stress run;
  for (std::uint64_t round = 0; round < 40; ++round) {
    auto choose = run.generator(round);
    thread_pool pool({.core = 1 + choose.below(4)});
    const bool ordered = choose.below(2) == 0;
    const auto options = [&] {
      stage_options o;
      o.parallelism = 1 + choose.below(4);
      o.capacity = 1 + choose.below(8);
      o.ordered = ordered;
      if (ordered) o.window = o.parallelism + choose.below(5);
      return o;
    };
    const auto wander = [](int n) -> task<int> {
      for (int i = n % 4; i > 0; --i) co_await this_task::yield();
      co_return n * 3;
    };
    collected<int> got;
    auto line = pipeline<int>::on(pool)
                    .stage("wander", wander, options())
                    .filter(
                        "even", [](int n) { return n % 2 == 0; }, options())
                    .flat_map(
                        "twice",
                        [](int n) {
                          return std::vector{n, n + 1};
                        },
                        options())
                    .stage("plain", same, options())
                    .sink("keep", got.add());
    constexpr int items = 400;
    std::vector<int> expected;
    for (int i = 0; i < items; ++i) {
      ASSERT_TRUE(line.push(i));
      if (i % 2 == 0) expected.insert(expected.end(), {i * 3, i * 3 + 1});
    }
    line.drain();
    auto all = got.all();
    if (!ordered) std::ranges::sort(all);
    ASSERT_EQ(all, expected) << "round " << round;
    EXPECT_EQ(line.unprocessed(), 0U);
    run.did(items);
  }
}

TEST(pipeline_stress_test, PipelinesStoppedAtAnyMomentAccountForEveryItem) {
  stress run;
  for (std::uint64_t round = 0; round < 60; ++round) {
    auto choose = run.generator(round);
    thread_pool pool({.core = 1 + choose.below(3)});
    const bool ordered = choose.below(2) == 0;
    std::atomic<int> out{0};
    auto line = pipeline<int>::on(pool)
                    .stage("a", same, {.parallelism = 2, .capacity = 3, .ordered = ordered})
                    .stage("b", same, {.parallelism = 3, .capacity = 2, .ordered = ordered})
                    .sink("c", [&](int) { ++out; }, {.parallelism = 2, .capacity = 2});
    int in = 0;
    const int enough = 1 + static_cast<int>(choose.below(300));
    std::jthread stopper;
    while (line.push(in)) {
      if (++in == enough) stopper = std::jthread([&] { line.request_stop(); });
    }
    const auto left = line.stop();
    EXPECT_EQ(static_cast<std::size_t>(out.load()) + left, static_cast<std::size_t>(in))
        << "round " << round;
    run.did(static_cast<std::uint64_t>(in));
  }
}

// ---- misuse

TEST(pipeline_DeathTest, InvalidOptionsAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  inline_executor here;
  const auto with = [&](stage_options o) {
    pipeline<int>::on(here).sink(
        "keep", [](int) {}, std::move(o));
  };
  EXPECT_DEATH(with({.parallelism = 0}), "sluice::pipeline.*keep.*parallelism of at least 1");
  EXPECT_DEATH(with({.capacity = 0}), "keep.*capacity of at least 1");
  EXPECT_DEATH(with({.parallelism = 4, .ordered = true, .window = 2}), "keep.*a window only when");
  EXPECT_DEATH(
      pipeline<>::from(here, "read", []() -> std::optional<int> { return {}; }, {.parallelism = 2})
          .sink("keep", [](int) {}),
      "read.*a parallelism of 1");
}

TEST(pipeline_DeathTest, WaitingForItInsideItsExecutorIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        thread_pool pool({.core = 1});
        auto line = pipeline<int>::on(pool).sink("keep", [](int) {});
        (void)pool.submit([&] { line.drain(); });
        line.join();
      },
      "sluice::pipeline.*join.*no blocking wait on a thread that its stages need");
}

TEST(pipeline_DeathTest, AStrandOnItsExecutorIsInsideIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const expected_text = "sluice::pipeline.*join.*a thread that its stages need";
  EXPECT_DEATH(
      {
        thread_pool pool({.core = 1});
        strand outer(pool);
        strand inner(outer);
        auto line = pipeline<int>::on(pool).sink("keep", [](int) {});
        (void)inner.submit([&] { line.drain(); });
        line.join();
      },
      expected_text);
  EXPECT_DEATH(
      {
        thread_pool pool({.core = 1});
        strand in_order(pool);
        auto line = pipeline<int>::on(in_order).sink("keep", [](int) {});
        (void)pool.submit([&] { line.drain(); });
        line.join();
      },
      expected_text);
}

}  // namespace
}  // namespace sluice::testing::pipeline_test
