#include "jobs/net/body_budget.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::net::body_budget_test {
namespace {

using share = body_budget::share;

TEST(BodyBudget, GivesUntilItIsSpent) {
  body_budget budget(100);
  share a;
  share b;
  share c;
  int woken = 0;
  const auto wake = [&] { ++woken; };
  EXPECT_TRUE(budget.take(a, 60, wake));
  EXPECT_TRUE(budget.take(b, 40, wake));
  EXPECT_FALSE(budget.take(c, 1, wake));
  EXPECT_FALSE(budget.has(c));
  budget.give_back(b);
  EXPECT_TRUE(budget.has(c));
  EXPECT_EQ(woken, 1);
  budget.give_back(a);
  budget.give_back(c);
  EXPECT_TRUE(budget.take(b, 100, wake));
  budget.give_back(b);
}

TEST(BodyBudget, ServesThoseThatWaitInTheirOrder) {
  body_budget budget(100);
  share a;
  share large;
  share small;
  std::string order;
  EXPECT_TRUE(budget.take(a, 60, [] {}));
  EXPECT_FALSE(budget.take(large, 90, [&] { order += 'l'; }));
  // It would fit, and yet those that are large would never have their turn.
  EXPECT_FALSE(budget.take(small, 10, [&] { order += 's'; }));
  budget.give_back(a);
  EXPECT_EQ(order, "ls");
  budget.give_back(large);
  budget.give_back(small);
}

TEST(BodyBudget, GivesMoreThanItHasToOneAlone) {
  body_budget budget(100);
  share a;
  share b;
  int woken = 0;
  EXPECT_TRUE(budget.take(a, 1, [] {}));
  EXPECT_FALSE(budget.take(b, 500, [&] { ++woken; }));
  budget.give_back(a);
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(budget.take(a, 1, [] {}));
  budget.give_back(b);
  EXPECT_TRUE(budget.has(a));
  budget.give_back(a);
}

TEST(BodyBudget, ForgetsWhoeverLeavesTheLine) {
  body_budget budget(100);
  share a;
  share b;
  share c;
  EXPECT_TRUE(budget.take(a, 50, [] {}));
  EXPECT_FALSE(budget.is_wanted());
  EXPECT_FALSE(budget.take(b, 90, [] { FAIL(); }));
  EXPECT_FALSE(budget.take(c, 50, [] {}));
  EXPECT_TRUE(budget.is_wanted());
  budget.give_back(b);
  EXPECT_TRUE(budget.has(c)) << "it waited for the one before it alone";
  EXPECT_FALSE(budget.is_wanted());
  budget.give_back(a);
  budget.give_back(c);
}

}  // namespace
}  // namespace sluice::jobs::net::body_budget_test
