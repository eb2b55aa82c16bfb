// Threads of the standard library, in a schedule.

#include <gtest/gtest.h>

#include <stop_token>
#include <thread>

#include "sluice/base/atomic.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim::threads_test {
namespace {

using namespace std::chrono_literals;

TEST(Threads, AStopCallbackEndsWhenItHasRun) {
  const auto r = explore({.search = search::exhaustive, .schedules = 0}, [] {
    std::stop_source stop;
    atomic<int> calls{0};
    std::jthread other([&] { stop.request_stop(); });
    {
      const std::stop_callback count(stop.get_token(), [&] { calls.fetch_add(1); });
      while (calls.load() == 0) yield();
    }
    check(calls.load() == 1, "one call");
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

TEST(Threads, EachHasItsOwnThreadLocalVariables) {
  const auto r = explore({.search = search::exhaustive, .schedules = 0}, [] {
    const auto count = [] {
      thread_local race_checked<int> plain{0};
      thread_local atomic<int> counted{0};
      plain.write(plain.read() + 1);
      counted.fetch_add(1);
      check(plain.read() == 1 && counted.load(relaxed) == 1, "a variable of its own");
    };
    std::jthread a(count);
    std::jthread b(count);
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_TRUE(r.complete);
}

TEST(Threads, APendingTimerIsNoLeak) {
  const auto r = explore({.schedules = 2'000}, [] {
    delay_queue<int> q(2);
    const auto start = std::chrono::steady_clock::now();
    check(q.push({2, start + 1h}) == status::ok, "capacity for one item");
    std::jthread maker([&] {
      check(q.push({1, start}) == status::ok, "capacity for a second item");
    });
    check(q.pop().has_value(), "an item");
  });
  EXPECT_FALSE(r.failed()) << r.text();
}

}  // namespace
}  // namespace sluice::sim::threads_test
