// Starvation
//
// A lock without an order of waiters. One thread takes it again and again until a flag is set; the
// thread that sets the flag needs the lock first. That thread gets its turns on the processor, but
// at each attempt the lock is taken.

#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/sync/fair_mutex.hpp"

namespace {

class grabbed_lock {
 public:
  void lock() {
    while (taken_.exchange(true, sluice::acquire)) sluice::sim::yield();
  }
  void unlock() { taken_.store(false, sluice::release); }

 private:
  sluice::atomic<bool> taken_{false};
};

template <class Lock>
void one_greedy_one_modest() {
  Lock lock;
  sluice::atomic<bool> enough{false};
  sluice::atomic<int> work{0};
  std::jthread greedy([&] {
    while (!enough.load(sluice::relaxed)) {
      lock.lock();
      for (int i = 0; i < 12; ++i) work.fetch_add(1, sluice::relaxed);
      lock.unlock();
    }
  });
  lock.lock();
  enough.store(true, sluice::relaxed);
  lock.unlock();
}

void naive() {
  one_greedy_one_modest<grabbed_lock>();
}

void ruled_out() {
  one_greedy_one_modest<sluice::fair_mutex>();
}

[[maybe_unused]] const bool added = add({.order = 9,
                                         .file = "starvation.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::livelock,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "fair_mutex"});

}  // namespace
