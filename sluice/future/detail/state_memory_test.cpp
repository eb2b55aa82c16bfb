#include "sluice/future/detail/state_memory.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::detail {
namespace {

constexpr std::size_t bytes = 100;  // of the size 112

std::uint32_t kept_now() { return this_thread_keeps.of_size[(bytes - 1) / block_unit].count; }

// In a thread of its own, so that other tests have kept nothing on it.
template <class F>
void in_a_new_thread(F&& f) {
  std::jthread run(std::forward<F>(f));
}

TEST(state_memory_test, ABlockThatWasGivenBackIsTakenAgain) {
  in_a_new_thread([] {
    void* const first = take_block(bytes);
    give_block(first, bytes);
    EXPECT_EQ(kept_now(), keeps_blocks ? 1U : 0U);
    void* const again = take_block(bytes - 1);
    if (keeps_blocks) {
      EXPECT_EQ(again, first) << "of the same size, rounded up";
    }
    EXPECT_EQ(kept_now(), 0U);
    give_block(again, bytes - 1);
  });
}

TEST(state_memory_test, AThreadKeepsABoundedNumber) {
  in_a_new_thread([] {
    std::vector<void*> taken(3 * kept_max);
    for (auto& each : taken) each = take_block(bytes);
    for (auto* const each : taken) give_block(each, bytes);
    EXPECT_EQ(kept_now(), keeps_blocks ? kept_max : 0U);
  });
}

TEST(state_memory_test, WhatIsLargeIsNotKept) {
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

TEST(state_memory_test, BlocksGivenBackByAnEndingThreadAreFreed) {
  // The sanitizers say whether they were; without them it must not crash.
  in_a_new_thread([] {
    thread_local gives_back_late last;  // destroyed after what keeps the blocks
    last.block = take_block(bytes);
    give_block(take_block(bytes), bytes);
  });
}

}  // namespace
}  // namespace sluice::detail
