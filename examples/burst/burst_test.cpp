#include "examples/burst/burst.hpp"

#include <gtest/gtest.h>

namespace burst::burst_test {
namespace {

using namespace std::chrono_literals;

settings small() {
  settings s;
  s.tasks = 500;
  s.workers = 2;
  s.capacity = 8;
  s.arrival = 5ms;
  s.work = 20us;
  s.idle = 1ms;
  return s;
}

class BurstUnder : public ::testing::TestWithParam<sluice::overflow> {};

TEST_P(BurstUnder, AccountsForEveryTask) {
  std::size_t looks = 0;
  const report r = run(small(), GetParam(), {}, [&](const moment&) { ++looks; });
  EXPECT_EQ(find_error(r, small().tasks), "");
  EXPECT_EQ(r.arrived, small().tasks);
  EXPECT_LE(r.deepest, small().capacity);
  EXPECT_GT(looks, 0U);
  EXPECT_TRUE(r.done == small().tasks || GetParam() != sluice::overflow::block);
  EXPECT_TRUE(r.rejected == 0 || GetParam() == sluice::overflow::reject);
}

INSTANTIATE_TEST_SUITE_P(EachPolicy, BurstUnder, ::testing::ValuesIn(settings{}.policies),
                         [](const auto& policy) { return std::string(to_string(policy.param)); });

TEST(Burst, EndsSoonWhenStopped) {
  settings endless = small();
  endless.tasks = 1'000'000;
  endless.work = 1ms;
  std::stop_source stop;
  const report r = run(endless, sluice::overflow::block, stop.get_token(),
                       [&](const moment&) { stop.request_stop(); });
  EXPECT_TRUE(r.interrupted);
  EXPECT_LT(r.arrived, endless.tasks);
}

TEST(BurstAccounts, AreWrongWhenATaskIsMissing) {
  report r{.arrived = 10, .done = 6, .rejected = 2, .dropped = 1};
  EXPECT_EQ(find_error(r, 10), "block: 10 arrived, but 6 done + 2 rejected + 1 dropped is 9");
  r.done = 7;
  EXPECT_EQ(find_error(r, 10), "");
  EXPECT_EQ(find_error(r, 11), "block: 10 of 11 tasks arrived; ");
}

}  // namespace
}  // namespace burst::burst_test
