#pragma once

// Divides the process's file descriptors if its limit is below what the settings need.
//
// Guarantees: the sum of the shares and `descriptors_for_others` is within the limit, if the limit
// allows at least one of each; no share exceeds the requested number, and no requested share is
// zero. If connections are short, deliveries get at most a quarter; the protocols share the rest in
// proportion to their requests.
//
//     const auto shares = share_descriptors(1024, {.http = 10'000, .posts = 64});
//     // {.http = 896, .posts = 64}

#include <cstdint>

namespace sluice::jobs {

// For the store's files, the log, and libraries.
inline constexpr std::uint64_t descriptors_for_others = 64;

struct descriptor_shares {
  // Connections of clients; 0 for a protocol that is off.
  std::uint64_t http = 0;
  std::uint64_t beanstalk = 0;
  std::uint64_t faktory = 0;
  std::uint64_t posts = 1;  // requests of deliveries, one connection each

  std::uint64_t connections() const noexcept { return http + beanstalk + faktory; }

  friend bool operator==(const descriptor_shares&, const descriptor_shares&) = default;
};

// Returns the descriptors needed for all of these.
std::uint64_t descriptors_for(const descriptor_shares& requested) noexcept;
descriptor_shares share_descriptors(std::uint64_t limit,
                                    const descriptor_shares& requested) noexcept;

}  // namespace sluice::jobs
