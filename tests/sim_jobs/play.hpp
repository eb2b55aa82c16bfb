#pragma once

// Plays a plan once under the simulator, and returns the result.

#include <string>
#include <utility>

#include "sluice/sim/explore.hpp"
#include "tests/sim_jobs/event_log.hpp"
#include "tests/sim_jobs/remains.hpp"

namespace sluice::sim_jobs {

template <class Made>
struct played {
  Made made;
  std::string findings;  // by the player: deviations from the expected behaviour
};

// Uses the memory model and the step limit of `o`. Time does not pass early: leases of a minute
// would expire while their acks are in progress.
template <class Player, class Made, class Plan>
played<Made> play(const Plan& plan, sim::options o) {
  event_log log(plan.shown);
  remains<Made> out;
  o.name += " " + std::to_string(plan.seed);
  o.search = sim::search::random;
  o.schedules = 1;
  o.seed = plan.seed;
  o.early_timeouts = false;
  const auto explored = sim::explore(o, [&] {
    log.clear();
    out.clear();
    Player(plan, log, out).play();
  });
  Made made = std::move(out.all);
  made.steps = explored.steps;
  made.events = log.lines();
  made.hash = log.hash();
  if (explored.failed()) made.broken = explored.text();
  return {std::move(made), out.findings()};
}

}  // namespace sluice::sim_jobs
