#include "sluice/sync/detail/lock_calls.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <thread>

#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::lock_calls_test {
namespace {

using namespace std::chrono_literals;

// The standard's TimedLockable: its guards need results that convert to bool.
template <class L>
concept timed_lockable = requires(L& l, std::chrono::steady_clock::time_point when) {
  { l.try_lock_for(1ms) } -> std::convertible_to<bool>;
  { l.try_lock_until(when) } -> std::convertible_to<bool>;
};
static_assert(timed_lockable<mutex> && timed_lockable<fair_mutex> && timed_lockable<shared_mutex>);

TEST(TimedLock, ReturnsTheReasonWithoutTheLock) {
  mutex m;
  const std::lock_guard hold(m);
  std::jthread([&] {
    const bool locked = m.try_lock_for(0s);
    EXPECT_FALSE(locked);
    EXPECT_EQ(m.try_lock_for(0s), status::timed_out);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(m.lock({1h, stop.get_token()}), status::stopped);
  });
}

TEST(TimedLock, ServesTheGuardsOfTheStandardLibrary) {
  shared_mutex m;
  {
    const std::unique_lock writing(m, 1s);
    EXPECT_TRUE(writing.owns_lock());
    std::jthread([&] { EXPECT_FALSE(std::shared_lock(m, 0s).owns_lock()); });
  }
  EXPECT_TRUE(std::shared_lock(m, 1s).owns_lock());
}

}  // namespace
}  // namespace sluice::lock_calls_test
