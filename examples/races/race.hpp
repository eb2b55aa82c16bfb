#pragma once

// A race in two forms: a program that has it, and the same program with the type that rules it out.
// Each file of this folder adds one; main.cpp explores both and writes docs/concepts/races.md.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/sim/explore.hpp"

struct race {
  int order = 0;  // position of its chapter in the page
  std::string file;
  std::function<void()> naive;
  sluice::sim::failure_kind shows_as{};
  std::uint64_t within = 0;  // schedules to explore, for each of the two forms
  std::function<void()> ruled_out;
  std::string by;  // the type that rules it out
};

std::vector<race>& all_races();

inline bool add(race r) {
  all_races().push_back(std::move(r));
  return true;
}
