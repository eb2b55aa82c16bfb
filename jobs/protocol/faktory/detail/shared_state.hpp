#pragma once

// What the sessions of one server share. Everything in it may be used from any thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/protocol/faktory/detail/batch_table.hpp"
#include "jobs/protocol/faktory/detail/tracked_jobs.hpp"
#include "jobs/protocol/faktory/detail/workers.hpp"
#include "jobs/protocol/faktory/faktory_server.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/lazy.hpp"

namespace sluice::jobs::faktory {

// What a job keeps of a worker that was lost with it.
inline constexpr std::string_view worker_lost = "WorkerLost";
std::uint32_t losses_of(const job& it);  // the last errors that are such, one after the other

// Relaxed throughout: they order nothing.
struct command_counts {
  atomic<std::uint64_t> commands{0}, errors{0};
  atomic<std::uint64_t> pushed{0}, fetched{0}, acked{0}, failed{0};
  atomic<std::uint64_t> expired{0};     // fetched after their time, and dropped
  atomic<std::uint64_t> given_back{0};  // by workers that went
  atomic<std::uint64_t> lost{0};        // with their workers
  atomic<std::uint64_t> bad_passwords{0};
};

inline constexpr std::size_t hashes_waiting_max = 1024;

struct shared_state {
  shared_state(const faktory_options& o, engine& e)
      : options(o),
        jobs(e),
        time(o.time == nullptr ? real_time() : *o.time),
        began(time.now()),
        tracked(o.tracked_max),
        batches(o.tracked_max),
        password(o.password) {}

  // Jobs that a worker has put down, or that never reached one: as if nobody had had them.
  void give_back(std::vector<lease_ref> leases);
  // Jobs whose worker was lost, as far as anybody can tell: each is a failure of its job, so that
  // one that takes its workers down with it does not come back for ever. The first time it is ready
  // at once; when that happens again and again, after the pause of a failure.
  void lose(const std::vector<held_job>& jobs, std::string_view worker, std::string_view how);

  milliseconds pause_after(std::uint32_t failures_before) const;

  const faktory_options options;
  engine& jobs;
  time_source& time;
  const unix_time began;
  workers crew;
  tracked_jobs tracked;
  batch_table batches;
  guarded<std::string> password;
  atomic<bool> is_closed{false};  // no fetches any more
  atomic<std::uint64_t> connections{0};
  command_counts counts;
  // Where passwords are hashed, one after the other: whoever knows none costs those nothing who are
  // served by the loops. Without a password there is no such thread.
  lazy<thread_pool> hashing{[] {
    return thread_pool({.core = 1,
                        .capacity = hashes_waiting_max,
                        .overflow = overflow::reject,
                        .name = "sluice-hash"});
  }};
};

}  // namespace sluice::jobs::faktory
