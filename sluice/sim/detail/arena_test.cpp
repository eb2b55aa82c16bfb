// The memory of a schedule: no two blocks overlap, also where the reuse of blocks begins.

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
    auto* const at = static_cast<unsigned char*>(memory_.allocate(bytes, 16, 0));
    ASSERT_NE(at, nullptr);
    const auto with = static_cast<unsigned char>(1 + chance_.below(200));
    std::memset(at, with, bytes);
    held_.push_back({at, bytes, with});
    taken_ += bytes + 16;
  }
  void free_one() {
    const auto which = chance_.below(static_cast<std::uint32_t>(held_.size()));
    std::swap(held_[which], held_.back());
    EXPECT_TRUE(is_whole(held_.back())) << held_.back().bytes << " bytes";
    EXPECT_TRUE(memory_.release(held_.back().at));
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

// The block at the limit has a different size and place for each seed.
TEST(arena_test, BlocksDoNotOverlapWhereReuseBegins) {
  constexpr std::size_t limit = std::size_t{64} << 20;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    user owner(seed);
    owner.take(limit - 4096);
    while (owner.taken() < limit + 65536) {
      owner.take(1 + owner.chance().below(100));
      if (owner.held() > 20) owner.free_one();
    }
    while (owner.held() > 0) owner.free_one();
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(arena_test, AFreedBlockIsRecognizedAndCannotBeFreedAgain) {
  arena memory;
  void* const at = memory.allocate(40, 16, 7);
  EXPECT_FALSE(memory.is_freed(at));
  EXPECT_EQ(memory.live_blocks(), 1U);
  EXPECT_EQ(memory.first_live().bytes, 40U);
  EXPECT_EQ(memory.first_live().step, 7U);
  EXPECT_TRUE(memory.release(at));
  EXPECT_TRUE(memory.is_freed(at));
  EXPECT_FALSE(memory.release(at));
  EXPECT_EQ(memory.live_blocks(), 0U);
}

TEST(arena_test, ABlockThatDoesNotFitIsRejected) {
  arena memory;
  EXPECT_EQ(memory.allocate(std::size_t{2} << 30, 16, 0), nullptr);
  EXPECT_NE(memory.allocate(1, 4096, 0), nullptr);
}

}  // namespace
}  // namespace sluice::sim::detail::arena_test
