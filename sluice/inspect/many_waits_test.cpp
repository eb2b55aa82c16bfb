// Inspection of very many waits.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <stop_token>
#include <type_traits>

#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/inspect.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing::many_waits_test {
namespace {

class many_waits_test : public ::testing::Test {
 protected:
  // Each task holds a lock and acquires the next task's lock; the last one acquires a permit or the
  // first task's lock.
  enum class last : std::uint8_t { wants_a_permit, closes_the_circle };
  void let_wait_in_a_row(std::size_t count, last wants) {
    locks_ = std::make_unique<mutex[]>(count);
    for (std::size_t i = 0; i + 1 < count; ++i) waits(locks_[i], locks_[i + 1]);
    if (wants == last::closes_the_circle) {
      waits(locks_[count - 1], locks_[0]);
    } else {
      waits(locks_[count - 1], idle_);
    }
    begin_.set();
  }

  const inspect::enabled on_{{.lock_order = false}};
  std::stop_source stop_;
  std::unique_ptr<mutex[]> locks_;
  event begin_;
  semaphore idle_{0};

 private:
  template <class Next>
  detached waits(mutex& own, Next& next) {
    const auto held = co_await own.async_lock();
    (void)co_await begin_.async_wait();
    if constexpr (std::is_same_v<Next, semaphore>) {
      (void)co_await next.async_acquire(1, stop_.get_token());
    } else {
      (void)co_await next.async_lock(stop_.get_token());
    }
  }
};

TEST_F(many_waits_test, AreAllListedEachOnce) {
  constexpr std::size_t count = 5'000;
  semaphore slots(0);
  const auto waits = [&]() -> detached { (void)co_await slots.async_acquire(); };
  for (std::size_t i = 0; i < count; ++i) waits();
  const auto all = inspect::waits();
  EXPECT_EQ(all.size(), count);
  std::set<std::uint64_t> numbers;
  for (const auto& w : all) {
    numbers.insert(w.number);
    ASSERT_EQ(w.on.size(), 1U);
    EXPECT_EQ(w.on[0].address, &slots);
  }
  EXPECT_EQ(numbers.size(), count);
  slots.release(count);
}

TEST_F(many_waits_test, InAChainThatEndsWithAFreePartyAreNoDeadlock) {
  constexpr std::size_t count = 500;
  let_wait_in_a_row(count, last::wants_a_permit);
  EXPECT_EQ(inspect::waits().size(), count);
  EXPECT_EQ(inspect::left_out(), 0U);
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  stop_.request_stop();
  EXPECT_TRUE(inspect::waits().empty());
}

TEST_F(many_waits_test, InACycleAreOneDeadlock) {
  constexpr std::size_t count = 500;
  let_wait_in_a_row(count, last::closes_the_circle);
  EXPECT_EQ(inspect::left_out(), 0U);
  const auto found = inspect::find_deadlocks();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].steps.size(), count);
  stop_.request_stop();
  EXPECT_TRUE(inspect::waits().empty());
}

}  // namespace
}  // namespace sluice::testing::many_waits_test
