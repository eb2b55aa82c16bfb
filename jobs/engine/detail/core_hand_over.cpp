// Early leases: which jobs of a commit are leased before it, and the outcome of that commit.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/lease_wait.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

// Returns whether the job will be ready if the commit succeeds, independent of its other changes.
bool is_sure(const commit::staged_push* p) {
  const job_spec& spec = p->item.job->spec;
  return spec.unique.key.empty() && !gates::concern(spec) && !p->item.is_of_list;
}

}  // namespace

bool core::hand_over(commit& c, answers& out) {
  // An id that is not reserved in the store may be assigned to another job after a crash, and the
  // worker may identify its job by the id alone.
  if (waiting_leases_ == 0 || closed_ || degraded_ || c.transaction.ids_up_to != 0) return false;
  std::vector<commit::staged_push*> candidates;
  for (commit::staged_push& p : c.pushes) {
    const queue_state& q = *p.item.queue;
    // Jobs that are already ready come first, including jobs that are only in the store.
    const bool is_next = q.ready.empty() && !q.ready.is_cut() && q.is_stored && !q.leases.empty();
    if (is_next && p.item.job->state == job_state::ready) candidates.push_back(&p);
  }
  std::ranges::sort(candidates, [](const commit::staged_push* a, const commit::staged_push* b) {
    if (a->item.queue != b->item.queue) return a->item.queue->number < b->item.queue->number;
    return position_of(*a->item.job) < position_of(*b->item.job);
  });
  const std::uint64_t before = counters.leased;
  for (auto first = candidates.begin(); first != candidates.end();) {
    queue_state* const q = (*first)->item.queue;
    const auto last = std::find_if(
        first, candidates.end(), [q](const commit::staged_push* p) { return p->item.queue != q; });
    // Stops at the first job that the store may reject: a job behind it must not be leased before
    // it.
    hand_over_to(*q, {first, std::find_if_not(first, last, is_sure)}, out);
    first = last;
  }
  return counters.leased != before;
}

void core::hand_over_to(queue_state& q, std::span<commit::staged_push* const> candidates,
                        answers& out) {
  const time_point now = time_.timers().now();
  // A job whose args would not stay in memory could not be read before it is stored.
  const auto may_start_one = [&] {
    return !candidates.empty() && limits_permit(q, now) &&
           leased_bytes_ + candidates.front()->item.weight <= options_.window_bytes_max;
  };
  while (!q.leases.empty() && may_start_one()) {
    auto& first = static_cast<lease_wait&>(*q.leases.front());
    std::vector<leased_job> taken;
    while (taken.size() < first.request.max && may_start_one()) {
      commit::staged_push& p = *candidates.front();
      candidates = candidates.subspan(1);
      p.is_handed_over = true;
      taken.push_back(start(q, p.item.job, first.request, false));
    }
    answer_lease(first, std::move(taken), out);
  }
}

void core::handed_over_is_stored(const job& j) {
  lease_state* const l = find_lease(j.id);
  check(l != nullptr && l->is_unstored, "sluice::jobs::core", "a lease of every job handed over");
  l->is_unstored = false;
  --l->queue->unstored;
  note(event_type::started, j);
  if (l->progress) note_progress(*l);
}

void core::handed_over_is_not_stored(job_id id, answers& out) {
  lease_state* const l = find_lease(id);
  check(l != nullptr && l->is_unstored, "sluice::jobs::core", "a lease of every job handed over");
  --l->queue->unstored;
  remove_lease(id, out);
}

// Returns whether the commit of the job, or of its cancel, is pending: the worker's call is
// deferred until then.
bool core::has_pending_commit(lease_ref ref) const {
  const auto found = leases_.find(ref.job);
  return found != leases_.end() && found->second.key == ref.key &&
         (found->second.is_unstored || busy_.contains(ref.job));
}

void core::after_pending_commit(lease_ref ref, commit::after continuation) {
  if (find_lease(ref.job)->is_unstored) {
    deferred_.push_back(std::move(continuation));
  } else {
    stage_after(std::move(continuation));
  }
}

// The dependency would count as done if its job were never stored.
bool core::depends_on_unstored(const job_spec& spec) const {
  return std::ranges::any_of(spec.after, [this](const dependency& d) {
    const auto found = leases_.find(d.on);
    return found != leases_.end() && found->second.is_unstored;
  });
}

void core::run_deferred(answers& out) {
  for (commit::after& continuation : std::exchange(deferred_, {})) continuation({}, out);
}

}  // namespace sluice::jobs::detail
