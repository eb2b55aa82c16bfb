// The memory of a schedule: no two blocks share a byte, also where blocks begin to be taken again.

#include "sluice/sim/detail/arena.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::sim::detail::arena_test {
namespace {

struct block {
  unsigned char* at;
  std::size_t bytes;
  unsigned char with;
};

bool is_whole(const block& b) {
  for (std::size_t i = 0; i < b.bytes; ++i) {
    if (b.at[i] != b.with) return false;
  }
  return true;
}

class user {
 public:
  explicit user(std::uint64_t seed) : chance_(seed) {}

  void take(std::size_t bytes) {
    auto* const at = static_cast<unsigned char*>(memory_.take(bytes, 16, 0));
    ASSERT_NE(at, nullptr);
    const auto with = static_cast<unsigned char>(1 + chance_.below(200));
    std::memset(at, with, bytes);
    held_.push_back({at, bytes, with});
    taken_ += bytes + 16;
  }
  void give_one_back() {
    const auto which = chance_.below(static_cast<std::uint32_t>(held_.size()));
    std::swap(held_[which], held_.back());
    EXPECT_TRUE(is_whole(held_.back())) << held_.back().bytes << " bytes";
    EXPECT_TRUE(memory_.give_back(held_.back().at));
    held_.pop_back();
  }
  std::size_t held() const { return held_.size(); }
  std::size_t taken() const { return taken_; }
  random& chance() { return chance_; }

 private:
  random chance_;
  arena memory_;
  std::vector<block> held_;
  std::size_t taken_ = 0;
};

// The block on which the limit falls is of another size, and at another place, in each of them.
TEST(arena_test, BlocksDoNotShareBytesWhereReuseBegins) {
  constexpr std::size_t limit = std::size_t{64} << 20;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    user it(seed);
    it.take(limit - 4096);
    while (it.taken() < limit + 65536) {
      it.take(1 + it.chance().below(100));
      if (it.held() > 20) it.give_one_back();
    }
    while (it.held() > 0) it.give_one_back();
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(arena_test, WhatWasGivenBackIsKnownAndCannotBeGivenBackAgain) {
  arena memory;
  void* const at = memory.take(40, 16, 7);
  EXPECT_FALSE(memory.is_gone(at));
  EXPECT_EQ(memory.live_blocks(), 1U);
  EXPECT_EQ(memory.first_live().bytes, 40U);
  EXPECT_EQ(memory.first_live().step, 7U);
  EXPECT_TRUE(memory.give_back(at));
  EXPECT_TRUE(memory.is_gone(at));
  EXPECT_FALSE(memory.give_back(at));
  EXPECT_EQ(memory.live_blocks(), 0U);
}

TEST(arena_test, WhatDoesNotFitIsRefused) {
  arena memory;
  EXPECT_EQ(memory.take(std::size_t{2} << 30, 16, 0), nullptr);
  EXPECT_NE(memory.take(1, 4096, 0), nullptr);
}

}  // namespace
}  // namespace sluice::sim::detail::arena_test
