#include "sluice/base/outcome.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <type_traits>

namespace outcome_test {
namespace {

using sluice::outcome;
using sluice::status;

// A status converts to bool only in a condition, and never to a number.
static_assert(!std::is_convertible_v<status, bool>);
static_assert(!std::is_convertible_v<status, int>);
static_assert(!std::is_convertible_v<status::code, bool>);
static_assert(!std::is_convertible_v<status::code, int>);
static_assert(!std::is_constructible_v<status, bool>);
static_assert(!std::is_constructible_v<status, int>);
static_assert(std::is_constructible_v<bool, status>);
static_assert(!std::is_convertible_v<outcome<std::string>, bool>);
static_assert(std::is_trivially_copyable_v<status> && sizeof(status) == 1);
static_assert(status(status::ok) && !status(status::closed));
static_assert(status(status::full) == status::full && status(status::full) != status::empty);
static_assert(status(status::full) == status(status::full));
static_assert(!std::is_default_constructible_v<status>, "a call always returns a result");

// An outcome<bool> is not constructed from a status converted to bool.
static_assert(std::is_constructible_v<outcome<bool>, status>);

TEST(Status, IsTrueForOkOnly) {
  EXPECT_TRUE(status(status::ok));
  for (const status s : {status::empty, status::full, status::closed, status::timed_out,
                         status::stopped, status::dropped}) {
    EXPECT_FALSE(s) << to_string(s);
  }
}

TEST(Status, HasAWordForEveryCode) {
  EXPECT_EQ(to_string(status::ok), "ok");
  EXPECT_EQ(to_string(status::empty), "empty");
  EXPECT_EQ(to_string(status::full), "full");
  EXPECT_EQ(to_string(status::closed), "closed");
  EXPECT_EQ(to_string(status::timed_out), "timed out");
  EXPECT_EQ(to_string(status::stopped), "stopped");
  EXPECT_EQ(to_string(status::dropped), "dropped");
  EXPECT_EQ(to_string(static_cast<status::code>(99)), "unknown");
}

TEST(Status, CanBeSwitchedOn) {
  const status ended = status::stopped;
  switch (ended) {
    case status::stopped: SUCCEED(); break;
    case status::ok:
    case status::empty:
    case status::full:
    case status::closed:
    case status::timed_out:
    case status::dropped: FAIL();
  }
}

TEST(Outcome, HoldsAValueOrAStatus) {
  const outcome<std::string> full = std::string("abc");
  EXPECT_TRUE(full);
  EXPECT_TRUE(full.has_value());
  EXPECT_EQ(full.status(), status::ok);
  EXPECT_EQ(*full, "abc");
  EXPECT_EQ(full.value(), "abc");
  EXPECT_EQ(full->size(), 3U);

  const outcome<std::string> none = status::closed;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(none.status(), status::closed);
}

TEST(Outcome, IsTrueIfItHasAValueEvenAFalseOne) {
  outcome<bool> no = false;
  EXPECT_TRUE(no);
  EXPECT_FALSE(*no);
  outcome<bool> stopped = status(status::stopped);
  EXPECT_FALSE(stopped);
  outcome<int> zero = 0;
  EXPECT_TRUE(zero);
}

TEST(Outcome, CanBeChangedAndMovedOutOf) {
  outcome<std::unique_ptr<int>> box = std::make_unique<int>(1);
  **box = 2;
  box.value() = std::make_unique<int>(3);
  const std::unique_ptr<int> out = *std::move(box);
  EXPECT_EQ(*out, 3);
  EXPECT_EQ(*outcome<std::unique_ptr<int>>(std::make_unique<int>(4)).value(), 4);
}

TEST(Outcome, ValueOrReturnsTheDefaultOnlyWithoutAValue) {
  EXPECT_EQ(outcome<int>(5).value_or(7), 5);
  EXPECT_EQ(outcome<int>(status::empty).value_or(7), 7);
  EXPECT_EQ(outcome<std::string>(status::closed).value_or("other"), "other");
}

TEST(Outcome, EndsAWorkerLoopAfterTheLastItem) {
  std::deque<int> items{1, 2, 3};
  const auto pop = [&]() -> outcome<int> {
    if (items.empty()) return status::closed;
    const int first = items.front();
    items.pop_front();
    return first;
  };
  int sum = 0;
  while (const auto item = pop()) sum += *item;
  EXPECT_EQ(sum, 6);
}

TEST(OutcomeDeathTest, ReadingAMissingValueIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto message = "sluice::outcome: expected a value; test the outcome before reading it";
  outcome<std::string> none = status::empty;
  const outcome<std::string> never = status::empty;
  EXPECT_DEATH(static_cast<void>(*none), message);
  EXPECT_DEATH(static_cast<void>(*never), message);
  EXPECT_DEATH(static_cast<void>(none->size()), message);
  EXPECT_DEATH(static_cast<void>(never->size()), message);
  EXPECT_DEATH(static_cast<void>(none.value()), message);
  EXPECT_DEATH(static_cast<void>(never.value()), message);
  EXPECT_DEATH(static_cast<void>(*std::move(none)), message);
}

TEST(OutcomeDeathTest, OkWithoutAValueIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(outcome<int>(status::ok)),
               "sluice::outcome: expected a reason other than ok when there is no value");
}

}  // namespace
}  // namespace outcome_test
