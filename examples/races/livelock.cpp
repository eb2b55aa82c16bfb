// Livelock
//
// Two threads are polite: each announces that it will enter, and waits while the other one has
// announced the same. If both have announced it, both wait, busy, and neither ever enters.

#include <array>
#include <cstddef>
#include <mutex>
#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/sync/mutex.hpp"

namespace {

void naive() {
  std::array<sluice::atomic<bool>, 2> wants{};
  sluice::race_checked<int> passed{0};
  const auto pass = [&](std::size_t me) {
    wants[me].store(true);
    while (wants[1 - me].load()) sluice::sim::yield();
    passed.change() += 1;
    wants[me].store(false);
  };
  std::jthread one([&] { pass(0); });
  pass(1);
}

void ruled_out() {
  sluice::mutex narrow;
  sluice::race_checked<int> passed{0};  // guarded by narrow
  const auto pass = [&] {
    const std::lock_guard hold(narrow);
    passed.change() += 1;
  };
  std::jthread one(pass);
  pass();
}

[[maybe_unused]] const bool added = add({.order = 8,
                                         .file = "livelock.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::livelock,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "mutex"});

}  // namespace
