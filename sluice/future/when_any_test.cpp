#include "sluice/future/when_any.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "sluice/future/testing/tracked.hpp"

namespace sluice::testing::when_any_test {
namespace {

class when_any_test : public leak_checked {
 protected:
  // Three promises, the tokens of their producers, and their futures.
  std::vector<future<tracked>> futures() {
    std::vector<future<tracked>> made;
    for (auto& p : promises) {
      asked.push_back(p.stop_token());
      made.push_back(p.get_future());
    }
    return made;
  }
  std::vector<promise<tracked>> promises{3};
  std::vector<std::stop_token> asked;
};

TEST_F(when_any_test, TheFirstToEndWinsAndTheLosersAreCancelled) {
  auto any = when_any(futures());
  promises[1].set_value(11);
  EXPECT_TRUE(asked[0].stop_requested());
  EXPECT_FALSE(asked[1].stop_requested()) << "the winner is not";
  EXPECT_TRUE(asked[2].stop_requested());
  auto winner = any.get();
  EXPECT_EQ(winner.index, 1U);
  EXPECT_EQ(winner.result.value().value, 11);
  promises[0].set_value(0);  // too late
  promises[2].set_exception(std::runtime_error("too late"));
}

TEST_F(when_any_test, AFailureIsAnEndToo) {
  auto any = when_any(futures());
  promises[2].set_exception(std::runtime_error("first"));
  auto winner = any.get();
  EXPECT_EQ(winner.index, 2U);
  EXPECT_NE(winner.result.error_as<std::runtime_error>(), nullptr);
  EXPECT_TRUE(asked[0].stop_requested());
}

TEST_F(when_any_test, OfSeveralTypesTheAlternativeIsTheIndex) {
  promise<int> number;
  promise<std::string> text;
  auto any = when_any(number.get_future(), text.get_future(), promises[0].get_future());
  text.set_value("text");
  auto winner = any.get();
  EXPECT_EQ(winner.index, 1U);
  EXPECT_EQ(std::get<1>(winner.result).value(), "text");
  auto same = when_any(make_ready_future(1), make_ready_future(2)).get();
  EXPECT_EQ(same.result.value(), 1) << "futures of one type need no variant";
  auto nothing = when_any(make_ready_future(), make_ready_future()).get();
  EXPECT_TRUE(nothing.result.has_value());
}

TEST_F(when_any_test, OfSeveralThatAreReadyTheFirstInOrderWins) {
  auto any = when_any(make_failed_future<int>(std::runtime_error("x")), make_ready_future(2));
  EXPECT_TRUE(any.is_ready());
  EXPECT_EQ(any.get().index, 0U);
}

TEST_F(when_any_test, OfNoneEndsWithAnErrorAndNotNever) {
  try {
    when_any(std::vector<future<int>>()).get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::broken_promise);
  }
  EXPECT_THROW(when_any_success(std::vector<future<int>>()).get(), future_error);
}

TEST_F(when_any_test, CancellingTheResultCancelsEveryInput) {
  auto any = when_any(futures());
  any.cancel();
  for (auto& each : asked) EXPECT_TRUE(each.stop_requested());
}

TEST_F(when_any_test, ADroppedResultDoesNotStopTheInputs) {
  { auto dropped = when_any(futures()); }
  for (auto& each : asked) EXPECT_FALSE(each.stop_requested());
  promises[0].set_value(0);
  EXPECT_TRUE(asked[1].stop_requested()) << "the losers are cancelled as usual";
}

TEST_F(when_any_test, SuccessIgnoresFailuresUntilOneHasAValue) {
  auto any = when_any_success(futures());
  promises[0].set_exception(std::runtime_error("zero"));
  EXPECT_FALSE(any.is_ready());
  EXPECT_FALSE(asked[1].stop_requested());
  promises[2].set_value(22);
  EXPECT_TRUE(asked[1].stop_requested());
  auto winner = any.get();
  EXPECT_EQ(winner.index, 2U);
  EXPECT_EQ(winner.value.value, 22);
}

TEST_F(when_any_test, SuccessFailsWithTheLastFailureWhenAllHaveFailed) {
  auto any = when_any_success(futures());
  promises[0].set_exception(std::runtime_error("zero"));
  promises[2].set_exception(std::runtime_error("two"));
  EXPECT_FALSE(any.is_ready());
  promises[1].set_exception(std::logic_error("one"));
  EXPECT_THROW(any.get(), std::logic_error);
}

TEST_F(when_any_test, SuccessTakesVoidsReferencesAndArguments) {
  auto nothing = when_any_success(make_failed_future<void>(std::runtime_error("x")),
                                  make_ready_future());
  EXPECT_EQ(nothing.get().index, 1U);
  int here = 0;
  EXPECT_EQ(&when_any_success(make_ready_future<int&>(here)).get().value, &here);
}

}  // namespace
}  // namespace sluice::testing::when_any_test
