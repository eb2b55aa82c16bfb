#pragma once

// Waits in a test until something that must happen has happened, and fails loudly when it has not
// within a minute. Polls: it is for conditions that nothing signals, such as "the other thread is
// parked by now" (`queue.waiting_to_pop() == 1`).

#include <chrono>
#include <thread>

#include "sluice/base/check.hpp"

namespace sluice::testing {

template <class Condition>
void eventually(Condition&& holds, const char* what = "the awaited condition to come true") {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    check(std::chrono::steady_clock::now() < give_up, "test", what);
    std::this_thread::yield();
  }
}

}  // namespace sluice::testing
