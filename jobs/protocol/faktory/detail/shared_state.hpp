#pragma once

// The state that the sessions of one server share. Any thread may use all of it.

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

// The error type of an attempt whose worker was lost.
inline constexpr std::string_view worker_lost = "WorkerLost";
std::uint32_t losses_of(const job& j);  // number of consecutive such errors at the end

// Relaxed throughout: they order nothing.
struct command_counts {
  atomic<std::uint64_t> commands{0}, errors{0};
  atomic<std::uint64_t> pushed{0}, fetched{0}, acked{0}, failed{0};
  atomic<std::uint64_t> expired{0};     // fetched after expires_at, and dropped
  atomic<std::uint64_t> given_back{0};  // released by END
  atomic<std::uint64_t> lost{0};        // of lost workers
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

  // Releases jobs that a worker returned or that never reached one, without counting an attempt.
  void give_back(std::vector<lease_ref> leases);
  // Fails the jobs of a lost worker, so that a job that crashes its workers does not return
  // forever. After the first loss a job is ready at once, after consecutive losses with the delay
  // of a failure.
  void lose(const std::vector<held_job>& jobs, std::string_view worker, std::string_view reason);

  milliseconds pause_after(std::uint32_t failures_before) const;

  const faktory_options options;
  engine& jobs;
  time_source& time;
  const unix_time began;
  workers crew;
  tracked_jobs tracked;
  batch_table batches;
  guarded<std::string> password;
  atomic<bool> is_closed{false};  // FETCH returns no jobs
  atomic<std::uint64_t> connections{0};
  command_counts counts;
  // Password hashing runs on its own single thread, so failed logins cannot slow down the event
  // loops. Without a password the thread is not created.
  lazy<thread_pool> hashing{[] {
    return thread_pool({.core = 1,
                        .capacity = hashes_waiting_max,
                        .overflow = overflow::reject,
                        .name = "sluice-hash"});
  }};
};

}  // namespace sluice::jobs::faktory
