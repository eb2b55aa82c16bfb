#include "sluice/future/when_all.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "sluice/future/testing/tracked.hpp"

namespace sluice::testing::when_all_test {
namespace {

class when_all_test : public leak_checked {
 protected:
  // A number of promises, and a vector of their futures.
  template <class T>
  static std::vector<future<T>> futures_of(std::vector<promise<T>>& promises) {
    std::vector<future<T>> futures;
    for (auto& p : promises) futures.push_back(p.get_future());
    return futures;
  }
};

TEST_F(when_all_test, GivesTheValuesInTheOrderOfTheFutures) {
  std::vector<promise<tracked>> promises(3);
  auto all = when_all(futures_of(promises));
  promises[2].set_value(2);
  promises[0].set_value(0);
  EXPECT_FALSE(all.is_ready());
  promises[1].set_value(1);
  const auto values = all.get();
  ASSERT_EQ(values.size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)].value, i);
}

TEST_F(when_all_test, GivesATupleOfDifferentTypes) {
  int here = 0;
  auto all = when_all(make_ready_future(1), make_ready_future(), make_ready_future<int&>(here),
                      make_ready_future(std::make_unique<std::string>("x")));
  auto [number, nothing, reference, text] = all.get();
  EXPECT_EQ(number, 1);
  EXPECT_EQ(nothing, std::monostate{});
  EXPECT_EQ(&reference.get(), &here);
  EXPECT_EQ(*text, "x");
}

TEST_F(when_all_test, OfVoidsIsAFutureOfVoid) {
  std::vector<promise<void>> promises(3);
  future<void> all = when_all(futures_of(promises));
  for (auto& p : promises) p.set_value();
  all.get();
}

TEST_F(when_all_test, OfReferencesGivesThem) {
  int here = 1;
  std::vector<future<int&>> futures;
  futures.push_back(make_ready_future<int&>(here));
  when_all(std::move(futures)).get()[0].get() = 2;
  EXPECT_EQ(here, 2);
}

TEST_F(when_all_test, OfNoneIsCompleteAndEmpty) {
  EXPECT_TRUE(when_all(std::vector<future<int>>()).get().empty());
  when_all(std::vector<future<void>>()).get();
  EXPECT_EQ(when_all().get(), std::tuple<>());
  EXPECT_TRUE(when_all_settled(std::vector<future<int>>()).get().empty());
  EXPECT_EQ(when_all_settled().get(), std::tuple<>());
}

TEST_F(when_all_test, FailsAtOnceWithTheFirstFailureAndCancelsTheRest) {
  std::vector<promise<tracked>> promises(4);
  std::vector<std::stop_token> asked;
  for (auto& p : promises) asked.push_back(p.stop_token());
  auto all = when_all(futures_of(promises));
  promises[3].set_value(3);
  promises[1].set_exception(std::runtime_error("first"));
  EXPECT_TRUE(all.is_ready());
  EXPECT_TRUE(asked[0].stop_requested());
  EXPECT_TRUE(asked[2].stop_requested());
  EXPECT_FALSE(asked[1].stop_requested()) << "that producer has ended already";
  promises[0].set_exception(std::logic_error("second"));
  EXPECT_THROW(all.get(), std::runtime_error);
  promises[2].set_value(2);  // too late, and destroyed
}

TEST_F(when_all_test, InputsThatEndInTheCallbackOfACancelAreTakenIn) {
  std::vector<promise<tracked>> promises(3);
  std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> callbacks;
  for (auto& p : promises) {
    callbacks.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(
        p.stop_token(), [&p] { p.set_exception(future_error(future_error::cancelled)); }));
  }
  auto all = when_all(futures_of(promises));
  promises[1].set_exception(std::runtime_error("first"));
  EXPECT_THROW(all.get(), std::runtime_error);
  EXPECT_FALSE(promises[0].is_unset());
  EXPECT_FALSE(promises[2].is_unset());
}

