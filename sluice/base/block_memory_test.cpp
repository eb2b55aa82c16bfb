#include "sluice/base/block_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace sluice::block_memory_test {
namespace {

constexpr std::size_t bytes = 100;  // of the size 112

std::uint32_t kept_now() {
  const auto& kept = this_thread_keeps.of_size[(bytes - 1) / block_unit];
  return kept.count + (kept.spare != nullptr ? magazine_blocks : 0);
}

// In a thread of its own, so that other tests have kept nothing on it.
template <class F>
void in_a_new_thread(F&& f) {
  std::jthread run(std::forward<F>(f));
}

TEST(block_memory_test, ABlockThatWasGivenBackIsTakenAgain) {
  in_a_new_thread([] {
    void* const first = take_block(bytes);
    const std::uint32_t before = kept_now();  // what others left in the depot
    give_block(first, bytes);
    EXPECT_EQ(kept_now(), before + (keeps_blocks ? 1U : 0U));
    void* const again = take_block(bytes - 1);
    if (keeps_blocks) {
      EXPECT_EQ(again, first) << "of the same size, rounded up";
    }
    EXPECT_EQ(kept_now(), before);
    give_block(again, bytes - 1);
  });
}

TEST(block_memory_test, AThreadKeepsABoundedNumber) {
  in_a_new_thread([] {
    std::vector<void*> taken((depot_magazines + 4) * magazine_blocks);
    for (auto& each : taken) each = take_block(bytes);
    for (auto* const each : taken) {
      give_block(each, bytes);
      ASSERT_LE(kept_now(), 2 * magazine_blocks);
    }
    EXPECT_EQ(kept_now(), keeps_blocks ? 2 * magazine_blocks : 0U) << "and the depot is full";
  });
}

TEST(block_memory_test, BlocksComeBackFromTheThreadThatGaveThem) {
  if (!keeps_blocks) GTEST_SKIP() << "nothing is kept under a sanitizer";
  constexpr std::size_t own_bytes = 240;  // a size that no other test uses
  std::vector<void*> taken(8 * magazine_blocks);
  in_a_new_thread([&] {
    for (auto& each : taken) each = take_block(own_bytes);
  });
  in_a_new_thread([&] {
    for (auto* const each : taken) give_block(each, own_bytes);
  });
  const std::set<void*> before(taken.begin(), taken.end());
  std::size_t known = 0;
  in_a_new_thread([&] {
    for (auto& each : taken) {
      each = take_block(own_bytes);
      known += before.count(each);
    }
    for (auto* const each : taken) give_block(each, own_bytes);
  });
  // All but what the other thread kept for itself, and freed when it ended.
  EXPECT_GE(known, 6 * magazine_blocks);
}

TEST(block_memory_test, NoBlockIsGivenToTwo) {
  constexpr std::size_t own_bytes = 224;
  constexpr std::size_t rounds = 20'000;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  std::array<std::atomic<int*>, 64> shared{};
  for (int me = 1; me <= 3; ++me) {
    threads.emplace_back([&, me] {
      for (std::size_t i = 0; i < rounds; ++i) {
        int* const mine = ::new (take_block(own_bytes)) int(me);
        // Somebody else's block comes back in its place, and is given back here.
        int* const other = shared[(i * 7 + static_cast<std::size_t>(me)) % shared.size()].exchange(
            mine, std::memory_order_acq_rel);
        if (other == nullptr) continue;
        if (*other < 1 || *other > 3) ++wrong;
        *other = 0;
        give_block(other, own_bytes);
      }
    });
  }
  threads.clear();
  for (auto& each : shared) {
    if (int* const left = each.load()) give_block(left, own_bytes);
  }
  EXPECT_EQ(wrong, 0);
}

TEST(block_memory_test, WhatIsLargeIsNotKept) {
  in_a_new_thread([] {
    constexpr std::size_t large = block_sizes * block_unit + 1;
    give_block(take_block(large), large);
    for (const auto& kept : this_thread_keeps.of_size) EXPECT_EQ(kept.count, 0U);
  });
}

struct gives_back_late {
  void* block = nullptr;
  ~gives_back_late() { give_block(block, bytes); }
};

TEST(block_memory_test, BlocksGivenBackByAnEndingThreadAreFreed) {
  // The sanitizers say whether they were; without them it must not crash.
  in_a_new_thread([] {
    thread_local gives_back_late last;  // destroyed after what keeps the blocks
    last.block = take_block(bytes);
    give_block(take_block(bytes), bytes);
  });
}

}  // namespace
}  // namespace sluice::block_memory_test
