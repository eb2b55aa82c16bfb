#include "sluice/sync/on_done.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "sluice/sync/semaphore.hpp"

namespace sluice::on_done_test {
namespace {

using namespace std::chrono_literals;

TEST(OnDone, CallsBackAtOnceIfNoWaitIsNeeded) {
  semaphore permits(1);
  int calls = 0;
  on_done([&] { return permits.async_acquire(); },
          [&](status s) { calls += s == status::ok ? 1 : 100; });
  EXPECT_EQ(calls, 1);
}

TEST(OnDone, CallsBackOnTheThreadThatEndsTheWait) {
  semaphore permits(0);
  int calls = 0;
  on_done([&] { return permits.async_acquire(); },
          [&](status s) { calls += s == status::ok ? 1 : 100; });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(permits.waiting(), 1U);
  permits.release();
  EXPECT_EQ(calls, 1);
}

TEST(OnDone, ReportsThatTheDeadlinePassedAndTookNothing) {
  manual_clock clock;
  semaphore permits(0);
  status seen = status::ok;
  on_done([&] { return permits.async_acquire(1, {deadline::after(5s, clock)}); },
          [&](status s) { seen = s; });
  clock.advance(5s);
  EXPECT_EQ(seen, status::timed_out);
  permits.release();
  EXPECT_EQ(permits.available(), 1);
}

}  // namespace
}  // namespace sluice::on_done_test
