// Leases that outlive the process: saved by the last commit, restored by the next start.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {

// A restored lease runs out when it would have without the restart. A lease that ran out while no
// server could extend it gets its whole duration again, so that the worker can report its job.
void core::restore_leases(std::vector<store::saved_lease> leases) {
  const time_point now = time_.timers().now();
  const unix_time wall = time_.now();
  for (store::saved_lease& saved : leases) {
    queue_state* const q = find_queue(saved.queue);
    if (q == nullptr) continue;
    lease_state& l = leases_[saved.it->id];
    l.owner = this;
    l.queue = q;
    l.weight = weight_of(saved.it->spec);
    keep_leased(l, saved.it);
    l.key = saved.lease.key;
    l.worker = std::move(saved.lease.worker);
    l.lasts = saved.it->spec.lease_for > milliseconds(0) ? saved.it->spec.lease_for
                                                         : q->options.lease_for;
    l.began = now - (wall - saved.lease.began);
    l.began_at = saved.lease.began;
    const milliseconds left = saved.lease.until - wall;
    l.until = now + (left > milliseconds(0) ? left : l.lasts);
    ++q->running;
    ++running_;
    time_lease(l);
  }
}

void core::stage_saved_leases() {
  const time_point now = time_.timers().now();
  const unix_time wall = time_.now();
  for (const auto& [id, l] : leases_) {
    if (l.is_cancelled || l.is_ending) continue;
    change c;
    c.what = change::op::save_lease;
    c.queue = l.queue->number;
    c.id = id;
    c.lease = std::make_unique<change::lease_record>(change::lease_record{
        l.key, l.worker, wall + std::chrono::duration_cast<milliseconds>(l.until - now),
        l.began_at});
    stage(std::move(c));
  }
}

}  // namespace sluice::jobs::detail
