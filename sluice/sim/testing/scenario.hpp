#pragma once

// A small concurrent program that must hold in every schedule, with its exploration options. The
// suite (tests/sim) runs all scenarios; the mutations (tests/mutations) run the same ones against a
// library with a deliberate bug, and expect one of them to fail.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/testing/effort.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim {

struct scenario {
  std::string name;        // "bounded_queue: close wakes the waiters"
  sim::options options{};  // `add` fills in the name
  std::function<void()> body;
};

// To register a scenario, call `add` in a static initializer:
//     const bool added = add({.name = ..., .body = [] { ... }});
inline std::vector<scenario>& all_scenarios() {
  static std::vector<scenario> all;
  return all;
}

inline bool add(scenario s) {
  s.options.name = s.name;
  all_scenarios().push_back(std::move(s));
  return true;
}

// Returns the percentage of a random search's schedules that `program` runs.
inline std::uint64_t percent_of_schedules(const std::string& program) {
  return sluice::testing::effort(program, "% of the random schedules", {.ci = 25, .full = 200});
}

// Returns the options with that percentage of the schedules. An exhaustive search is unchanged.
inline options reduced(options o, std::uint64_t percent) {
  if (o.search != search::exhaustive) {
    o.schedules = std::max<std::uint64_t>(1, o.schedules * percent / 100);
  }
  return o;
}

// Returns options for every schedule with at most `preemptions` preemptions. For programs of two
// threads and few steps.
inline options exhaustively(unsigned preemptions = 2) {
  return {.search = search::exhaustive, .schedules = 0, .preemptions = preemptions};
}

}  // namespace sluice::sim
