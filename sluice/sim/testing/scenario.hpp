#pragma once

// A small concurrent program that must hold in every schedule, and how long it is explored. The
// suite (tests/sim) runs all that are in it; the mutations (tests/mutations) run the same ones
// against a library that was broken on purpose, and expect one of them to fail.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/testing/effort.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim {

struct scenario {
  std::string name;  // "bounded_queue: close wakes who waits"
  options how{};     // its name is filled in
  std::function<void()> body;
};

// Add to it from a function that is called when the program starts:
//     const bool added = add({.name = ..., .body = [] { ... }});
inline std::vector<scenario>& all_scenarios() {
  static std::vector<scenario> all;
  return all;
}

inline bool add(scenario s) {
  s.how.name = s.name;
  all_scenarios().push_back(std::move(s));
  return true;
}

// The share of a random search's schedules that `program` runs, in percent.
inline std::uint64_t percent_of_schedules(const std::string& program) {
  return sluice::testing::effort(program, "% of the random schedules",
                                 {.ci = 25, .full = 200});
}

// The options with that share of the schedules. An exhaustive search stays as it is.
inline options reduced(options how, std::uint64_t percent) {
  if (how.how != search::exhaustive) {
    how.schedules = std::max<std::uint64_t>(1, how.schedules * percent / 100);
  }
  return how;
}

// Every schedule with at most two preemptions. For programs of two threads and few steps.
inline options exhaustively(unsigned preemptions = 2) {
  return {.how = search::exhaustive, .schedules = 0, .preemptions = preemptions};
}

}  // namespace sluice::sim
