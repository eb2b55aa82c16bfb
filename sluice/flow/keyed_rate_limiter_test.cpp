#include "sluice/flow/keyed_rate_limiter.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::keyed_rate_limiter_test {
namespace {

using namespace std::chrono_literals;

class keyed_gate {
 public:
  status wait(const wait_limits& limits) { return limiter_.acquire(7, 2, limits); }
  template <class Where>
  static detached await(keyed_gate& gate, Where&, wait_limits limits, ending& ended) {
    const auto result = co_await gate.limiter_.async_acquire(7, 2, std::move(limits));
    ended.set(result);  // the wait has released its key: the limiter may be destroyed at once
  }
  void open() {
    limiter_.set({many, 1ns}, many);
    clock_.advance(1ns);
  }
  std::size_t waiting() const { return limiter_.waiting(7); }

  keyed_gate() { EXPECT_TRUE(limiter_.try_acquire(7, many)); }

 private:
  static constexpr std::int64_t many = std::int64_t{1} << 40;
  manual_clock clock_;
  keyed_rate_limiter<int> limiter_{
      {.rate = {0, 1s}, .burst = many, .keys_max = 2, .clock = &clock_}};
};

INSTANTIATE_TYPED_TEST_SUITE_P(keyed_rate_limiter, waiting_suite, keyed_gate);

class keyed_rate_limiter_test : public ::testing::Test {
 protected:
  manual_clock clock;
};

TEST_F(keyed_rate_limiter_test, EachKeyHasItsOwnBucket) {
  keyed_rate_limiter<std::string> limiter(
      {.rate = {1, 1s}, .burst = 2, .keys_max = 10, .clock = &clock});
  EXPECT_TRUE(limiter.try_acquire("a", 2));
  EXPECT_FALSE(limiter.try_acquire("a"));
  EXPECT_TRUE(limiter.try_acquire("b"));
  EXPECT_EQ(limiter.acquire("b", 3), status::full);
  clock.advance(1s);
  EXPECT_TRUE(limiter.try_acquire("a"));
}

TEST_F(keyed_rate_limiter_test, KeysThatAreFullAgainAreReplacedByOthers) {
  keyed_rate_limiter<int> limiter({.rate = {1, 1s}, .burst = 5, .keys_max = 2, .clock = &clock});
  EXPECT_TRUE(limiter.try_acquire(1, 5));  // full again in 5 s
  EXPECT_TRUE(limiter.try_acquire(2, 1));  // full again in 1 s
  EXPECT_FALSE(limiter.try_acquire(3)) << "both are active";
  EXPECT_EQ(limiter.acquire(3), status::full);
  EXPECT_EQ(limiter.turned_away(), 2U);
  clock.advance(1s);
  EXPECT_TRUE(limiter.try_acquire(3)) << "the full key is dropped, at any age";
  EXPECT_EQ(limiter.keys(), 2U);
  EXPECT_FALSE(limiter.try_acquire(1, 2)) << "the key that is not full is kept";
}

TEST_F(keyed_rate_limiter_test, NewKeysDropTheKeysOfAnEarlierPeak) {
  keyed_rate_limiter<int> limiter(
      {.rate = {1, 1s}, .burst = 1, .keys_max = 10'000, .clock = &clock});
  for (int key = 0; key < 10'000; ++key) EXPECT_TRUE(limiter.try_acquire(key));
  EXPECT_EQ(limiter.keys(), 10'000U);
  clock.advance(1s);
  for (int key = 0; key < 5'000; ++key) EXPECT_TRUE(limiter.try_acquire(20'000 + key));
  EXPECT_EQ(limiter.keys(), 5'000U) << "each new key drops two";
  clock.advance(1s);
  limiter.forget_idle();
  EXPECT_EQ(limiter.keys(), 0U);
}

detached ask(keyed_rate_limiter<int>& from, int key, std::int64_t n, int& served) {
  const auto result = co_await from.async_acquire(key, n);
  if (result) ++served;
}

TEST_F(keyed_rate_limiter_test, AKeyWithWaitersIsNotDropped) {
  keyed_rate_limiter<int> limiter({.rate = {1, 1s}, .burst = 3, .keys_max = 1, .clock = &clock});
  int served = 0;
  ask(limiter, 1, 3, served);
  ask(limiter, 1, 3, served);
  EXPECT_EQ(served, 1);
  clock.advance(2s);
  EXPECT_FALSE(limiter.try_acquire(2));
  EXPECT_EQ(limiter.waiting(1), 1U);
  clock.advance(1s);
  EXPECT_EQ(served, 2);
  clock.advance(2s);
  EXPECT_FALSE(limiter.try_acquire(2));
  clock.advance(1s);
  EXPECT_TRUE(limiter.try_acquire(2));
}

TEST_F(keyed_rate_limiter_test, AChangedRateAppliesToEveryKey) {
  keyed_rate_limiter<int> limiter({.rate = {0, 1s}, .burst = 2, .keys_max = 9, .clock = &clock});
  int served = 0;
  for (int key = 0; key < 5; ++key) {
    ask(limiter, key, 2, served);
    ask(limiter, key, 1, served);
  }
  EXPECT_EQ(served, 5);
  clock.advance(24h);
  EXPECT_EQ(served, 5);
  limiter.set({1, 1s}, 2);
  clock.advance(1s);
  EXPECT_EQ(served, 10);
  EXPECT_TRUE(limiter.try_acquire(7, 2)) << "and for new ones";
}

// The bound on keys must not change any result while it is large enough.
TEST_F(keyed_rate_limiter_test, DroppingIsInvisible) {
  stress run;
  for (std::uint64_t round = 0; round < 10; ++round) {
    auto choose = run.generator(round);
    keyed_rate_limiter<std::uint32_t> bounded(
        {.rate = {10, 1s}, .burst = 4, .keys_max = 64, .clock = &clock});
    std::map<std::uint32_t, rate_limiter> plain;
    for (int i = 0; i < 2'000; ++i) {
      clock.advance(std::chrono::milliseconds(choose.below(40)));
      const auto key = choose.below(60);
      const std::int64_t n = 1 + choose.below(4);
      auto& one =
          plain
              .try_emplace(key, rate_limiter_options{.rate = {10, 1s}, .burst = 4, .clock = &clock})
              .first->second;
      ASSERT_EQ(bounded.try_acquire(key, n), one.try_acquire(n)) << round << ' ' << i;
      run.did();
    }
    EXPECT_EQ(bounded.turned_away(), 0U);
    EXPECT_LT(bounded.keys(), 60U) << "some keys have been dropped";
  }
}

TEST(keyed_rate_limiter_stress_test, ThreadsAndKeysComeAndGo) {
  stress run;
  keyed_rate_limiter<std::uint32_t> limiter({.rate = {1, 100us}, .burst = 3, .keys_max = 8});
  std::atomic<std::uint64_t> refused{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        auto choose = run.generator(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 1'000; ++i) {
          const auto key = choose.below(24);
          if (choose.below(3) == 0) {
            const auto result = limiter.acquire(key, 1 + choose.below(3), 50us);
            if (result == status::full) ++refused;
          } else {
            (void)limiter.try_acquire(key);
          }
          if (i % 100 == 0) limiter.forget_idle();
          EXPECT_LE(limiter.keys(), 8U);
        }
        run.did(1'000);
      });
    }
  }
  EXPECT_LE(refused.load(), limiter.turned_away());
}

TEST(keyed_rate_limiter_DeathTest, ABoundOfZeroKeysIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(keyed_rate_limiter<int>({.rate = {1, 1s}}), "keys_max of at least 1");
  EXPECT_DEATH(keyed_rate_limiter<int>({.rate = {-1, 1s}, .keys_max = 1}), "not negative");
}

}  // namespace
}  // namespace sluice::testing::keyed_rate_limiter_test
