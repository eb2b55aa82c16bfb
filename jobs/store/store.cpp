#include "jobs/store/store.hpp"

#include <utility>

namespace sluice::jobs {

job_ptr cancelled_job(job_id id, std::string queue, const change::lease_record& lease) {
  auto it = std::make_shared<job>();
  it->id = id;
  it->state = job_state::cancelled;
  it->spec.queue = std::move(queue);
  it->spec.key = lease.job_key;
  return it;
}

}  // namespace sluice::jobs
