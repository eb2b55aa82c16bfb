#pragma once

// A stress test says what it did: its name, the seed that repeats its choices, and how many
// operations ran. SLUICE_SEED in the environment gives it a seed of your own.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "sluice/base/random.hpp"

namespace sluice::testing {

class stress {
 public:
  stress() {
    const char* const given = std::getenv("SLUICE_SEED");
    seed_ = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  }
  stress(const stress&) = delete;
  stress& operator=(const stress&) = delete;
  ~stress() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::printf("[  STRESS  ] %s.%s: %llu operations, SLUICE_SEED=%llu\n",
                test != nullptr ? test->test_suite_name() : "?",
                test != nullptr ? test->name() : "?",
                static_cast<unsigned long long>(operations_.load()),
                static_cast<unsigned long long>(seed_));
  }

  // One generator a thread: the same seed and number give the same choices.
  random generator(std::uint64_t number) const { return random(seed_ + number * 1'000'003); }
  void did(std::uint64_t operations = 1) { operations_ += operations; }
  std::uint64_t operations() const { return operations_.load(); }

 private:
  std::uint64_t seed_ = 0;
  std::atomic<std::uint64_t> operations_{0};
};

}  // namespace sluice::testing
