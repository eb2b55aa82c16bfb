// Lost wake-up
//
// A thread checks a condition, finds it false, and goes to sleep. In between, another thread makes
// the condition true and notifies: no thread sleeps yet, so the notification is lost, and the
// sleeper sleeps for ever. The lock is held for each step, but not from the check to the sleep.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/sync/event.hpp"

namespace {

void naive() {
  std::mutex mutex;
  std::condition_variable arrived;
  sluice::race_checked<bool> here{false};  // guarded by mutex
  std::jthread guest([&] {
    {
      const std::lock_guard hold(mutex);
      here.write(true);
    }
    arrived.notify_one();
  });
  bool must_wait = false;
  {
    const std::lock_guard hold(mutex);
    must_wait = !here.read();
  }
  if (must_wait) {
    std::unique_lock hold(mutex);
    arrived.wait(hold);
  }
}

void ruled_out() {
  sluice::event arrived;
  std::jthread guest([&] { arrived.set(); });
  arrived.wait();
}

[[maybe_unused]] const bool added = add({.order = 4,
                                         .file = "lost_wake_up.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::deadlock,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "event"});

}  // namespace
