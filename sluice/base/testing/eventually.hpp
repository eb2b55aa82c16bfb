#pragma once

// Blocks a test until a condition holds; after a minute, aborts it with a message. Polls: for
// conditions that nothing signals, such as "the other thread is parked", which is
// `queue.waiting_to_pop() == 1`.
//
// Each poll counts at most 10 ms of the minute, so time in which the process does not run hardly
// counts.

#include <algorithm>
#include <chrono>
#include <thread>

#include "sluice/base/check.hpp"

namespace sluice::testing {

template <class Condition>
void eventually(Condition&& holds, const char* expected = "the awaited condition to become true") {
  using clock = std::chrono::steady_clock;
  clock::duration left = std::chrono::minutes(1);
  clock::time_point last_poll = clock::now();
  while (!holds()) {
    const auto now = clock::now();
    left -= std::min<clock::duration>(now - last_poll, std::chrono::milliseconds(10));
    last_poll = now;
    check(left > clock::duration::zero(), "test", expected);
    std::this_thread::yield();
  }
}

}  // namespace sluice::testing
