#pragma once

// A race in two forms: the program that has it, and the same program with the type that rules it
// out. Each file of this folder adds one; main.cpp explores both and writes docs/concepts/races.md.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/sim/explore.hpp"

struct race {
  int order = 0;  // of its chapter
  std::string file;
  std::function<void()> naive;
  sluice::sim::failure_kind shows_as{};
  std::uint64_t within = 0;  // schedules in which the race is found; the other form runs as many
  std::function<void()> ruled_out;
  std::string by;  // the type that does it
};

std::vector<race>& all_races();

inline bool add(race r) {
  all_races().push_back(std::move(r));
  return true;
}
