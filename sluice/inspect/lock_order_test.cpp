#include "sluice/inspect/lock_order.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/inspect/inspect.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/lock_all.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace {
constinit thread_local std::uint64_t allocations = 0;  // by the calling thread
}

// A sanitizer replaces operator new itself.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLUICE_COUNTS_NO_ALLOCATIONS
#endif
#endif

#ifndef SLUICE_COUNTS_NO_ALLOCATIONS
// Not inlined: at -O1 g++ would report -Wmismatched-new-delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const got = std::malloc(bytes)) return got;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* at) noexcept {
  std::free(at);
}
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
#endif

namespace sluice::testing::lock_order_test {
namespace {

class lock_order_test : public ::testing::Test {
 protected:
  template <class A, class B>
  static void take(A& first, B& second) {
    const std::lock_guard one(first);
    const std::lock_guard two(second);
  }

  std::vector<inspect::lock_inversion> found_;
  const inspect::enabled on_{
      {.lock_order = true, .on_inversion = [this](const auto& i) { found_.push_back(i); }}};
};

TEST_F(lock_order_test, TwoLocksInBothOrdersAreReportedBeforeTheyDeadlock) {
  mutex accounts(named("accounts"));
  mutex journal(named("journal"));
  accounts.lock();
  journal.lock();
  const auto known = __LINE__ - 1;
  journal.unlock();
  accounts.unlock();
  EXPECT_TRUE(found_.empty());
  journal.lock();
  accounts.lock();
  const auto other = __LINE__ - 1;
  accounts.unlock();
  journal.unlock();
  ASSERT_EQ(found_.size(), 1U);
  ASSERT_EQ(found_[0].steps.size(), 2U);
  EXPECT_EQ(found_[0].steps[0].first, "mutex journal");
  EXPECT_EQ(found_[0].steps[0].second, "mutex accounts");
  EXPECT_EQ(found_[0].steps[0].second_at.line(), static_cast<unsigned>(other));
  EXPECT_EQ(found_[0].steps[1].first, "mutex accounts");
  EXPECT_EQ(found_[0].steps[1].second_at.line(), static_cast<unsigned>(known));
  EXPECT_NE(found_[0].text().find("lock_order_test.cpp:" + std::to_string(other)),
            std::string::npos);
}

TEST_F(lock_order_test, IsReportedOnce) {
  mutex a;
  mutex b;
  for (int i = 0; i < 3; ++i) {
    take(a, b);
    take(b, a);
  }
  EXPECT_EQ(found_.size(), 1U);
}

TEST_F(lock_order_test, IsRecordedForAllThreads) {
  mutex a;
  fair_mutex b;
  std::jthread([&] { take(a, b); }).join();
  std::jthread([&] { take(b, a); }).join();
  EXPECT_EQ(found_.size(), 1U);
}

TEST_F(lock_order_test, ACycleOfThreeIsFound) {
  mutex a;
  mutex b;
  mutex c;
  take(a, b);
  take(b, c);
  EXPECT_TRUE(found_.empty());
  take(c, a);
  ASSERT_EQ(found_.size(), 1U);
  EXPECT_EQ(found_[0].steps.size(), 3U);
}

TEST_F(lock_order_test, TheSameOrderIsNoInversion) {
  mutex a;
  mutex b;
  mutex c;
  for (int i = 0; i < 3; ++i) {
    take(a, b);
    take(b, c);
    take(a, c);
  }
  EXPECT_TRUE(found_.empty());
}

TEST_F(lock_order_test, AKnownOrderAllocatesNothing) {
#ifdef SLUICE_COUNTS_NO_ALLOCATIONS
  GTEST_SKIP() << "the sanitizer counts allocations";
#endif
  mutex a;
  mutex b;
  fair_mutex c;
  const auto take_all = [&] {
    const std::lock_guard one(a);
    take(b, c);
  };
  const auto before = allocations;
  take_all();
  EXPECT_GT(allocations, before);  // a new order
  const auto known = allocations;
  take_all();
  EXPECT_EQ(allocations, known);
}

TEST_F(lock_order_test, ATryIsNoStep) {
  mutex a;
  mutex b;
  take(a, b);
  const std::lock_guard hold(b);
  ASSERT_TRUE(a.try_lock());
  a.unlock();
  EXPECT_TRUE(found_.empty());
}

TEST_F(lock_order_test, LockAllIsNoStep) {
  mutex a;
  mutex b;
  { const auto held = lock_all(a, b); }
  { const auto held = lock_all(b, a); }
  EXPECT_TRUE(found_.empty());
}

TEST_F(lock_order_test, ReadersCountAsWell) {
  shared_mutex a;
  mutex b;
  {
    const std::shared_lock reads(a);
    const std::lock_guard hold(b);
  }
  take(b, a);
  EXPECT_EQ(found_.size(), 1U);
}

TEST_F(lock_order_test, DestroyingALockRemovesItsRecords) {
  mutex a;
  alignas(mutex) std::byte place[sizeof(mutex)];
  auto* b = std::construct_at(reinterpret_cast<mutex*>(place));
  take(a, *b);
  std::destroy_at(b);
  b = std::construct_at(reinterpret_cast<mutex*>(place));
  take(*b, a);
  EXPECT_TRUE(found_.empty());
  std::destroy_at(b);
}

TEST(lock_order_off_test, NothingIsRecordedUnlessEnabled) {
  std::vector<inspect::lock_inversion> found;
  const inspect::enabled on(
      {.lock_order = false, .on_inversion = [&](const auto& i) { found.push_back(i); }});
  mutex a;
  mutex b;
  {
    const std::lock_guard one(a);
    const std::lock_guard two(b);
  }
  {
    const std::lock_guard one(b);
    const std::lock_guard two(a);
  }
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace sluice::testing::lock_order_test
