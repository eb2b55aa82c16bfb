// An exception of work on an executor is reported to the executor, once, unless it was read.

#include "sluice/future/detail/unread_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"

namespace sluice::testing::unread_error_test {
namespace {

using namespace std::chrono_literals;

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

[[noreturn]] int fails() { throw std::runtime_error("no ink"); }
task<int> failing_task() { co_return fails(); }
struct rare_error {};

class unread_error_test : public ::testing::Test {
 protected:
  using texts = std::vector<std::string>;
  texts reported;
  manual_executor ex{{.name = "press", .on_error = [this](const std::exception_ptr& error) {
                        reported.push_back(text_of(error));
                      }}};
};

TEST_F(unread_error_test, OfADroppedAsync) {
  (void)async(ex, fails);
  ex.run_all();
  EXPECT_EQ(reported, texts{"no ink"});
}

TEST_F(unread_error_test, OfADroppedSpawn) {
  (void)spawn(ex, failing_task());
  ex.run_all();
  EXPECT_EQ(reported, texts{"no ink"});
}

TEST_F(unread_error_test, OfAnEveryWhoseFutureWasDropped) {
  manual_clock time;
  (void)every(1s, ex, [] { fails(); }, {time});
  ex.run_all();
  time.advance(1s);
  ex.run_all();
  EXPECT_EQ(reported, texts{"no ink"});
}

TEST_F(unread_error_test, OfAFutureThatIsDroppedWhenItIsReady) {
  auto a = std::make_optional(async(ex, fails));
  auto s = std::make_optional(spawn(ex, failing_task()));
  ex.run_all();
  EXPECT_EQ(reported, texts{}) << "it may still be read";
  EXPECT_TRUE(a->is_ready());
  a.reset();
  s.reset();
  EXPECT_EQ(reported, (texts{"no ink", "no ink"}));
}

TEST_F(unread_error_test, OfAFunctionInAChain) {
  (void)async(ex, [] { return 1; }).then([](int) { return fails(); });
  (void)async(ex, [] { return 1; }).and_then([](int) -> future<int> { fails(); });
  ex.run_all();
  EXPECT_EQ(reported, (texts{"no ink", "no ink"}));
}

TEST_F(unread_error_test, GoesAlongAChainAndIsReportedOnce) {
  (void)async(ex, fails)
      .then([](int n) { return n; })
      .recover([](const rare_error&) { return 0; })
      .finally([] {})
      .with_timeout(1h);
  (void)when_all(async(ex, fails), async(ex, [] { return 1; }));
  ex.run_all();
  EXPECT_EQ(reported, (texts{"no ink", "no ink"}));
}

TEST_F(unread_error_test, IsNotReportedWhenItWasRead) {
  auto thrown = async(ex, fails);
  auto awaited = spawn(ex, failing_task());
  auto recovered = async(ex, fails).recover([] { return 0; });
  auto handled = async(ex, fails).handle([](const settled<int>&) { return 0; });
  auto all = when_all_settled(async(ex, fails), spawn(ex, failing_task()));
  auto any = when_any(async(ex, fails), make_ready_future<int>(1));
  shared_future<int> shared(async(ex, fails));
  ex.run_all();
  EXPECT_THROW(thrown.get(), std::runtime_error);
  EXPECT_THROW((void)awaited.try_get(), std::runtime_error);
  EXPECT_EQ(recovered.get(), 0);
  EXPECT_EQ(handled.get(), 0);
  (void)all.get();
  EXPECT_THROW(shared.get(), std::runtime_error);
  EXPECT_THROW(shared.get(), std::runtime_error);
  shared = {};
  EXPECT_EQ(reported, texts{});
  (void)any.get();
}

TEST_F(unread_error_test, OfAChildOfAScopeIsThrownByItsJoin) {
  scope s(ex);
  (void)s.spawn(failing_task());
  s.start([] { fails(); });
  ex.run_all();
  EXPECT_THROW(s.join(), std::runtime_error);
  EXPECT_EQ(reported, texts{});
}

TEST_F(unread_error_test, OfASharedFutureWithoutReaders) {
  {
    shared_future<int> shared(async(ex, fails));
    ex.run_all();
  }
  EXPECT_EQ(reported, texts{"no ink"});
}

// The library ended it: no function has failed.
TEST_F(unread_error_test, IsNoCancelledNorRefusedNorDroppedWork) {
  auto cancelled = spawn(ex, failing_task());
  cancelled.cancel();
  { const auto gone = std::move(cancelled); }
  (void)spawn(ex, [](clock& time) -> task<> {
    auto f = after(1h, time);
    f.cancel();
    co_await std::move(f);  // throws future_error::cancelled
  }(real_clock()));
  ex.run_all();
  (void)async(ex, fails);
  ex.close();
  (void)async(ex, fails);
  (void)spawn(ex, failing_task());
  promise<int> broken;
  (void)broken.get_future().via(ex).then([](int n) { return n; });
  { const auto gone = std::move(broken); }
  ex.run_all();
  EXPECT_EQ(reported, texts{"no ink"}) << "that of the async that ran";
}

TEST_F(unread_error_test, IsWrittenToStandardErrorWithoutOnError) {
  ::testing::internal::CaptureStderr();
  inline_executor here;
  (void)async(here, fails);
  manual_executor plain({.name = "plain"});
  (void)spawn(plain, failing_task());
  plain.run_all();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: a function submitted to executor 'inline' threw: no ink\n"
            "sluice: a function submitted to executor 'plain' threw: no ink\n");
}

TEST(unread_error_end_test, GoesToStandardErrorWhenTheExecutorHasEnded) {
  int calls = 0;
  std::optional<future<int>> f;
  {
    thread_pool pool(
        {.core = 1, .on_error = [&](const std::exception_ptr&) { ++calls; }, .name = "io"});
    f = spawn(pool, failing_task());
  }
  ::testing::internal::CaptureStderr();
  f.reset();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: a function submitted to executor 'io' threw: no ink\n");
  EXPECT_EQ(calls, 0) << "its captures may be destroyed";
}

TEST(unread_error_end_test, BothAreReportedWhenOnErrorThrows) {
  manual_executor ex({.name = "press", .on_error = [](const std::exception_ptr&) {
                        throw std::runtime_error("log is full");
                      }});
  (void)async(ex, fails);
  ::testing::internal::CaptureStderr();
  ex.run_all();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: a function submitted to executor 'press' threw: no ink\n"
            "sluice: on_error of 'press' threw: log is full\n");
}

// Failed futures are dropped on one thread while their pool ends on another.
TEST(unread_error_end_test, IsReportedOnceWhileThePoolEnds) {
  ::testing::internal::CaptureStderr();
  std::size_t calls = 0;
  std::size_t futures = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<future<int>> failed;
    std::jthread drops;
    atomic<std::size_t> unread{0};
    {
      thread_pool pool({.core = 1, .on_error = [&](const std::exception_ptr&) { ++unread; }});
      for (int i = 0; i < 8; ++i) failed.push_back(spawn(pool, failing_task()));
      pool.drain();
      futures += failed.size();
      drops = std::jthread([&] { failed.clear(); });
    }
    drops.join();
    calls += unread.load();
  }
  const auto written = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls + static_cast<std::size_t>(std::ranges::count(written, '\n')), futures);
}

}  // namespace
}  // namespace sluice::testing::unread_error_test
