#include "sluice/future/shared_future.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::shared_future_test {
namespace {

class shared_future_gate {
 public:
  ~shared_future_gate() { open(); }
  status wait(const wait_limits& limits) { return gate_.get(limits); }
  template <class Where>
  static detached await(shared_future_gate& gate, Where&, wait_limits limits, ending& ended) {
    ended.set(co_await gate.gate_.async_get(std::move(limits)));
  }
  void open() { static_cast<void>(open_.try_set_value()); }
  std::size_t waiting() const { return gate_.waiting(); }

 private:
  promise<void> open_;
  shared_future<void> gate_{open_.get_future()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(shared_future, waiting_suite, shared_future_gate);

class shared_future_test : public leak_checked {};

TEST_F(shared_future_test, AllConsumersSeeTheSameValue) {
  promise<tracked> p;
  const shared_future<tracked> shared(p.get_future());
  std::vector<std::jthread> threads;
  std::atomic<const tracked*> seen{nullptr};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, copy = shared] {
      const tracked* const own = &copy.get();
      const tracked* expected = nullptr;
      if (!seen.compare_exchange_strong(expected, own)) {
        EXPECT_EQ(expected, own);
      }
    });
  }
  p.set_value(5);
  threads.clear();
  EXPECT_EQ(shared.get().value, 5);
  EXPECT_TRUE(shared.valid()) << "get does not consume it";
  EXPECT_EQ(shared.try_get().value().get().value, 5);
}

TEST_F(shared_future_test, AllConsumersSeeTheSameError) {
  const shared_future<int> shared(make_failed_future<int>(std::runtime_error("x")));
  EXPECT_THROW(shared.get(), std::runtime_error);
  EXPECT_THROW(shared.get(), std::runtime_error);
  EXPECT_THROW(shared.then([](int n) { return n; }).get(), std::runtime_error);
  EXPECT_THROW(shared.fork().get(), std::runtime_error);
}

TEST_F(shared_future_test, EachThenIsServedInTheOrderOfItsComing) {
  promise<tracked> p;
  std::vector<int> order;
  std::vector<future<int>> results;
  {
    const shared_future<tracked> shared(p.get_future());
    for (int i = 0; i < 3; ++i) {
      results.push_back(shared.then([&order, i](const tracked& t) {
        order.push_back(i);
        return t.value + i;
      }));
    }
  }  // no copy is left, but the attached functions are
  p.set_value(10);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)].get(), 10 + i);
}

TEST_F(shared_future_test, AForkIsAFutureOfACopy) {
  promise<tracked> p;
  const shared_future shared(p.get_future());
  auto a = shared.fork();
  auto b = shared.fork().then([](tracked t) { return t.value + 1; });
  p.set_value(1);
  EXPECT_EQ(a.get().value, 1);
  EXPECT_EQ(b.get(), 2);
  EXPECT_EQ(shared.fork().get().value, 1);
  EXPECT_EQ(shared.get().value, 1);
}

TEST_F(shared_future_test, HoldsVoidAndReferences) {
  const shared_future<void> nothing(make_ready_future());
  nothing.get();
  nothing.fork().get();
  EXPECT_EQ(nothing.then([] { return 1; }).get(), 1);
  int here = 0;
  const shared_future<int&> reference(make_ready_future<int&>(here));
  reference.get() = 3;
  EXPECT_EQ(here, 3);
  EXPECT_EQ(&reference.fork().get(), &here);
  const shared_future<std::unique_ptr<int>> moved(make_ready_future(std::make_unique<int>(1)));
  EXPECT_EQ(*moved.get(), 1) << "a move-only value can be read";
}

detached await_shared(shared_future<tracked> shared, std::vector<std::string>& seen) {
  try {
    seen.push_back(std::to_string((co_await shared).value));
  } catch (const future_error& e) {
    seen.emplace_back(to_string(e.why()));
  }
}

TEST_F(shared_future_test, ManyCoroutinesAwaitIt) {
  promise<tracked> p;
  std::vector<std::string> seen;
  {
    const shared_future<tracked> shared(p.get_future());
    for (int i = 0; i < 3; ++i) await_shared(shared, seen);
    EXPECT_EQ(shared.waiting(), 3U);
  }
  p.set_value(4);
  EXPECT_EQ(seen, (std::vector<std::string>{"4", "4", "4"}));
}

detached await_with_stop(shared_future<tracked> shared, std::stop_token stop,
                         std::vector<std::string>& seen) {
  auto wait = shared.operator co_await();
  wait.inherit(stop);
  try {
    co_await wait;
  } catch (const future_error& e) {
    seen.emplace_back(to_string(e.why()));
  }
}

TEST_F(shared_future_test, AStopOfAnAwaitingCoroutineEndsItsWaitAlone) {
  promise<tracked> p;
  const auto asked = p.stop_token();
  std::vector<std::string> seen;
  std::stop_source stop;
  await_with_stop(shared_future<tracked>(p.get_future()), stop.get_token(), seen);
  stop.request_stop();
  EXPECT_EQ(seen, std::vector<std::string>{"cancelled"});
  EXPECT_FALSE(asked.stop_requested());
}

TEST_F(shared_future_test, CancelIsForAllAndABranchIsCancelledAlone) {
  promise<int> p;
  const auto asked = p.stop_token();
  const shared_future<int> shared(p.get_future());
  auto branch = shared.then([](int n) { return n; });
  branch.cancel();
  EXPECT_FALSE(asked.stop_requested()) << "the others still use it";
  shared.cancel();
  EXPECT_TRUE(asked.stop_requested());
  p.set_value(1);
  EXPECT_EQ(branch.get(), 1);
}

TEST_F(shared_future_test, ViaIsForTheCopyItReturns) {
  manual_executor later;
  promise<int> p;
  const shared_future<int> shared(p.get_future());
  auto on_executor = shared.via(later).then([](int n) { return n; });
  auto here = shared.then([](int n) { return n; });
  p.set_value(1);
  EXPECT_TRUE(here.is_ready());
  EXPECT_FALSE(on_executor.is_ready());
  later.run_all();
  EXPECT_EQ(on_executor.get(), 1);
}

TEST_F(shared_future_test, ABrokenPromiseReachesAllConsumers) {
  auto p = std::make_unique<promise<int>>();
  const shared_future<int> shared(p->get_future());
  const shared_future<int> copy = shared;
  p.reset();
  EXPECT_THROW(shared.get(), future_error);
  EXPECT_THROW(copy.get(), future_error);
}

TEST_F(shared_future_test, DroppingAllCopiesDropsTheValue) {
  promise<tracked> p;
  { const shared_future<tracked> dropped(p.get_future()); }
  p.set_value(1);
}

TEST(shared_future_DeathTest, UsingAnInvalidOneIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)shared_future<int>().get(), "sluice::shared_future.*to be valid");
  EXPECT_DEATH((void)shared_future<int>(future<int>()), "sluice::shared_future.*a valid future");
}

}  // namespace
}  // namespace sluice::testing::shared_future_test
