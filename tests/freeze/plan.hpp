// The decisions of the freezer: which thread stands still next, where, and for how long.
//
// They come from the seed alone, so `sluice_freeze --seed 7 --plan 20` always prints the same
// lines. Each run applies a decision at a different point of the program.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>

namespace sluice::freezing {

struct decision {
  std::chrono::microseconds gap;  // after the decision before
  std::uint64_t pick;             // modulo the number of threads
  // 0: where the thread is. Odd: at the entry of a system call, so between a check and a wait.
  // Even: at the return of one, so between a wake-up and the action. 3: the entry of the call after
  // the next.
  int calls;
  std::chrono::microseconds length;
  bool at_start;  // whether it also applies to a new thread
};

class plan {
 public:
  plan(std::uint64_t seed, std::chrono::milliseconds longest)
      : random_(seed), longest_(static_cast<double>(longest.count())) {}

  // Five draws each, so that the decisions do not depend on how they are used.
  decision next() {
    // 50 us to 50 ms, half of them below 1.6 ms: tests are short.
    const auto gap = micros(0.05 * std::pow(1000.0, fraction()));
    const std::uint64_t pick = random_();
    const int calls = std::max(0, static_cast<int>(random_() % 12) - 3);
    // 1 ms to the longest. At 300 ms, half of them last up to 2 ms and a tenth 60 ms or more.
    const auto length = micros(std::pow(longest_, std::pow(fraction(), 3)));
    return {gap, pick, calls, length, random_() % 8 == 0};
  }

 private:
  static std::chrono::microseconds micros(double ms) {
    return std::chrono::microseconds(std::llround(ms * 1000));
  }
  // In [0, 1). The distributions of std differ between libraries.
  double fraction() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }

  std::mt19937_64 random_;
  double longest_;
};

}  // namespace sluice::freezing
