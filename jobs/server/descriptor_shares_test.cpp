#include "jobs/server/descriptor_shares.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs {
namespace {

TEST(DescriptorShares, AreAllThatWasAskedForWhereThereIsRoom) {
  const descriptor_shares asked{.connections = 1000, .posts = 64};
  EXPECT_EQ(share_descriptors(descriptors_for(asked), asked), asked);
  EXPECT_EQ(share_descriptors(1'000'000, asked), asked);
}

TEST(DescriptorShares, LeaveRoomForDeliveriesWhereConnectionsAreShort) {
  const auto shares = share_descriptors(1024, {.connections = 10'000, .posts = 64});
  EXPECT_EQ(shares, (descriptor_shares{.connections = 896, .posts = 64}));
}

TEST(DescriptorShares, LeaveConnectionsThreeQuartersWhereDeliveriesAskForTooMany) {
  const auto shares = share_descriptors(1024, {.connections = 10'000, .posts = 100'000});
  EXPECT_EQ(shares, (descriptor_shares{.connections = 720, .posts = 240}));
  EXPECT_EQ(share_descriptors(1024, {.connections = 100, .posts = 100'000}),
            (descriptor_shares{.connections = 100, .posts = 860}));
}

TEST(DescriptorShares, FitIntoTheLimitAndAreNeverNone) {
  for (std::uint64_t limit = 0; limit < 2000; ++limit) {
    for (const std::uint64_t posts : {1U, 64U, 5000U}) {
      const auto shares = share_descriptors(limit, {.connections = 700, .posts = posts});
      EXPECT_GE(shares.connections, 1U);
      EXPECT_GE(shares.posts, 1U);
      EXPECT_LE(shares.posts, posts);
      if (limit > descriptors_for_others + 2) {
        EXPECT_LE(descriptors_for(shares), limit);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::jobs
