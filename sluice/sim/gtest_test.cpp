#include "sluice/sim/gtest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/queue/bounded_queue.hpp"

namespace sluice::sim::gtest_test {
namespace {

using namespace std::chrono_literals;
using detail::explore_with_expectations;

// Two threads count without synchronization.
void count_unguarded(atomic<int>& count) {
  const auto raise = [&] { count.store(count.load() + 1); };
  std::jthread a(raise);
  std::jthread b(raise);
}

void expects_both() {
  atomic<int> count{0};
  count_unguarded(count);
  EXPECT_EQ(count.load(), 2) << "one of two was lost";
}

void asserts_both() {
  atomic<int> count{0};
  count_unguarded(count);
  ASSERT_EQ(count.load(), 2) << "one of two was lost";
}

void expects_both_on_a_thread() {
  atomic<int> count{0};
  count_unguarded(count);
  const std::jthread other([&] { EXPECT_EQ(count.load(), 2) << "one of two was lost"; });
}

long long deviations(const result& r) {
  return std::ranges::count(r.trace, ',');
}

class FailingExpectation : public ::testing::TestWithParam<void (*)()> {};
INSTANTIATE_TEST_SUITE_P(, FailingExpectation,
                         ::testing::Values(&expects_both, &asserts_both,
                                           &expects_both_on_a_thread));

TEST_P(FailingExpectation, IsFoundAsACheckWithItsText) {
  for (const bool leaks : {true, false}) {
    const auto r = explore_with_expectations({.leaks = leaks}, GetParam());
    ASSERT_TRUE(r.failed());
    EXPECT_EQ(r.kind, failure_kind::check) << r.text();
    EXPECT_NE(r.message.find("gtest_test.cpp:"), std::string::npos) << r.message;
    EXPECT_NE(r.message.find("Which is: 1"), std::string::npos) << r.message;
    EXPECT_NE(r.message.find("one of two was lost"), std::string::npos) << r.message;
  }
}

TEST_P(FailingExpectation, IsMadeSmallAndReplays) {
  for (const auto mode : {search::random, search::pct, search::exhaustive}) {
    const auto found = explore_with_expectations({.search = mode}, GetParam());
    ASSERT_TRUE(found.failed());
    // Needed: a switch between a load and its store, and at most one switch before it.
    EXPECT_GE(deviations(found), 1) << found.trace;
    EXPECT_LE(deviations(found), 3) << found.trace;
    const options once{.search = search::replay, .trace = found.trace};
    const auto again = explore_with_expectations(once, GetParam());
    EXPECT_TRUE(again.failed());
    EXPECT_EQ(again.message, found.message);
    EXPECT_EQ(again.steps_text, found.steps_text);
    const options usual{.search = search::replay, .trace = "1"};
    EXPECT_FALSE(explore_with_expectations(usual, GetParam()).failed());
  }
}

TEST(Expectations, ALongScheduleIsMinimizedToFewSwitches) {
  const auto body = [] {
    atomic<int> count{0};
    {
      const auto raise = [&] {
        for (int i = 0; i < 20; ++i) count.store(count.load() + 1);
      };
      std::jthread a(raise);
      std::jthread b(raise);
    }
    EXPECT_EQ(count.load(), 40);
  };
  options o{.search = search::random, .minimize_max = 0ms};
  const auto as_found = explore_with_expectations(o, body);
  o.minimize_max = 10s;
  const auto shorter = explore_with_expectations(o, body);
  EXPECT_EQ(as_found.schedule, shorter.schedule);
  EXPECT_GT(deviations(as_found), 3) << as_found.trace;
  EXPECT_EQ(deviations(shorter), 1) << shorter.trace;
}

TEST(Expectations, AreNotReportedToTheSurroundingTest) {
  (void)explore_with_expectations({}, &expects_both);
  EXPECT_FALSE(HasFailure());
}

TEST(Expectations, ThatHoldAllocateNothing) {
  const auto r = explore_with_expectations({.schedules = 200}, [] {
    bounded_queue<int> q(1);
    const std::jthread maker([&] { (void)q.push(1); });
    EXPECT_EQ(q.pop().value(), 1);
    SUCCEED();
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_EQ(r.schedules, 200U);
}

// The first failure is the cause; later ones may be its consequences.
TEST(Expectations, TheFirstFailureIsShownAlsoIfAnotherEndsTheSchedule) {
  const auto r = explore_with_expectations({}, [] {
    EXPECT_EQ(1, 2) << "the first";
    EXPECT_EQ(1, 2) << "the second";
    check(false, "the third");
  });
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.schedule, 1U);
  EXPECT_NE(r.message.find("the first"), std::string::npos) << r.message;
  EXPECT_EQ(r.message.find("the second"), std::string::npos) << r.message;
}

TEST(Expectations, ALongTextIsCut) {
  const auto r =
      explore_with_expectations({}, [] { EXPECT_TRUE(false) << std::string(9'999, 'x'); });
  EXPECT_EQ(r.kind, failure_kind::check) << r.text();
  EXPECT_GT(r.message.size(), 4'000U);
  EXPECT_LT(r.message.size(), 4'096U);
}

// Returns the failure that a test of the macro reports.
::testing::TestPartResult failure_of(options o, void (*body)()) {
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(&results);
    detail::explore_as_test(std::move(o), "Purse.IsNeverOverdrawn", "purse_test.cpp", 17, body);
  }
  if (results.size() == 1) return results.GetTestPartResult(0);
  return {::testing::TestPartResult::kFatalFailure, "", 0, "not exactly one failure"};
}

std::string message_of(options o, void (*body)()) {
  return failure_of(std::move(o), body).message();
}

TEST(ExploreMacro, FailsInTheFileAndLineOfTheTest) {
  const auto failure = failure_of({.search = search::exhaustive}, &expects_both);
  EXPECT_STREQ(failure.file_name(), "purse_test.cpp");
  EXPECT_EQ(failure.line_number(), 17);
}

TEST(ExploreMacro, PrintsTheCommandThatReplaysOnlyThisTest) {
  const auto message = message_of({.search = search::exhaustive}, &expects_both);
  const auto at = message.find("SLUICE_SIM_TRACE=1,");
  ASSERT_NE(at, std::string::npos) << message;
  const auto command = message.substr(at, message.find('\n', at) - at);
  EXPECT_NE(command.find(" --gtest_filter=Purse.IsNeverOverdrawn"), std::string::npos) << command;
  EXPECT_NE(command.find("sluice_sim_test"), std::string::npos) << command;
  EXPECT_NE(message.find("one of two was lost"), std::string::npos);
}

TEST(ExploreMacro, ReplaysTheTraceInTheEnvironment) {
  const auto found = explore_with_expectations({}, &expects_both);
  ::setenv("SLUICE_SIM_TRACE", found.trace.c_str(), 1);
  const auto message = message_of({.search = search::random}, &expects_both);
  ::unsetenv("SLUICE_SIM_TRACE");
  EXPECT_NE(message.find("Purse.IsNeverOverdrawn: 1 schedules"), std::string::npos) << message;
  EXPECT_NE(message.find("one of two was lost"), std::string::npos) << message;
}

SLUICE_EXPLORE(ExploreMacro, RunsItsBodyOncePerSchedule, .schedules = 500) {
  bounded_queue<int> q(1);
  std::jthread maker([&] { (void)q.push(1); });
  EXPECT_EQ(q.pop().value(), 1);
}

}  // namespace
}  // namespace sluice::sim::gtest_test