TEST_F(when_all_test, CancellingTheResultCancelsEveryInput) {
  std::vector<promise<int>> promises(3);
  std::vector<std::stop_token> asked;
  for (auto& p : promises) asked.push_back(p.stop_token());
  auto all = when_all(futures_of(promises)).then([](std::vector<int> v) { return v.size(); });
  all.cancel();
  for (auto& each : asked) EXPECT_TRUE(each.stop_requested());
  for (auto& p : promises) p.set_value(1);
  EXPECT_EQ(all.get(), 3U);
}

TEST_F(when_all_test, OfFuturesThatAreReadyIsReady) {
  std::vector<future<int>> futures;
  for (int i = 0; i < 1000; ++i) futures.push_back(make_ready_future(i));
  auto all = when_all(std::move(futures));
  EXPECT_TRUE(all.is_ready());
  EXPECT_EQ(all.get()[999], 999);
  auto failed = when_all(make_ready_future(1), make_failed_future<int>(std::runtime_error("x")),
                         make_failed_future<int>(std::logic_error("y")));
  EXPECT_THROW(failed.get(), std::runtime_error);
}

TEST_F(when_all_test, DroppedResultsDropTheirValues) {
  std::vector<promise<tracked>> promises(3);
  { auto dropped = when_all(futures_of(promises)); }
  for (auto& p : promises) EXPECT_FALSE(p.stop_token().stop_requested());
  for (auto& p : promises) p.set_value(1);
}

TEST_F(when_all_test, ABrokenPromiseAmongManyIsTheFailure) {
  std::vector<promise<int>> promises(2);
  auto all = when_all(futures_of(promises));
  promises.pop_back();
  EXPECT_THROW(all.get(), future_error);
}

TEST_F(when_all_test, NestsAndChains) {
  std::vector<future<std::vector<int>>> rows;
  for (int row = 0; row < 3; ++row) {
    std::vector<future<int>> cells;
    for (int i = 0; i < 3; ++i) {
      cells.push_back(make_ready_future(i).then([row](int n) { return row * 3 + n; }));
    }
    rows.push_back(when_all(std::move(cells)));
  }
  EXPECT_EQ(when_all(std::move(rows)).get()[2][1], 7);
}

TEST_F(when_all_test, AMoveThatThrowsWhileTheyAreGatheredIsTheResult) {
  std::vector<promise<throwing_move>> promises(2);
  auto all = when_all(futures_of(promises));
  promises[0].set_value(0);
  throwing_move::armed = true;
  promises[1].set_value(1);
  throwing_move::armed = false;
  EXPECT_THROW(all.get(), std::runtime_error);
}

TEST_F(when_all_test, SettledWaitsForAllAndReturnsEachResult) {
  std::vector<promise<tracked>> promises(3);
  std::vector<std::stop_token> asked;
  for (auto& p : promises) asked.push_back(p.stop_token());
  auto all = when_all_settled(futures_of(promises));
  promises[1].set_exception(std::runtime_error("one"));
  EXPECT_FALSE(all.is_ready());
  EXPECT_FALSE(asked[0].stop_requested()) << "no input is cancelled";
  promises[0].set_value(0);
  promises[2].set_value(2);
  const auto results = all.get();
  EXPECT_EQ(results[0].value().value, 0);
  EXPECT_STREQ(results[1].error_as<std::runtime_error>()->what(), "one");
  EXPECT_EQ(results[2].value().value, 2);

  auto [number, nothing] = when_all_settled(make_ready_future(1),
                                            make_failed_future<void>(std::logic_error("l"))).get();
  EXPECT_EQ(number.value(), 1);
  EXPECT_THROW(nothing.value(), std::logic_error);
}

TEST(when_all_DeathTest, AnInvalidInputIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)when_all(make_ready_future(1), future<int>()), "valid futures");
}

}  // namespace
}  // namespace sluice::testing::when_all_test
