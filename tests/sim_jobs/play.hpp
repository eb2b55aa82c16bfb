#pragma once

// Plays a plan once, under the simulator, and says what came of it.

#include <string>
#include <utility>

#include "sluice/sim/explore.hpp"
#include "tests/sim_jobs/event_log.hpp"
#include "tests/sim_jobs/remains.hpp"

namespace sluice::sim_jobs {

template <class Made>
struct played {
  Made made;
  std::string said;  // by the player: what was not as it should be
};

// With what `how` says of memory and steps. Time does not pass early: leases of a minute would run
// out while their acks are on the way.
template <class Player, class Made, class Plan>
played<Made> play(const Plan& plan, sim::options how) {
  event_log log(plan.shown);
  remains<Made> out;
  how.name += " " + std::to_string(plan.seed);
  how.how = sim::search::random;
  how.schedules = 1;
  how.seed = plan.seed;
  how.early_timeouts = false;
  const auto explored = sim::explore(how, [&] {
    log.clear();
    out.clear();
    Player(plan, log, out).play();
  });
  Made made = std::move(out.all);
  made.steps = explored.steps;
  made.events = log.lines();
  made.hash = log.hash();
  if (explored.failed()) made.broken = explored.text();
  return {std::move(made), out.said()};
}

}  // namespace sluice::sim_jobs
