#include "sluice/base/detail/rendezvous.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace sluice::rendezvous_test {
namespace {

using namespace sluice::detail;

std::uint64_t owner_of(std::uint64_t key, std::uint64_t owners) {
  std::uint64_t best = 1;
  for (std::uint64_t o = 2; o <= owners; ++o) {
    if (rendezvous_weight(o, key) > rendezvous_weight(best, key)) best = o;
  }
  return best;
}

TEST(rendezvous_test, OwnersHaveAboutTheSameNumberOfKeys) {
  std::vector<int> keys_of(6);
  for (std::uint64_t key = 0; key < 5000; ++key) ++keys_of[owner_of(key, 5)];
  for (std::uint64_t o = 1; o <= 5; ++o) {
    EXPECT_GT(keys_of[o], 850) << o;
    EXPECT_LT(keys_of[o], 1150) << o;
  }
}

TEST(rendezvous_test, OnlyTheNewOwnerTakesKeys) {
  for (std::uint64_t key = 0; key < 1000; ++key) {
    const std::uint64_t before = owner_of(key, 4);
    const std::uint64_t after = owner_of(key, 5);
    EXPECT_TRUE(after == before || after == 5) << key;
  }
}

TEST(rendezvous_test, NoTwoOwnersHaveTheSameWeightForAKey) {
  for (std::uint64_t key = 0; key < 50; ++key) {
    std::set<std::uint64_t> bids;
    for (std::uint64_t o = 0; o < 100; ++o) bids.insert(rendezvous_weight(o, key));
    EXPECT_EQ(bids.size(), 100U);
  }
}

}  // namespace
}  // namespace sluice::rendezvous_test
