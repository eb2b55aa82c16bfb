#pragma once

// How the descriptors that the system lets a server have are divided when they are fewer than its
// settings ask for.
//
// Guarantees: what is given out fits into the limit together with `descriptors_for_others`, as long
// as the limit leaves room for one of each; neither gets more than it asked for, and neither is
// starved by the other: deliveries get at most a quarter while connections are short.
//
//     const auto shares = share_descriptors(1024, {.connections = 10'000, .posts = 64});
//     // {.connections = 896, .posts = 64}

#include <cstdint>

namespace sluice::jobs {

// The store's files, the log, what the system's libraries open.
inline constexpr std::uint64_t descriptors_for_others = 64;

struct descriptor_shares {
  std::uint64_t connections = 1;  // of clients
  std::uint64_t posts = 1;        // requests of deliveries, each with a connection of its own

  friend bool operator==(const descriptor_shares&, const descriptor_shares&) = default;
};

// How many it takes to have all of these.
std::uint64_t descriptors_for(const descriptor_shares& asked) noexcept;
descriptor_shares share_descriptors(std::uint64_t limit, const descriptor_shares& asked) noexcept;

}  // namespace sluice::jobs
