#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "sluice/base/atomic.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim::source_lines_test {
namespace {

using namespace std::chrono_literals;

std::string this_file(int line) {
  return "source_lines_test.cpp:" + std::to_string(line);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr int loop_line = __LINE__ + 2;
void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load()) {
  }
}

TEST(EndlessLoop, OverAStdAtomicIsReportedWithItsThreadAndLine) {
  const auto r = explore({.spin_max = 40ms}, [] {
    std::atomic<bool> flag{false};
    const std::jthread waits([&] { wait_for(flag); });
    const std::jthread sets([&] { flag = true; });
    wait_for(flag);
  });
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.kind, failure_kind::endless_loop) << r.text();
  EXPECT_TRUE(contains(r.message, "computes for 40 ms without a step")) << r.message;
  EXPECT_TRUE(contains(r.message, "use sluice::atomic")) << r.message;
  EXPECT_TRUE(contains(r.message, this_file(loop_line))) << r.message;
  EXPECT_FALSE(contains(r.message, "atomic_base.h")) << r.message;
}

TEST(EndlessLoop, ReplaysFromItsTrace) {
  const auto body = [] {
    const std::atomic<bool> flag{false};
    const std::jthread waits([&] { wait_for(flag); });
  };
  const auto found = explore({.spin_max = 40ms}, body);
  const auto again =
      explore({.search = search::replay, .trace = found.trace, .spin_max = 40ms}, body);
  EXPECT_EQ(again.kind, failure_kind::endless_loop) << again.text();
  EXPECT_TRUE(contains(again.message, "thread 1 computes")) << again.message;
}

TEST(EndlessLoop, IsNotReportedWhileThereAreSteps) {
  const auto r = explore({.search = search::random, .schedules = 50, .spin_max = 1ms}, [] {
    atomic<bool> flag{false};
    const std::jthread sets([&] { flag = true; });
    while (!flag.load()) yield();
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Steps, OfAStdMutexHaveTheLineOfTheirCaller) {
  int lock_line = 0;
  const auto r = explore({}, [&] {
    std::mutex guards;
    std::condition_variable changed;
    lock_line = __LINE__ + 1;
    std::unique_lock hold(guards);
    changed.wait(hold);
  });
  ASSERT_EQ(r.kind, failure_kind::deadlock) << r.text();
  EXPECT_TRUE(contains(r.steps_text, "lock #1")) << r.steps_text;
  EXPECT_TRUE(contains(r.steps_text, this_file(lock_line))) << r.steps_text;
  EXPECT_TRUE(contains(r.steps_text, this_file(lock_line + 1))) << r.steps_text;
  EXPECT_TRUE(contains(r.message, this_file(lock_line + 1))) << r.message;
}

}  // namespace
}  // namespace sluice::sim::source_lines_test
