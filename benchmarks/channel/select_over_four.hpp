#pragma once

// The workload: four producers with a channel each, and one consumer that selects over the four.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "benchmarks/threads.hpp"

namespace sluice::bench {

// FourChannels(capacity) creates the four channels, send(which, item) blocks while channel `which`
// is full, and receive_any() returns the next item of any of them. Every producer sends 1, 2, 3 and
// so on until the time has passed, then 0. The sum of the received items is checked.
template <class FourChannels>
tally select_over_four(std::size_t capacity, seconds duration) {
  constexpr std::size_t producers = 4;
  FourChannels channels(capacity);
  std::atomic<std::uint64_t> expected = 0;
  std::uint64_t arrived = 0;
  std::vector<thread_body> bodies;
  for (std::size_t p = 0; p < producers; ++p) {
    bodies.emplace_back([&channels, &expected, p](const run_clock& clock) {
      std::uint64_t item = 0;
      std::uint64_t sum = 0;
      while (!clock.has_ended()) {
        channels.send(p, ++item);
        sum += item;
      }
      channels.send(p, 0);
      expected += sum;
      return item;
    });
  }
  bodies.emplace_back([&](const run_clock&) {
    for (std::size_t still_sending = producers; still_sending != 0;) {
      const std::uint64_t item = channels.receive_any();
      arrived += item;
      if (item == 0) --still_sending;
    }
    return std::uint64_t{0};  // each item counts once, where it was sent
  });
  const tally result = run_threads(duration, std::move(bodies));
  expect_equal(arrived, expected, "sum of the items that arrived");
  return result;
}

}  // namespace sluice::bench
