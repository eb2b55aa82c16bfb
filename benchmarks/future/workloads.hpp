#pragma once

// The workloads on one thread: a contender provides the function for one round of each.

#include <cstdint>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

inline constexpr std::uint64_t chain_length = 10;
inline constexpr std::uint64_t all_count = 1000;

// `round(n)` returns n + 10, having sent n through ten continuations that add one.
template <class Round>
tally run_chain10(seconds duration, Round&& round) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t rounds = 0;
  std::uint64_t sum = 0;
  std::uint64_t expected = 0;
  seconds took{};
  do {
    for (int batch = 0; batch < 100; ++batch, ++rounds) {
      sum += round(rounds);
      expected += rounds + chain_length;
    }
    took = std::chrono::steady_clock::now() - start;
  } while (took < duration);
  expect_equal(sum, expected, "sum of the chains' results");
  return {rounds * chain_length, took};
}

// `round(n)` sets a thousand promises to n and returns the sum of the values of their when_all.
template <class Round>
tally run_when_all_1000(seconds duration, Round&& round) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t rounds = 0;
  std::uint64_t sum = 0;
  std::uint64_t expected = 0;
  seconds took{};
  do {
    sum += round(rounds);
    expected += rounds * all_count;
    ++rounds;
    took = std::chrono::steady_clock::now() - start;
  } while (took < duration);
  expect_equal(sum, expected, "sum of the values");
  return {rounds * all_count, took};
}

}  // namespace sluice::bench
