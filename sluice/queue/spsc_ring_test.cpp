#include "sluice/queue/spsc_ring.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::spsc_ring_test {
namespace {

using namespace std::chrono_literals;
using testing::detached;
using testing::eventually;

TEST(SpscRing, CapacityIsExactAndNotRoundedUp) {
  for (const std::size_t capacity : {1u, 2u, 3u, 5u, 100u}) {
    spsc_ring<std::size_t> ring(capacity);
    for (std::size_t round = 0; round < 5; ++round) {
      for (std::size_t i = 0; i < capacity; ++i) ASSERT_EQ(ring.try_push(i), status::ok);
      ASSERT_EQ(ring.try_push(0), status::full);
      for (std::size_t i = 0; i < capacity; ++i) ASSERT_EQ(*ring.try_pop(), i);
      ASSERT_EQ(ring.try_pop().status(), status::empty);
      ASSERT_EQ(ring.try_push(0), status::ok);  // the next round starts at another index
      ASSERT_TRUE(ring.try_pop());
    }
  }
}

TEST(SpscRing, HighWaterIsExactOnceItWasFull) {
  spsc_ring<int> ring(3);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ring.push(i), status::ok);
  EXPECT_EQ(ring.try_push(3), status::full);
  while (ring.try_pop()) {}
  EXPECT_EQ(ring.high_water(), 3u);
}

TEST(SpscRing, AnotherThreadMayTakeOverASide) {
  spsc_ring<int> ring(4);
  for (int i = 0; i < 4; ++i) {
    std::jthread([&, i] { EXPECT_EQ(ring.push(i), status::ok); }).join();
  }
  for (int i = 0; i < 4; ++i) {
    std::jthread([&, i] { EXPECT_EQ(*ring.pop(), i); }).join();
  }
}

// ---- exceptions

struct brittle {
  static inline std::atomic<int> until_throw{0};

  explicit brittle(int v) : value(v) {}
  brittle(brittle&& from) : value(from.value) {
    if (until_throw > 0 && --until_throw == 0) throw std::runtime_error("move");
    from.value = -1;
  }
  int value;
};

TEST(SpscRing, ThrowingMoveLosesNothing) {
  spsc_ring<brittle> ring(4);
  ASSERT_EQ(ring.push(brittle(0)), status::ok);
  brittle item(1);
  brittle::until_throw = 1;
  EXPECT_THROW((void)ring.push(std::move(item)), std::runtime_error);
  EXPECT_EQ(item.value, 1);
  EXPECT_EQ(ring.size(), 1u);
  ASSERT_EQ(ring.push(std::move(item)), status::ok);
  brittle::until_throw = 1;
  EXPECT_THROW((void)ring.pop(), std::runtime_error);
  brittle::until_throw = 1;
  EXPECT_THROW((void)ring.pop_some(4), std::runtime_error);
  EXPECT_EQ(ring.size(), 2u);
  brittle::until_throw = 2;
  auto some = ring.pop_some(4);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->size(), 1u);
  EXPECT_EQ((*some)[0].value, 0);
  EXPECT_EQ(ring.pop()->value, 1);
}

TEST(SpscRing, BatchThatThrowsKeepsThePushedItems) {
  spsc_ring<brittle> ring(4);
  std::vector<brittle> items;
  items.reserve(3);
  for (int i = 0; i < 3; ++i) items.emplace_back(i);
  brittle::until_throw = 2;
  EXPECT_THROW((void)ring.push_all(items), std::runtime_error);
  EXPECT_EQ(items[1].value, 1);
  EXPECT_EQ(ring.size(), 1u);
  EXPECT_TRUE(ring.close()) << "no push is in progress";
  EXPECT_EQ(ring.pop()->value, 0);
  EXPECT_EQ(ring.pop().status(), status::closed);
}

TEST(SpscRing, ResumedCoroutineGetsTheExceptionOfItsOwnMove) {
  spsc_ring<brittle> ring(1);
  int caught = 0;
  [](spsc_ring<brittle>& from, int& count) -> detached {
    try {
      (void)co_await from.async_pop();
    } catch (const std::runtime_error&) {
      ++count;
    }
  }(ring, caught);
  brittle::until_throw = 2;  // in, then out
  EXPECT_EQ(ring.push(brittle(5)), status::ok);
  EXPECT_EQ(caught, 1);
  EXPECT_EQ(ring.pop()->value, 5);
}

