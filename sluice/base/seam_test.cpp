#include "sluice/base/seam.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"

namespace seam_test {
namespace {

using namespace std::chrono_literals;
using sluice::relaxed;
using sluice::seam::parker;
using sluice::seam::this_parker;
using sluice::seam::thread_number;
using sluice::seam::time_point;
using sluice::testing::eventually;

time_point now() { return sluice::seam::now(); }

TEST(SeamTime, DoesNotGoBackwards) {
  auto last = now();
  for (int n = 0; n < 10'000; ++n) {
    const auto next = now();
    ASSERT_GE(next, last);
    last = next;
  }
}

TEST(ThreadNumber, IsConstantForAThreadAndNeverZero) {
  const auto own = thread_number();
  EXPECT_NE(own, 0U);
  EXPECT_LT(own, 1U << 24);
  for (int n = 0; n < 100; ++n) EXPECT_EQ(thread_number(), own);
}

TEST(ThreadNumber, IsDistinctAmongRunningThreads) {
  constexpr int threads = 64;
  const auto own = thread_number();  // now: the numbers of the other threads are reused later
  std::vector<std::uint32_t> numbers(threads);
  std::latch all(threads);
  {
    std::vector<std::jthread> crew;
    for (auto& number : numbers) {
      crew.emplace_back([&] {
        number = thread_number();
        all.arrive_and_wait();  // no thread ends before every thread has a number
      });
    }
  }
  std::set<std::uint32_t> distinct(numbers.begin(), numbers.end());
  distinct.insert(own);
  EXPECT_EQ(distinct.size(), threads + 1U);
  EXPECT_EQ(distinct.count(0), 0U);
}

TEST(ThreadNumber, NumbersOfEndedThreadsAreReused) {
  std::set<std::uint32_t> seen;
  for (int n = 0; n < 500; ++n) std::jthread([&] { seen.insert(thread_number()); }).join();
  EXPECT_LE(seen.size(), 4U) << "threads that lived one after another";
}

// Reads its thread's number in the destructor of a thread_local, while a new thread has a number.
struct reads_number_late {
  std::atomic<std::uint32_t>* dying_number = nullptr;
  std::atomic<std::uint32_t>* new_number = nullptr;
  ~reads_number_late() {
    std::jthread new_thread([this] {
      *new_number = thread_number();
      eventually([this] { return dying_number->load() != 0; });
    });
    eventually([this] { return new_number->load() != 0; });
    *dying_number = thread_number();
  }
};

TEST(ThreadNumber, StaysDistinctWhileAThreadDestroysItsThreadLocals) {
  std::atomic<std::uint32_t> dying{0};
  std::atomic<std::uint32_t> started{0};
  std::jthread([&] {
    // Constructed before the thread has its number, so destroyed after other thread_locals.
    thread_local reads_number_late late;
    late.dying_number = &dying;
    late.new_number = &started;
    EXPECT_NE(thread_number(), 0U);
  }).join();
  EXPECT_NE(dying, started);
}

TEST(Parker, ATokenSetBeforeTheWaitIsNotLost) {
  parker p;
  p.unpark();
  p.park();
  p.unpark();
  EXPECT_TRUE(p.park_until(time_point::min()));
  p.unpark();
  EXPECT_TRUE(p.park_until(now() + 1h));
  p.unpark();
  EXPECT_TRUE(p.park_until(time_point::max()));
}

TEST(Parker, SeveralTokensAreOne) {
  parker p;
  p.unpark();
  p.unpark();
  p.unpark();
  EXPECT_TRUE(p.park_until(now()));
  EXPECT_FALSE(p.park_until(now()));
}

TEST(Parker, GivesUpAtTheDeadlineAndNotBefore) {
  parker p;
  EXPECT_FALSE(p.park_until(time_point::min()));
  EXPECT_FALSE(p.park_until(time_point{}));
  EXPECT_FALSE(p.park_until(now()));
  for (const auto wait : {1us, 50us, 2000us}) {
    const auto deadline = now() + wait;
    EXPECT_FALSE(p.park_until(deadline));
    EXPECT_GE(now(), deadline);
  }
  p.unpark();
  EXPECT_TRUE(p.park_until(now())) << "the wait that timed out must have reset the state";
}

TEST(Parker, SleepsUntilATokenBeforeADistantDeadline) {
  for (const auto deadline : {time_point::max(), time_point::max() - 1ns, now() + 1h}) {
    parker p;
    std::atomic<bool> woken{false};
    std::jthread sleeper([&] {
      EXPECT_TRUE(p.park_until(deadline));
      woken = true;
    });
    EXPECT_FALSE(woken);
    p.unpark();
    sleeper.join();
    EXPECT_TRUE(woken);
  }
}

TEST(Parker, EveryThreadHasItsOwn) {
  parker* const own = &this_parker();
  parker* other = nullptr;
  std::jthread([&] { other = &this_parker(); }).join();
  EXPECT_NE(own, other);
  EXPECT_EQ(own, &this_parker());
}

TEST(ParkerStress, MakesTheWakersEarlierWritesVisible) {
  constexpr int rounds = 20'000;
  parker ping;
  parker pong;
  int ball = 0;  // not atomic: only the tokens order the two threads
  std::jthread other([&] {
    for (int n = 0; n < rounds; ++n) {
      ping.park();
      ASSERT_EQ(ball, 2 * n + 1);
      ++ball;
      pong.unpark();
    }
  });
  for (int n = 0; n < rounds; ++n) {
    ++ball;
    ping.unpark();
    pong.park();
    ASSERT_EQ(ball, 2 * n + 2);
  }
  std::printf("%d hand-overs, no seed: nothing random\n", 2 * rounds);
}

TEST(ParkerStress, ATokenThatRacesWithTheDeadlineIsTakenOnceOrStaysForLater) {
  constexpr int rounds = 5'000;
  parker p;
  std::atomic<int> given{0};
  int taken = 0;
  int late = 0;
  std::jthread giver([&] {
    for (int n = 0; n < rounds; ++n) {
      eventually([&] { return given.load() == n; });
      p.unpark();
      given = -(n + 1);
      eventually([&] { return given.load() == n + 1; });
    }
  });
  for (int n = 0; n < rounds; ++n) {
    if (p.park_until(now() + std::chrono::microseconds(n % 20))) {
      ++taken;
      eventually([&] { return given.load() == -(n + 1); });
    } else {
      eventually([&] { return given.load() == -(n + 1); });
      ASSERT_TRUE(p.park_until(time_point::min())) << "the token was lost";
      ++late;
    }
    ASSERT_FALSE(p.park_until(time_point::min())) << "the token was taken twice";
    given = n + 1;
  }
  EXPECT_EQ(taken + late, rounds);
  std::printf("%d tokens: %d in time, %d late, no seed: nothing random\n", rounds, taken, late);
}

TEST(ParkerStress, AThreadMayEndAsSoonAsItHasTheToken) {
  constexpr int threads = 500;
  for (int n = 0; n < threads; ++n) {
    std::atomic<parker*> theirs{nullptr};
    std::jthread brief([&] {
      theirs = &this_parker();
      this_parker().park();
    });
    eventually([&] { return theirs.load() != nullptr; });
    theirs.load()->unpark();
  }
  std::printf("%d threads, no seed: nothing random\n", threads);
}

// Two threads each store to their own word and then load the other's. Unless both order the store
// before the load, both may load the old value.
template <class One, class Other>
int both_missed(int rounds, One one_barrier, Other other_barrier) {
  struct alignas(64) word {
    std::atomic<int> value{0};
  };
  word x;
  word y;
  word round;
  word answered;
  std::atomic<int> seen{0};
  int missed = 0;
  std::jthread other([&] {
    for (int n = 1; n <= rounds; ++n) {
      while (round.value < n) std::this_thread::yield();
      y.value.store(n, relaxed);
      other_barrier();
      seen.store(x.value.load(relaxed), relaxed);
      answered.value = n;
    }
  });
  for (int n = 1; n <= rounds; ++n) {
    round.value = n;
    x.value.store(n, relaxed);
    one_barrier();
    const int seen_here = y.value.load(relaxed);
    while (answered.value < n) std::this_thread::yield();
    if (seen_here < n && seen.load(relaxed) < n) ++missed;
  }
  return missed;
}

TEST(BarrierStress, ALightAndAHeavyBarrierOrderAStoreBeforeALaterLoad) {
  constexpr int rounds = 5'000;
  const auto light = [] { sluice::seam::light_barrier(); };
  const auto heavy = [] { sluice::seam::heavy_barrier(); };
  EXPECT_EQ(both_missed(rounds, light, heavy), 0);
  EXPECT_EQ(both_missed(rounds, heavy, light), 0);
  EXPECT_EQ(both_missed(rounds, heavy, heavy), 0);
  std::printf("%d rounds, the light barrier is %s, no seed: nothing random\n", 3 * rounds,
              sluice::seam::light_barrier_is_free() ? "free" : "a full fence");
}

TEST(Seam, SpinsOnlyWhereThereIsASecondCore) {
  EXPECT_EQ(sluice::seam::can_spin(), std::thread::hardware_concurrency() > 1);
  sluice::seam::pause();
  sluice::seam::yield();
}

}  // namespace
}  // namespace seam_test
