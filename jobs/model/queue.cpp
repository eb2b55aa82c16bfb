#include "jobs/model/queue.hpp"

#include "sluice/base/check.hpp"

namespace sluice::jobs {

void_result validate(const queue_options& o) {
  const auto wrong = [](const char* what) { return error{error_code::invalid, what}; };
  constexpr milliseconds longest = limits::duration_max;
  if (o.capacity_jobs == 0) return wrong("capacity_jobs must be at least 1");
  if (o.capacity_bytes == 0) return wrong("capacity_bytes must be at least 1");
  if (o.when_full == overflow::caller_runs) {
    return wrong("when_full must be block, reject, drop_newest, drop_oldest or latest");
  }
  if (o.lease_for < milliseconds(1) || o.lease_for > longest) {
    return wrong("lease_for must be from 1 ms to 10 years");
  }
  for (const milliseconds kept : {o.keep_done, o.keep_results, o.keep_dead}) {
    if (kept < milliseconds(0) || kept > longest) {
      return wrong("keep_done, keep_results and keep_dead must be from 0 to 10 years");
    }
  }
  return done{};
}

std::uint64_t& queue_counts::of(job_state state) noexcept {
  switch (state) {
    case job_state::scheduled:
      return scheduled;
    case job_state::ready:
      return ready;
    case job_state::running:
      return running;
    case job_state::retrying:
      return retrying;
    case job_state::done:
      return done;
    case job_state::dead:
      return dead;
    case job_state::cancelled:
      return cancelled;
  }
  check(false, "sluice::jobs::queue_counts", "a state that exists");
  return ready;
}

std::uint64_t queue_counts::of(job_state state) const noexcept {
  return const_cast<queue_counts*>(this)->of(state);
}

}  // namespace sluice::jobs
