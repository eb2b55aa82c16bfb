#include "jobs/protocol/faktory/detail/shared_state.hpp"

#include <utility>

namespace sluice::jobs::faktory {

void shared_state::give_back(std::vector<lease_ref> leases) {
  if (leases.empty()) return;
  counts.given_back.fetch_add(leases.size(), relaxed);
  // Nobody waits for these: one that has run out meanwhile is with somebody else already.
  const auto dropped = jobs.release_many(std::move(leases));
}

}  // namespace sluice::jobs::faktory
