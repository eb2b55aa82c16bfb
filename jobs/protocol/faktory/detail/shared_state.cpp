#include "jobs/protocol/faktory/detail/shared_state.hpp"

#include <algorithm>
#include <utility>

#include "jobs/protocol/faktory/detail/faktory_job.hpp"
#include "sluice/base/random.hpp"

namespace sluice::jobs::faktory {

std::uint32_t losses_of(const job& j) {
  const auto other = std::find_if(j.errors.rbegin(), j.errors.rend(),
                                  [](const auto& e) { return e.type != worker_lost; });
  return static_cast<std::uint32_t>(other - j.errors.rbegin());
}

void shared_state::give_back(std::vector<lease_ref> leases) {
  if (leases.empty()) return;
  counts.given_back.fetch_add(leases.size(), relaxed);
  // The results are not needed: if a lease has expired meanwhile, another worker may have the job.
  const auto dropped = jobs.release_many(std::move(leases));
}

void shared_state::lose(const std::vector<held_job>& held, std::string_view worker,
                        std::string_view reason) {
  counts.lost.fetch_add(held.size(), relaxed);
  for (const held_job& each : held) {
    failure why;
    why.type = worker_lost;
    why.message = "the worker " + std::string(worker) + " was lost: " + std::string(reason);
    why.retry_in = each.losses == 0 ? milliseconds(0) : pause_after(each.losses);
    const auto dropped = jobs.fail(each.lease, std::move(why));
  }
}

milliseconds shared_state::pause_after(std::uint32_t failures_before) const {
  const double chance = static_cast<double>(thread_random().next() >> 11U) * 0x1.0p-53;
  return pause_after_failures(failures_before, chance);
}

}  // namespace sluice::jobs::faktory
