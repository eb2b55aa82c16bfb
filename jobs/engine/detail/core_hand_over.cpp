// Jobs that workers have before they are stored: who gets them, and what becomes of them.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/lease_wait.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

// Whether it is ready if the commit succeeds, whatever else is in there.
bool is_sure(const commit& c, const commit::staged_push& p) {
  const job& j = *p.item.it;
  return j.state == job_state::ready && j.spec.unique.key.empty() && !gates::concern(j.spec) &&
         c.changes.changes[p.change].group == 0;
}

}  // namespace

bool core::hand_over(commit& c, answers& out) {
  // A number that is not stored may be given to another job after a crash, and the worker may know
  // its own by nothing else.
  if (waiting_leases_ == 0 || closed_ || degraded_ || c.changes.ids_up_to != 0) return false;
  std::vector<commit::staged_push*> sure;
  for (commit::staged_push& p : c.pushes) {
    const queue_state& q = *p.item.queue;
    // What is ready already goes first, also what is so in the store alone.
    const bool is_next = q.ready.empty() && !q.ready.is_cut();
    if (is_next && q.is_stored && !q.leases.empty() && is_sure(c, p)) sure.push_back(&p);
  }
  std::ranges::sort(sure, [](const commit::staged_push* a, const commit::staged_push* b) {
    if (a->item.queue != b->item.queue) return a->item.queue->number < b->item.queue->number;
    return position_of(*a->item.it) < position_of(*b->item.it);
  });
  const std::uint64_t before = counters.leased;
  for (auto first = sure.begin(); first != sure.end();) {
    queue_state* const q = (*first)->item.queue;
    const auto last = std::find_if(
        first, sure.end(), [q](const commit::staged_push* p) { return p->item.queue != q; });
    hand_over_to(*q, {first, last}, out);
    first = last;
  }
  return counters.leased != before;
}

void core::hand_over_to(queue_state& q, std::span<commit::staged_push* const> those, answers& out) {
  const time_point now = time_.timers().now();
  while (!those.empty() && !q.leases.empty() && lets_start(q, now)) {
    auto& first = static_cast<lease_wait&>(*q.leases.front());
    std::vector<leased_job> taken;
    while (!those.empty() && taken.size() < first.what.max && lets_start(q, now)) {
      commit::staged_push& p = *those.front();
      those = those.subspan(1);
      p.is_handed_over = true;
      taken.push_back(start(q, p.item.it, first.what, false));
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
  if (l->how_far) note_progress(*l);
}

void core::handed_over_is_not_stored(job_id id, answers& out) {
  lease_state* const l = find_lease(id);
  check(l != nullptr && l->is_unstored, "sluice::jobs::core", "a lease of every job handed over");
  --l->queue->unstored;
  forget_lease(id, out);
}

// Its job is being stored, or a cancel of it: what the worker says waits until that is known.
bool core::is_being_decided(lease_ref ref) const {
  const auto found = leases_.find(ref.job);
  return found != leases_.end() && found->second.key == ref.key &&
         (found->second.is_unstored || busy_.contains(ref.job));
}

void core::when_decided(lease_ref ref, commit::after then) {
  if (find_lease(ref.job)->is_unstored) {
    unheard_.push_back(std::move(then));
  } else {
    stage_after(std::move(then));
  }
}

void core::hear_what_waited(answers& out) {
  for (commit::after& then : std::exchange(unheard_, {})) then({}, out);
}

}  // namespace sluice::jobs::detail
