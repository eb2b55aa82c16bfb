#pragma once

// Whose is a key, when owners come and go: each bids for it, and it belongs to the one that bids
// most (rendezvous hashing).
//
// Guarantees: a newcomer takes only the keys that it bids most for, about every (k+1)th of k + 1;
// those of one that leaves are spread evenly over all the others, which keep their own. No two
// owners bid the same for a key. The same numbers give the same bids in every run.
// Cost: a few nanoseconds a bid; finding the owner takes a bid of each.
//
//     const auto best = std::ranges::max(owners, {}, [&](auto& o) { return bid(o.number, key); });

#include <cstdint>

namespace sluice {

namespace detail {

// Spreads any 64 bits evenly over all of them; no two give the same.
constexpr std::uint64_t mix(std::uint64_t bits) noexcept {
  bits += 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

}  // namespace detail

constexpr std::uint64_t bid(std::uint64_t owner, std::uint64_t key) noexcept {
  return detail::mix(key ^ detail::mix(owner));
}

}  // namespace sluice
