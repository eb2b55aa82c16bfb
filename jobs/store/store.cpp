#include "jobs/store/store.hpp"

#include <utility>

namespace sluice::jobs {

job_ptr cancelled_job(job_id id, std::string queue, const change::lease_record& lease) {
  auto cancelled = std::make_shared<job>();
  cancelled->id = id;
  cancelled->state = job_state::cancelled;
  cancelled->spec.queue = std::move(queue);
  cancelled->spec.key = lease.job_key;
  return cancelled;
}

}  // namespace sluice::jobs
