#pragma once

// Blocks a test until a condition holds, and aborts it with a message after a minute. Polls: it is
// for conditions that nothing signals, such as "the other thread is parked by now"
// (`queue.waiting_to_pop() == 1`).
//
// A poll adds at most 10 ms to that minute, so time in which the process does not run hardly
// counts.

#include <algorithm>
#include <chrono>
#include <thread>

#include "sluice/base/check.hpp"

namespace sluice::testing {

template <class Condition>
void eventually(Condition&& holds, const char* what = "the awaited condition to come true") {
  using clock = std::chrono::steady_clock;
  clock::duration left = std::chrono::minutes(1);
  clock::time_point last_poll = clock::now();
  while (!holds()) {
    const auto now = clock::now();
    left -= std::min<clock::duration>(now - last_poll, std::chrono::milliseconds(10));
    last_poll = now;
    check(left > clock::duration::zero(), "test", what);
    std::this_thread::yield();
  }
}

}  // namespace sluice::testing
