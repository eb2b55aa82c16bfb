#pragma once

// What the sessions of one server share. Everything in it may be used from any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/protocol/faktory/detail/batch_table.hpp"
#include "jobs/protocol/faktory/detail/tracked_jobs.hpp"
#include "jobs/protocol/faktory/detail/workers.hpp"
#include "jobs/protocol/faktory/faktory_server.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::faktory {

// Relaxed throughout: they order nothing.
struct command_counts {
  atomic<std::uint64_t> commands{0}, errors{0};
  atomic<std::uint64_t> pushed{0}, fetched{0}, acked{0}, failed{0};
  atomic<std::uint64_t> expired{0};     // fetched after their time, and dropped
  atomic<std::uint64_t> given_back{0};  // by workers that went or were lost
  atomic<std::uint64_t> bad_passwords{0};
};

struct shared_state {
  shared_state(const faktory_options& o, engine& e)
      : options(o),
        jobs(e),
        time(o.time == nullptr ? real_time() : *o.time),
        began(time.now()),
        tracked(o.tracked_max),
        batches(o.tracked_max),
        password(o.password) {}

  // What a worker held when it went.
  void give_back(std::vector<lease_ref> leases);

  const faktory_options options;
  engine& jobs;
  time_source& time;
  const unix_time began;
  workers crew;
  tracked_jobs tracked;
  batch_table batches;
  guarded<std::string> password;
  atomic<bool> is_closed{false};  // no pushes and no fetches any more
  atomic<std::uint64_t> connections{0};
  command_counts counts;
};

}  // namespace sluice::jobs::faktory
