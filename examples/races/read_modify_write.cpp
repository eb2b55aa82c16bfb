// Read, modify, write
//
// Two threads increment one number. Each reads it, adds one, and writes the sum back. If both read
// before either has written, one increment is lost. Atomic steps do not help: the three steps
// together are not atomic.

#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/sync/guarded.hpp"

namespace {

void naive() {
  sluice::atomic<int> visits{0};
  const auto visit = [&] { visits.store(visits.load() + 1); };
  {
    std::jthread one(visit);
    std::jthread two(visit);
  }
  sluice::sim::check(visits.load() == 2, "both visits to be counted");
}

void ruled_out() {
  sluice::guarded<int> visits(0);
  const auto visit = [&] { visits.with([](int& n) { ++n; }); };
  {
    std::jthread one(visit);
    std::jthread two(visit);
  }
  sluice::sim::check(visits.with([](int n) { return n; }) == 2, "both visits to be counted");
}

[[maybe_unused]] const bool added = add({.order = 1,
                                         .file = "read_modify_write.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::check,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "guarded"});

}  // namespace