// ---- races

TEST(SpscRingStress, NoWakeIsLostWhenBothSidesParkAllTheTime) {
  constexpr int rounds = 20'000;
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 8);
  spsc_ring<int> there(1);
  spsc_ring<int> back(1);
  std::jthread echo([&] {
    random r(seed);
    while (auto got = there.pop()) {
      for (auto pauses = r.below(600); pauses > 0; --pauses) seam::pause();
      EXPECT_EQ(back.push(*got), status::ok);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ASSERT_EQ(there.push(i), status::ok);
    ASSERT_EQ(*back.pop(), i);
  }
  there.close();
  std::printf("%d round trips, seed %llu\n", rounds, static_cast<unsigned long long>(seed));
}

TEST(SpscRingStress, ItemAcceptedDuringACloseIsNeverLost) {
  constexpr int rounds = 500;
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 21);
  random r(seed);
  long total = 0;
  for (int round = 0; round < rounds; ++round) {
    spsc_ring<int> ring(2);
    int pushed = 0;
    int popped = 0;
    std::atomic<int> ready{0};
    const auto pauses = r.below(300);
    const auto line_up = [&ready] {
      ++ready;
      while (ready < 3) std::this_thread::yield();
    };
    {
      std::jthread producer([&] {
        line_up();
        while (ring.push(pushed)) ++pushed;
      });
      std::jthread consumer([&] {
        line_up();
        while (auto got = ring.pop()) EXPECT_EQ(*got, popped++);
      });
      line_up();
      for (auto left = pauses; left > 0; --left) seam::pause();
      ring.close();
    }
    ASSERT_EQ(pushed, popped);
    total += pushed;
  }
  std::printf("%d rings closed by a third thread, %ld items, seed %llu\n", rounds, total,
              static_cast<unsigned long long>(seed));
}

TEST(SpscRingStress, ConsumerMayDestroyTheRingOnceItHasTheLastItem) {
  constexpr int rounds = 5000;
  spsc_ring<std::unique_ptr<spsc_ring<int>>*> requests(16);
  std::jthread server([&] {
    while (auto reply = requests.pop()) EXPECT_EQ((**reply)->push(1), status::ok);
  });
  for (int i = 0; i < rounds; ++i) {
    auto reply = std::make_unique<spsc_ring<int>>(1);
    ASSERT_EQ(requests.push(&reply), status::ok);
    ASSERT_EQ(*reply->pop(), 1);
    reply.reset();  // the push on the server's side may not have returned yet
  }
  requests.close();
  std::printf("%d rings destroyed under their producer, no seed: nothing random\n", rounds);
}

TEST(SpscRingStress, ProducerMayDestroyTheRingOnceItIsEmpty) {
  constexpr int rounds = 5000;
  spsc_ring<spsc_ring<int>*> requests(16);
  std::jthread server([&] {
    while (auto from = requests.pop()) EXPECT_EQ(*(*from)->pop(), 1);
  });
  for (int i = 0; i < rounds; ++i) {
    spsc_ring<int> ring(1);
    ASSERT_EQ(requests.push(&ring), status::ok);
    ASSERT_EQ(ring.push(1), status::ok);
    while (!ring.empty()) seam::pause();
  }
  requests.close();
  std::printf("%d rings destroyed under their consumer, no seed: nothing random\n", rounds);
}

TEST(SpscRingStress, CoroutineConsumesFromAThreadTryingAndWaitingInTurns) {
  constexpr int items = 50'000;
  spsc_ring<int> ring(4);
  std::atomic<bool> over{false};
  std::jthread producer([&] {
    for (int i = 0; i < items; ++i) ASSERT_EQ(ring.push(i), status::ok);
    ring.close();
  });
  int expected = 0;
  [](spsc_ring<int>& from, int& expected_next, std::atomic<bool>& done) -> detached {
    for (;;) {
      auto got = expected_next % 3 == 0 ? from.try_pop() : co_await from.async_pop();
      if (got.status() == status::empty) got = co_await from.async_pop();
      if (!got) break;
      EXPECT_EQ(*got, expected_next++);
    }
    done = true;
  }(ring, expected, over);
  eventually([&] { return over.load(); });
  EXPECT_EQ(expected, items);
  std::printf("%d items, no seed: nothing random\n", items);
}

