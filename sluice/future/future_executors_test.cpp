// Futures over every executor of the library.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::testing::future_executors_test {
namespace {

// An executor, with the thread that runs it if it needs one.
struct on_inline {
  inline_executor on;
};
struct on_manual {
  manual_executor on;
  std::jthread runs{[this] {
    while (on.run_next()) {
    }
  }};
  ~on_manual() { on.close(); }
};
struct on_thread_pool {
  thread_pool on{{.core = 2}};
};
struct on_work_stealing_pool {
  work_stealing_pool on{{.threads = 2}};
};
struct on_strand {
  thread_pool below{{.core = 2}};
  strand on{below};
};

template <class Where>
class future_executors : public leak_checked {
 protected:
  Where where;
  executor& there = where.on;
};
using all_executors =
    ::testing::Types<on_inline, on_manual, on_thread_pool, on_work_stealing_pool, on_strand>;
TYPED_TEST_SUITE(future_executors, all_executors);

TYPED_TEST(future_executors, AChainRunsOnTheExecutorItWasGiven) {
  executor* const on = &this->there;
  const auto look = [on](tracked t) {
    EXPECT_EQ(executor::current(), on);
    return tracked(t.value + 1);
  };
  auto f = async(this->there, [on] {
             EXPECT_EQ(executor::current(), on);
             return tracked(0);
           }).then(look)
               .and_then([on, look](tracked t) {
                 return async(*on, [t = std::move(t)] { return t; }).then(look);
               })
               .then(look);
  EXPECT_EQ(f.get().value, 3);
}

TYPED_TEST(future_executors, ViaBringsAPromiseOfAnotherThreadThere) {
  executor* const on = &this->there;
  promise<int> p;
  auto f = p.get_future().via(this->there).then([on](int n) {
    EXPECT_EQ(executor::current(), on);
    return n + 1;
  });
  std::jthread sets([&] { p.set_value(1); });
  EXPECT_EQ(f.get(), 2);
}

TYPED_TEST(future_executors, AThousandFunctionsAreGathered) {
  std::vector<future<int>> parts;
  for (int i = 0; i < 1000; ++i) parts.push_back(async(this->there, [i] { return i; }));
  auto sum = when_all(std::move(parts)).via(this->there).then([](std::vector<int> values) {
    int total = 0;
    for (const int n : values) total += n;
    return total;
  });
  EXPECT_EQ(sum.get(), 499'500);
}

TYPED_TEST(future_executors, ErrorsReturnToTheCaller) {
  auto f = async(this->there, []() -> int { throw std::runtime_error("there"); });
  EXPECT_THROW(f.get(), std::runtime_error);
}

TEST(future_thread_pool_test, SubmissionsReturnedByStopCanRunOrBreakTheirPromise) {
  event begun;
  event go_on;
  thread_pool pool({.core = 1});
  auto running = async(pool, [&] {
    begun.set();
    go_on.wait();
    return 1;
  });
  begun.wait();
  auto kept = async(pool, [] { return 2; });
  auto dropped = async(pool, [] { return 3; });
  std::jthread opens([&, stop = pool.stop_token()] {
    while (!stop.stop_requested()) std::this_thread::yield();
    go_on.set();
  });
  auto unstarted = pool.stop();
  EXPECT_EQ(running.get(), 1);
  ASSERT_EQ(unstarted.size(), 2U);
  unstarted[0]();
  EXPECT_EQ(kept.get(), 2);
  unstarted.clear();
  EXPECT_THROW(dropped.get(), future_error);
  EXPECT_THROW(async(pool, [] { return 4; }).get(), future_error) << "it is closed";
}

TEST(future_thread_pool_test, AWorkerThatBlocksInGetIsAWaitOfTheLibrary) {
  thread_pool pool({.core = 2});
  auto outer = async(pool, [&] { return async(pool, [] { return 1; }).get() + 1; });
  EXPECT_EQ(outer.get(), 2);
}

}  // namespace
}  // namespace sluice::testing::future_executors_test
