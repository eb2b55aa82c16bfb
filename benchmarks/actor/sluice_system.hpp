#pragma once

// An actor system for one run, on a pool with one thread for each core.

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

// Ends the bench if a message was not accepted: the run would be wrong or would never end.
inline void must(status sent) {
  if (!sent) fail("an actor did not accept a message");
}

}  // namespace sluice::bench
