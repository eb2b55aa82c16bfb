#include "jobs/server/descriptor_shares.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::descriptor_shares_test {
namespace {

TEST(DescriptorShares, AreAsRequestedWithinTheLimit) {
  const descriptor_shares requested{.http = 1000, .posts = 64};
  EXPECT_EQ(share_descriptors(descriptors_for(requested), requested), requested);
  EXPECT_EQ(share_descriptors(1'000'000, requested), requested);
}

TEST(DescriptorShares, ReserveSomeForDeliveriesWhenConnectionsAreShort) {
  const auto shares = share_descriptors(1024, {.http = 10'000, .posts = 64});
  EXPECT_EQ(shares, (descriptor_shares{.http = 896, .posts = 64}));
}

TEST(DescriptorShares, ReserveThreeQuartersForConnections) {
  const auto shares = share_descriptors(1024, {.http = 10'000, .posts = 100'000});
  EXPECT_EQ(shares, (descriptor_shares{.http = 720, .posts = 240}));
  EXPECT_EQ(share_descriptors(1024, {.http = 100, .posts = 100'000}),
            (descriptor_shares{.http = 100, .posts = 860}));
}

TEST(DescriptorShares, AreDividedAmongTheProtocolsInProportion) {
  const descriptor_shares requested{
      .http = 10'000, .beanstalk = 20'000, .faktory = 10'000, .posts = 8};
  EXPECT_EQ(share_descriptors(1072, requested),
            (descriptor_shares{.http = 250, .beanstalk = 499, .faktory = 250, .posts = 8}));
  EXPECT_EQ(share_descriptors(1072, {.beanstalk = 20'000, .posts = 8}),
            (descriptor_shares{.beanstalk = 1000, .posts = 8}))
      << "a protocol that is off gets none";
}

TEST(DescriptorShares, AreAtLeastOneForEachThatIsOn) {
  for (std::uint64_t limit = 0; limit < 400; ++limit) {
    const auto shares =
        share_descriptors(limit, {.http = 10'000, .beanstalk = 10, .faktory = 1, .posts = 64});
    EXPECT_GE(shares.http, 1U);
    EXPECT_GE(shares.beanstalk, 1U);
    EXPECT_GE(shares.faktory, 1U);
    EXPECT_LE(descriptors_for(shares), std::max<std::uint64_t>(limit, descriptors_for_others + 4));
  }
}

TEST(DescriptorShares, FitIntoTheLimitAndAreNeverZero) {
  for (std::uint64_t limit = 0; limit < 2000; ++limit) {
    for (const std::uint64_t posts : {1U, 64U, 5000U}) {
      const auto shares = share_descriptors(limit, {.http = 700, .posts = posts});
      EXPECT_GE(shares.http, 1U);
      EXPECT_GE(shares.posts, 1U);
      EXPECT_LE(shares.posts, posts);
      if (limit > descriptors_for_others + 2) {
        EXPECT_LE(descriptors_for(shares), limit);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::jobs::descriptor_shares_test
