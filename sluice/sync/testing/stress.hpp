#pragma once

// A stress test prints its name, the seed that repeats its choices, and how many operations ran.

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::testing {

class stress {
 public:
  stress() = default;
  stress(const stress&) = delete;
  stress& operator=(const stress&) = delete;
  ~stress() {
    std::printf("[  STRESS  ] %s: %llu operations\n", test_name().c_str(),
                static_cast<unsigned long long>(operations_.load()));
  }

  // One generator a thread: the same seed and number give the same choices.
  random generator(std::uint64_t number) const { return random(seed_ + number * 1'000'003); }
  void did(std::uint64_t operations = 1) { operations_ += operations; }
  std::uint64_t operations() const { return operations_.load(); }

 private:
  std::uint64_t seed_ = seed(test_name());
  std::atomic<std::uint64_t> operations_{0};
};

}  // namespace sluice::testing
