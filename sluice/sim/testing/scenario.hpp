#pragma once

// A small concurrent program that must hold in every schedule, and how long it is explored. The
// suite (tests/sim) runs all that are in it; the mutations (tests/mutations) run the same ones
// against a library that was broken on purpose, and expect one of them to fail.

#include <functional>
#include <string>
#include <vector>

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

// Every schedule with at most two preemptions. For programs of two threads and few steps.
inline options exhaustively(unsigned preemptions = 2) {
  return {.how = search::exhaustive, .schedules = 0, .preemptions = preemptions};
}

}  // namespace sluice::sim
