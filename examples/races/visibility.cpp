// Visibility
//
// One thread stores a result and then sets a flag; another thread checks the flag and reads the
// result. Both variables are atomic and relaxed, which only guarantees that no value is torn. The
// reader may see the flag set and still read the old result.

#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/sync/event.hpp"

namespace {

void naive() {
  sluice::atomic<int> result{0};
  sluice::atomic<bool> ready{false};
  std::jthread worker([&] {
    result.store(42, sluice::relaxed);
    ready.store(true, sluice::relaxed);
  });
  if (ready.load(sluice::relaxed)) {
    sluice::sim::check(result.load(sluice::relaxed) == 42, "the result that is ready");
  }
}

void ruled_out() {
  sluice::race_checked<int> result{0};
  sluice::event ready;
  std::jthread worker([&] {
    result.write(42);
    ready.set();
  });
  ready.wait();
  sluice::sim::check(result.read() == 42, "the result that is ready");
}

[[maybe_unused]] const bool added = add({.order = 6,
                                         .file = "visibility.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::check,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "event"});

}  // namespace
