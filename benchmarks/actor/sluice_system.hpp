#pragma once

// A system of actors for one run, on a pool with one thread for each core; and how its actors send.

#include "benchmarks/harness.hpp"
#include "sluice/actor/actor.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::bench {

class sluice_system {
 public:
  actor_system* operator->() { return &system_; }

 private:
  work_stealing_pool pool_;
  actor_system system_{pool_};
};

// A message that was not taken would be missed in what the actors come to, or waited for.
inline void must(status sent) {
  if (!sent) fail("an actor did not take a message");
}

}  // namespace sluice::bench
