// Explores the linked scenarios until one fails. Succeeds if that failure was expected.
//
//   sluice_mutant_NAME --expect KIND[,KIND...] [--filter TEXT]
//
//   --expect  the failure that the mutation causes: check, race, deadlock, livelock, exception,
//             leak, use_after_free or crash; or `nothing`: every scenario must hold
//   --filter  only scenarios whose name contains the text
//
// Scenarios run the same share of schedules as in tests/sim.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/sim/testing/scenario.hpp"

namespace {

using sluice::sim::failure_kind;

struct arguments {
  std::vector<std::string> expected;
  std::string filter;
};

bool parse(int count, char** given, arguments& parsed) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = given[i];
    if (name == "--expect") {
      std::istringstream kinds(given[i + 1]);
      for (std::string kind; std::getline(kinds, kind, ',');) parsed.expected.push_back(kind);
    } else if (name == "--filter") {
      parsed.filter = given[i + 1];
    } else {
      return false;
    }
  }
  return count % 2 == 1 && !parsed.expected.empty();
}

const char* word_for(failure_kind kind) {
  switch (kind) {
    case failure_kind::check:
      return "check";
    case failure_kind::race:
      return "race";
    case failure_kind::deadlock:
      return "deadlock";
    case failure_kind::livelock:
      return "livelock";
    case failure_kind::endless_loop:
      return "endless_loop";
    case failure_kind::exception:
      return "exception";
    case failure_kind::leak:
      return "leak";
    case failure_kind::use_after_free:
      return "use_after_free";
    case failure_kind::crash:
      break;
  }
  return "crash";
}

int found(const sluice::sim::result& r, std::uint64_t schedules_before,
          const std::vector<std::string>& expected) {
  std::printf(
      "sim: mutant found, %s: '%s', schedule %llu (%llu before it in other scenarios), %td "
      "deviations\n",
      word_for(r.kind), r.name.c_str(), static_cast<unsigned long long>(r.schedule),
      static_cast<unsigned long long>(schedules_before),
      std::count(r.trace.begin(), r.trace.end(), ','));
  std::printf("%s\n", r.text().c_str());
  const bool is_expected =
      std::find(expected.begin(), expected.end(), word_for(r.kind)) != expected.end();
  if (!is_expected) std::fprintf(stderr, "the mutation was expected to fail in another way\n");
  return is_expected ? 0 : 1;
}

}  // namespace

int main(int count, char** given) try {
  arguments wanted;
  if (!parse(count, given, wanted)) {
    std::fprintf(stderr, "see the comment in mutant_main.cpp for its arguments\n");
    return 2;
  }
  const std::uint64_t percent = sluice::sim::percent_of_schedules("mutant");
  std::uint64_t schedules = 0;
  int run = 0;
  for (const auto& s : sluice::sim::all_scenarios()) {
    if (s.name.find(wanted.filter) == std::string::npos) continue;
    ++run;
    const auto r = sluice::sim::explore(sluice::sim::reduced(s.options, percent), s.body);
    if (r.failed()) return found(r, schedules, wanted.expected);
    schedules += r.schedules;
  }
  std::printf("sim: mutant %s, %d scenarios, %llu schedules\n",
              wanted.expected.front() == "nothing" ? "none, nothing found" : "NOT found", run,
              static_cast<unsigned long long>(schedules));
  return run > 0 && wanted.expected.front() == "nothing" ? 0 : 1;
} catch (const std::invalid_argument& wrong) {
  std::fprintf(stderr, "mutant: %s\n", wrong.what());
  return 2;
}
