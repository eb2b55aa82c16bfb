#include "sluice/future/promise.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/future/testing/tracked.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::promise_test {
namespace {

class promise_test : public leak_checked {};

TEST_F(promise_test, TheFutureMayBeTakenAfterTheValueWasSet) {
  promise<tracked> p;
  p.set_value(1);
  EXPECT_FALSE(p.is_unset());
  EXPECT_EQ(p.get_future().get().value, 1);
}

TEST_F(promise_test, AnUnreadValueIsDestroyed) {
  promise<tracked> p;
  p.set_value(1);
  promise<tracked> never_set;
}

TEST_F(promise_test, TheSecondTryIsRefused) {
  promise<tracked> p;
  auto f = p.get_future();
  EXPECT_TRUE(p.try_set_value(1));
  EXPECT_FALSE(p.try_set_value(2));
  EXPECT_FALSE(p.try_set_exception(std::make_exception_ptr(1)));
  EXPECT_EQ(f.get().value, 1);
  EXPECT_FALSE(p.try_set_value(3)) << "also after the value was taken";
}

TEST_F(promise_test, OfManyThreadsThatSetItExactlyOneSucceeds) {
  stress run;
  for (int round = 0; round < 500; ++round) {
    promise<tracked> p;
    auto f = p.get_future();
    std::atomic<int> winner{-1};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
          if (p.try_set_value(i)) {
            EXPECT_EQ(winner.exchange(i), -1);
          }
        });
      }
    }
    EXPECT_EQ(f.get().value, winner.load());
    run.did(4);
  }
}

TEST_F(promise_test, AConstructorThatThrowsLeavesItUnset) {
  struct picky {
    explicit picky(int n) {
      if (n < 0) throw std::invalid_argument("negative");
    }
  };
  promise<picky> p;
  auto f = p.get_future();
  EXPECT_THROW(p.set_value(-1), std::invalid_argument);
  EXPECT_TRUE(p.is_unset());
  EXPECT_FALSE(f.is_ready());
  p.set_value(1);
  f.get();
}

TEST_F(promise_test, AMovedPromiseIsTheSamePromise) {
  promise<std::string> p;
  auto f = p.get_future();
  promise<std::string> q = std::move(p);
  EXPECT_FALSE(p.is_unset());
  p = std::move(q);
  p.set_value("moved");
  EXPECT_EQ(f.get(), "moved");
}

TEST_F(promise_test, AssigningOverAnUnsetPromiseBreaksIt) {
  promise<int> p;
  auto f = p.get_future();
  p = promise<int>();
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(promise_test, SetsAggregatesFromBraces) {
  promise<std::vector<int>> p;
  auto f = p.get_future();
  p.set_value({1, 2, 3});
  EXPECT_EQ(f.get().size(), 3U);
}

TEST_F(promise_test, TheTokenIsRequestedByACancelBeforeOrAfterItIsAskedFor) {
  promise<int> before;
  auto f = before.get_future();
  const auto token = before.stop_token();
  EXPECT_FALSE(token.stop_requested());
  f.cancel();
  f.cancel();
  EXPECT_TRUE(token.stop_requested());

  promise<int> after;
  auto g = after.get_future();
  g.cancel();
  EXPECT_TRUE(after.stop_token().stop_requested());
  after.set_value(1);
  EXPECT_EQ(g.get(), 1) << "the producer decides the result";
  EXPECT_FALSE(after.stop_token().stop_possible()) << "empty once it is set";
}

TEST_F(promise_test, ACallbackOfTheTokenMaySetThePromise) {
  promise<int> p;
  auto f = p.get_future();
  const std::stop_callback on_stop(p.stop_token(), [&] {
    p.set_exception(future_error(future_error::cancelled));
  });
  f.cancel();
  EXPECT_TRUE(f.is_ready());
  EXPECT_THROW(f.get(), future_error);
}

// Counts the reported releases.
class gave_count final : public wait_report::observer {
 public:
  void wait_started(wait_report::wait_record&) noexcept override {}
  void wait_ended(wait_report::wait_record&) noexcept override {}
  void took(const wait_report::hold&) noexcept override {}
  void gave(const void*, wait_report::party, std::int64_t) noexcept override { ++times; }
  void used(const void*, wait_report::side, wait_report::party) noexcept override {}
  void destroyed(const void*) noexcept override {}

  int times = 0;
};

TEST_F(promise_test, APromiseWithoutAReportedMakerReportsNoRelease) {
  static gave_count watching;  // an observer must never be destroyed
  watching.times = 0;
  wait_report::observer* const before = wait_report::observe(&watching);
  promise<int> p;
  future<int> f = p.get_future();
  p.set_value(1);
  EXPECT_EQ(f.get(), 1);
  wait_report::observe(before);
  EXPECT_EQ(watching.times, 0);
}

class promise_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(promise_DeathTest, SettingItTwiceIsABrokenContract) {
  const auto twice = [](auto&& again) {
    promise<int> p;
    p.set_value(1);
    again(p);
  };
  EXPECT_DEATH(twice([](auto& p) { p.set_value(2); }), "sluice::promise.*to be set once");
  EXPECT_DEATH(twice([](auto& p) { p.set_exception(std::runtime_error("x")); }),
               "sluice::promise.*to be set once");
}

TEST_F(promise_DeathTest, TakingTheFutureTwiceIsABrokenContract) {
  EXPECT_DEATH(
      {
        promise<int> p;
        auto f = p.get_future();
        auto g = p.get_future();
      },
      "sluice::promise.*its future to be taken only once");
}

TEST_F(promise_DeathTest, SettingNoExceptionIsABrokenContract) {
  EXPECT_DEATH(promise<int>().set_exception(std::exception_ptr()), "an exception");
}

}  // namespace
}  // namespace sluice::testing::promise_test