TEST(SpscRing, BlockedSidesUseNoProcessor) {
  spsc_ring<int> empty(1);
  spsc_ring<int> full(1);
  spsc_ring<int> never(1);
  ASSERT_EQ(full.push(1), status::ok);
  std::jthread consumer([&] { EXPECT_EQ(empty.pop().status(), status::closed); });
  std::jthread producer([&] { EXPECT_EQ(full.push(2), status::closed); });
  eventually([&] { return empty.waiting_to_pop() == 1 && full.waiting_to_push() == 1; });
  EXPECT_EQ(never.pop(20ms).status(), status::timed_out);  // until they sleep
  const auto before = std::clock();
  EXPECT_EQ(never.pop(200ms).status(), status::timed_out);
  const auto used_ms = 1000.0 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  std::printf("a blocked producer and a blocked consumer used %.3f ms in 200 ms\n", used_ms);
  EXPECT_LT(used_ms, 5.0);
  empty.close();
  full.close();
}

// ---- misuse

TEST(SpscRingDeathTest, MisuseIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(spsc_ring<int>(0), "sluice::spsc_ring: expected a capacity of at least 1");
  EXPECT_DEATH(spsc_ring<int>(static_cast<std::size_t>(-1)),
               "sluice::spsc_ring: expected a capacity of at most 2\\^48");
  EXPECT_DEATH(spsc_ring<int>({.capacity = 1, .overflow = overflow::drop_oldest, .name = "pipe"}),
               "sluice::spsc_ring \"pipe\": expected overflow::block or overflow::reject");
  EXPECT_DEATH(spsc_ring<int>({.capacity = 1, .overflow = overflow::caller_runs}),
               "expected overflow::block or overflow::reject");
  EXPECT_DEATH(
      {
        spsc_ring<int> ring(1);
        (void)ring.try_pop_some(0);
      },
      "expected max > 0");
}

TEST(SpscRingDeathTest, DestructionWithAWaiterInsideNamesTheRing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto ring =
            std::make_unique<spsc_ring<int>>(spsc_ring_options{.capacity = 1, .name = "pipe"});
        std::jthread consumer([&from = *ring] { (void)from.pop(); });
        eventually([&] { return ring->waiting_to_pop() == 1; });
        ring.reset();
      },
      "sluice::spsc_ring \"pipe\": expected no consumer waiting inside");
  EXPECT_DEATH(
      {
        auto ring =
            std::make_unique<spsc_ring<int>>(spsc_ring_options{.capacity = 1, .name = "pipe"});
        (void)ring->push(1);
        std::jthread producer([&target = *ring] { (void)target.push(2); });
        eventually([&] { return ring->waiting_to_push() == 1; });
        ring.reset();
      },
      "sluice::spsc_ring \"pipe\": expected no producer waiting inside");
}

TEST(SpscRingDeathTest, SecondConsumerAndSecondProducerAreDetected) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        spsc_ring<int> ring({.capacity = 1, .name = "pipe"});
        std::jthread first([&] { (void)ring.pop(); });
        eventually([&] { return ring.waiting_to_pop() == 1; });
        (void)ring.pop();
      },
      "sluice::spsc_ring \"pipe\": expected one consumer at a time");
  EXPECT_DEATH(
      {
        spsc_ring<int> ring({.capacity = 1, .name = "pipe"});
        (void)ring.push(0);
        std::jthread first([&] { (void)ring.push(1); });
        eventually([&] { return ring.waiting_to_push() == 1; });
        (void)ring.push(2);
      },
      "sluice::spsc_ring \"pipe\": expected one producer at a time");
}

}  // namespace
}  // namespace sluice::spsc_ring_test
