// Leases that outlive the process: saved by the last commit, restored at the next start.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {

// A restored lease expires when it would have without the restart. A lease that expired while no
// server could extend it gets its full duration again, so that the worker can report its job. A
// cancelled job counts for its key and its queue until its worker reports, also after a restart.
void core::restore_leases(std::vector<store::saved_lease> leases) {
  const time_point now = time_.timers().now();
  const unix_time wall = time_.now();
  for (store::saved_lease& saved : leases) {
    queue_state* const q = find_queue(saved.queue);
    if (q == nullptr) continue;
    const job_spec& spec = saved.job->spec;
    lease_state& l = leases_[saved.job->id];
    l.owner = this;
    l.queue = q;
    l.weight = weight_of(spec);
    keep_leased(l, saved.job);
    l.key = saved.lease.key;
    l.worker = std::move(saved.lease.worker);
    l.progress = std::move(saved.lease.progress);
    const milliseconds usual =
        spec.lease_for > milliseconds(0) ? spec.lease_for : q->options.lease_for;
    l.lasts = saved.lease.lasts > milliseconds(0) ? saved.lease.lasts : usual;
    l.began = now - (wall - saved.lease.began);
    l.began_at = saved.lease.began;
    const std::chrono::nanoseconds left = time_.until(saved.lease.until);
    l.until = now + (left > std::chrono::nanoseconds(0) ? left : l.lasts);
    count_key(l);
    ++q->running;
    ++running_;
    if (saved.lease.is_cancelled) mark_cancelled(l);
    time_lease(l);
  }
}

void core::stage_saved_leases() {
  const time_point now = time_.timers().now();
  for (const auto& [id, l] : leases_) {
    if (l.is_ending) continue;
    change c;
    c.type = change::op::save_lease;
    c.queue = l.queue->number;
    c.id = id;
    c.lease = std::make_unique<change::lease_record>(
        change::lease_record{.key = l.key,
                             .worker = l.worker,
                             .until = time_.after(l.until - now),
                             .began = l.began_at,
                             .lasts = l.lasts,
                             .progress = l.progress,
                             .is_cancelled = l.is_cancelled,
                             .job_key = l.job->spec.key});
    stage(std::move(c));
  }
}

}  // namespace sluice::jobs::detail
