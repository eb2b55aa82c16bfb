#include "sluice/executor/detail/steal_deque.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <latch>
#include <thread>
#include <vector>

#include "sluice/sync/testing/stress.hpp"

namespace sluice::detail::steal_deque_test {
namespace {

struct item {
  int number = 0;
  std::atomic<int> taken{0};
};

TEST(StealDequeTest, TheOwnerGetsTheYoungestAndAThiefTheOldest) {
  steal_deque<item> deque(8);
  std::array<item, 3> items;
  for (auto& each : items) ASSERT_TRUE(deque.push(&each));
  EXPECT_EQ(deque.size(), 3U);
  EXPECT_EQ(deque.steal(), &items[0]);
  EXPECT_EQ(deque.pop(), &items[2]);
  EXPECT_EQ(deque.pop(), &items[1]);
  EXPECT_EQ(deque.pop(), nullptr);
  EXPECT_EQ(deque.steal(), nullptr);
  EXPECT_TRUE(deque.looks_empty());
}

TEST(StealDequeTest, APushThatFindsItFullChangesNothing) {
  steal_deque<item> deque(2);
  std::array<item, 3> items;
  ASSERT_TRUE(deque.push(&items[0]));
  ASSERT_TRUE(deque.push(&items[1]));
  EXPECT_FALSE(deque.push(&items[2]));
  EXPECT_EQ(deque.size(), 2U);
  EXPECT_EQ(deque.steal(), &items[0]);
  EXPECT_TRUE(deque.push(&items[2])) << "a steal frees a slot";
  EXPECT_EQ(deque.pop(), &items[2]);
  EXPECT_EQ(deque.pop(), &items[1]);
}

TEST(StealDequeTest, PoppingTheEmptyDequeManyTimesLeavesItUsable) {
  steal_deque<item> deque(1);
  item only;
  for (int round = 0; round < 1000; ++round) {
    ASSERT_EQ(deque.pop(), nullptr);
    ASSERT_TRUE(deque.push(&only));
    ASSERT_FALSE(deque.push(&only));
    ASSERT_EQ(round % 2 == 0 ? deque.pop() : deque.steal(), &only);
    ASSERT_EQ(deque.steal(), nullptr);
  }
}

TEST(StealDequeTest, ACapacityThatIsNoPowerOfTwoIsRefused) {
  EXPECT_DEATH(steal_deque<item>(3), "a power of two");
  EXPECT_DEATH(steal_deque<item>(0), "a power of two");
}

// One thread, random calls: the same results as a std::deque.
TEST(StealDequeTest, BehavesAsAModelDoes) {
  sluice::testing::stress stress_run;
  auto dice = stress_run.generator(0);
  steal_deque<item> deque(16);
  std::deque<item*> model;
  std::vector<item> items(64);
  for (int step = 0; step < 200'000; ++step) {
    stress_run.did();
    switch (dice.below(4)) {
      case 0:
      case 1: {
        item* const next = &items[dice.below(64)];
        const bool fits = model.size() < 16;
        ASSERT_EQ(deque.push(next), fits);
        if (fits) model.push_back(next);
        break;
      }
      case 2: {
        item* expected = nullptr;
        if (!model.empty()) {
          expected = model.back();
          model.pop_back();
        }
        ASSERT_EQ(deque.pop(), expected);
        break;
      }
      default: {
        item* expected = nullptr;
        if (!model.empty()) {
          expected = model.front();
          model.pop_front();
        }
        ASSERT_EQ(deque.steal(), expected);
      }
    }
    ASSERT_EQ(deque.size(), model.size());
  }
}

// A small ring, so that slots are reused while thieves hold old positions. Half of the time the
// owner keeps at most two items, so that both ends meet often.
TEST(StealDequeStressTest, EveryItemComesOutExactlyOnce) {
  constexpr int rounds = 200'000;
  constexpr int thieves = 3;
  for (const std::size_t capacity : {2U, 8U, 64U}) {
    sluice::testing::stress stress_run;
    steal_deque<item> deque(capacity);
    std::vector<item> items(rounds);
    std::atomic<bool> over{false};
    std::atomic<int> taken_by_thieves{0};
    std::latch ready(thieves + 1);
    std::vector<std::jthread> threads;
    for (int t = 0; t < thieves; ++t) {
      threads.emplace_back([&] {
        int taken = 0;
        ready.arrive_and_wait();
        while (!over.load()) {
          if (item* const got = deque.steal()) {
            // Written before the push: a thief that does not see it got the item too early.
            EXPECT_GT(got->number, 0);
            got->taken.fetch_add(1);
            ++taken;
          }
        }
        taken_by_thieves += taken;
      });
    }
    auto dice = stress_run.generator(capacity);
    ready.arrive_and_wait();
    const auto run = [](item* got) {
      if (got != nullptr) got->taken.fetch_add(1);
    };
    for (int i = 0; i < rounds; ++i) {
      items[static_cast<std::size_t>(i)].number = i + 1;
      while (!deque.push(&items[static_cast<std::size_t>(i)])) run(deque.pop());
      if (dice.below(2) == 0) run(deque.pop());
      if (i % 1024 < 512) {
        while (deque.size() > 2) run(deque.pop());
      }
    }
    while (!deque.looks_empty()) run(deque.pop());
    over = true;
    threads.clear();
    for (const auto& each : items) ASSERT_EQ(each.taken.load(), 1) << "item " << each.number;
    stress_run.did(rounds);
  }
}

}  // namespace
}  // namespace sluice::detail::steal_deque_test
