// Explores every scenario, prints the number of schedules, and fails if a scenario failed.
//
//   sluice_sim_suite [--filter TEXT] [--at-least N] [--at-least-long N] [--replay TRACE]
//
//   --filter         only scenarios whose name contains the text
//   --at-least       fails if all scenarios together ran fewer schedules
//   --at-least-long  replaces --at-least if SLUICE_LONG=1
//   --replay         runs this one schedule of the scenario that --filter names
//
// SLUICE_SEED is the seed of the random searches (1), SLUICE_LONG=1 runs more schedules.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "sluice/sim/testing/scenario.hpp"

namespace {

struct arguments {
  std::string filter;
  std::string replay;
  std::uint64_t at_least = 0;
  std::uint64_t at_least_long = 0;
};

bool parse(int count, char** given, arguments& into) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = given[i];
    const char* const value = given[i + 1];
    if (name == "--filter") {
      into.filter = value;
    } else if (name == "--replay") {
      into.replay = value;
    } else if (name == "--at-least") {
      into.at_least = std::strtoull(value, nullptr, 10);
    } else if (name == "--at-least-long") {
      into.at_least_long = std::strtoull(value, nullptr, 10);
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

const char* to_string(sluice::sim::search mode) {
  switch (mode) {
    case sluice::sim::search::random:
      return "random";
    case sluice::sim::search::pct:
      return "pct";
    case sluice::sim::search::mixed:
      return "mixed";
    case sluice::sim::search::exhaustive:
      return "exhaustive";
    case sluice::sim::search::replay:
      break;
  }
  return "replay";
}

}  // namespace

int main(int count, char** given) try {
  using sluice::sim::search;
  arguments asked;
  if (!parse(count, given, asked)) {
    std::fprintf(stderr, "sluice_sim_suite: see the comment in suite_main.cpp for its arguments\n");
    return 2;
  }
  const std::string path = given[0];
  const std::string program = path.substr(path.rfind('/') + 1);
  const std::uint64_t percent = sluice::sim::percent_of_schedules(program);
  const std::uint64_t seed = sluice::testing::seed(program, 1);
  const auto began = std::chrono::steady_clock::now();
  std::uint64_t schedules = 0;
  std::uint64_t steps = 0;
  int failed = 0;
  int run = 0;
  std::printf("%-62s %-10s %10s %8s %7s\n", "scenario", "search", "schedules", "longest", "ms");
  for (const auto& s : sluice::sim::all_scenarios()) {
    if (s.name.find(asked.filter) == std::string::npos) continue;
    auto o = sluice::sim::reduced(s.options, percent);
    if (o.search != search::exhaustive) o.seed = seed;
    if (!asked.replay.empty()) {
      o.search = search::replay;
      o.trace = asked.replay;
    }
    ++run;
    const auto start = std::chrono::steady_clock::now();
    const auto r = sluice::sim::explore(o, s.body);
    const auto took = std::chrono::steady_clock::now() - start;
    schedules += r.schedules;
    steps += r.steps;
    const bool unfinished = o.search == search::exhaustive && o.schedules == 0 && !r.complete;
    std::printf(
        "%-62s %-10s %10llu %8u %7lld%s\n", s.name.c_str(), to_string(o.search),
        static_cast<unsigned long long>(r.schedules), r.steps_longest,
        static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()),
        r.failed()   ? "  FAILED"
        : unfinished ? "  NOT COMPLETE"
                     : "");
    if (r.failed()) std::printf("\n%s\n", r.text().c_str());
    if (r.failed() || unfinished) ++failed;
    std::fflush(stdout);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  std::printf("sim: %s: %d scenarios, %llu schedules, %llu steps in %lld ms: %d failed\n",
              program.c_str(), run, static_cast<unsigned long long>(schedules),
              static_cast<unsigned long long>(steps), static_cast<long long>(took.count()), failed);
  if (run == 0) {
    std::fprintf(stderr, "no scenario has '%s' in its name\n", asked.filter.c_str());
    return 2;
  }
  const std::uint64_t at_least =
      sluice::testing::is_long_run() ? asked.at_least_long : asked.at_least;
  if (schedules < at_least) {
    std::fprintf(stderr, "expected at least %llu schedules\n",
                 static_cast<unsigned long long>(at_least));
    return 1;
  }
  return failed == 0 ? 0 : 1;
} catch (const std::invalid_argument& wrong) {
  std::fprintf(stderr, "sluice_sim_suite: %s\n", wrong.what());
  return 2;
}
