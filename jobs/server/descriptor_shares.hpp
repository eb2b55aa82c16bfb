#pragma once

// How the descriptors that the system lets a server have are divided when they are fewer than its
// settings ask for.
//
// Guarantees: what is given out fits into the limit together with `descriptors_for_others`, as long
// as the limit leaves room for one of each; none gets more than it asked for, and none is starved
// by another: deliveries get at most a quarter while connections are short, and each protocol's
// connections their part of the rest, in the proportion of what was asked for.
//
//     const auto shares = share_descriptors(1024, {.http = 10'000, .posts = 64});
//     // {.http = 896, .posts = 64}

#include <cstdint>

namespace sluice::jobs {

// The store's files, the log, what the system's libraries open.
inline constexpr std::uint64_t descriptors_for_others = 64;

struct descriptor_shares {
  // Connections of clients; zero of a protocol that is off.
  std::uint64_t http = 0;
  std::uint64_t beanstalk = 0;
  std::uint64_t faktory = 0;
  std::uint64_t posts = 1;  // requests of deliveries, each with a connection of its own

  std::uint64_t connections() const noexcept { return http + beanstalk + faktory; }

  friend bool operator==(const descriptor_shares&, const descriptor_shares&) = default;
};

// How many it takes to have all of these.
std::uint64_t descriptors_for(const descriptor_shares& asked) noexcept;
descriptor_shares share_descriptors(std::uint64_t limit, const descriptor_shares& asked) noexcept;

}  // namespace sluice::jobs
