#include "sluice/base/detail/block_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace sluice::block_memory_test {
namespace {

using namespace sluice::detail;

constexpr std::size_t bytes = 100;  // of the size 112

std::uint32_t cached_now() {
  const auto& blocks = this_thread_cache.of_size[(bytes - 1) / block_unit];
  return blocks.count + (blocks.spare != nullptr ? magazine_blocks : 0);
}

// Runs `f` on a new thread, whose cache is empty.
template <class F>
void in_a_new_thread(F&& f) {
  std::jthread run(std::forward<F>(f));
}

TEST(block_memory_test, AFreedBlockIsReused) {
  in_a_new_thread([] {
    void* const first = take_block(bytes);
    const std::uint32_t before = cached_now();  // blocks that other threads left in the depot
    give_block(first, bytes);
    EXPECT_EQ(cached_now(), before + (caches_blocks ? 1U : 0U));
    void* const again = take_block(bytes - 1);
    if (caches_blocks) {
      EXPECT_EQ(again, first) << "both sizes round up to the same block size";
    }
    EXPECT_EQ(cached_now(), before);
    give_block(again, bytes - 1);
  });
}

TEST(block_memory_test, AThreadCachesABoundedNumber) {
  in_a_new_thread([] {
    std::vector<void*> taken((depot_magazines + 4) * magazine_blocks);
    for (auto& each : taken) each = take_block(bytes);
    for (auto* const each : taken) {
      give_block(each, bytes);
      ASSERT_LE(cached_now(), 2 * magazine_blocks);
    }
    EXPECT_EQ(cached_now(), caches_blocks ? 2 * magazine_blocks : 0U) << "and the depot is full";
  });
}

TEST(block_memory_test, BlocksReturnFromAnotherThread) {
  if (!caches_blocks) GTEST_SKIP() << "nothing is cached under a sanitizer";
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
  // All except the blocks that the other thread cached, and freed when it ended.
  EXPECT_GE(known, 6 * magazine_blocks);
}

TEST(block_memory_test, NoBlockIsAllocatedTwice) {
  constexpr std::size_t own_bytes = 224;
  constexpr std::size_t rounds = 20'000;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  std::array<std::atomic<int*>, 64> shared{};
  for (int me = 1; me <= 3; ++me) {
    threads.emplace_back([&, me] {
      for (std::size_t i = 0; i < rounds; ++i) {
        int* const own_block = ::new (take_block(own_bytes)) int(me);
        // Exchanges blocks with another thread, and frees the other thread's block here.
        int* const other = shared[(i * 7 + static_cast<std::size_t>(me)) % shared.size()].exchange(
            own_block, std::memory_order_acq_rel);
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

TEST(block_memory_test, LargeBlocksAreNotCached) {
  in_a_new_thread([] {
    constexpr std::size_t large = block_sizes * block_unit + 1;
    give_block(take_block(large), large);
    for (const auto& blocks : this_thread_cache.of_size) EXPECT_EQ(blocks.count, 0U);
  });
}

struct gives_back_late {
  void* block = nullptr;
  ~gives_back_late() { give_block(block, bytes); }
};

TEST(block_memory_test, BlocksFreedByAnEndingThreadAreReleased) {
  // The sanitizers detect a leak; without them this test only checks that it does not crash.
  in_a_new_thread([] {
    thread_local gives_back_late last;  // destroyed after the thread's cache
    last.block = take_block(bytes);
    give_block(take_block(bytes), bytes);
  });
}

}  // namespace
}  // namespace sluice::block_memory_test
