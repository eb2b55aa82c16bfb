#pragma once

// Rendezvous hashing: a key belongs to the owner with the largest weight for it, so that owners can
// be added and removed without moving other keys.
//
// Guarantees: a new owner takes only the keys for which its weight is the largest, about one in k +
// 1 of k + 1 owners; the keys of a removed owner spread evenly over the others, which keep their
// own. No two owners have the same weight for a key. Weights are the same in every run.
// Cost: a few nanoseconds for a weight; finding the owner takes one weight of each.
//
//     const auto owner = std::ranges::max(
//         owners, {}, [&](auto& o) { return rendezvous_weight(o.number, key); });

#include <cstdint>

namespace sluice::detail {

// A bijection that spreads any 64 bits evenly over all of them.
constexpr std::uint64_t mix(std::uint64_t bits) noexcept {
  bits += 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

constexpr std::uint64_t rendezvous_weight(std::uint64_t owner, std::uint64_t key) noexcept {
  return mix(key ^ mix(owner));
}

}  // namespace sluice::detail
