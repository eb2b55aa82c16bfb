// Jobs that workers have before they are stored: who gets them, and what becomes of them.
#include <algorithm>
#include <utility>

#include "jobs/engine/detail/lease_wait.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

// Whether it is ready if the commit succeeds, whatever else is in there.
bool is_sure(const commit::staged_push* p) {
  const job_spec& spec = p->item.it->spec;
  return spec.unique.key.empty() && !gates::concern(spec) && !p->item.is_of_list;
}

}  // namespace

bool core::hand_over(commit& c, answers& out) {
  // A number that is not stored may be given to another job after a crash, and the worker may know
  // its own by nothing else.
  if (waiting_leases_ == 0 || closed_ || degraded_ || c.changes.ids_up_to != 0) return false;
  std::vector<commit::staged_push*> those;
  for (commit::staged_push& p : c.pushes) {
    const queue_state& q = *p.item.queue;
    // What is ready already goes first, also what is so in the store alone.
    const bool is_next = q.ready.empty() && !q.ready.is_cut() && q.is_stored && !q.leases.empty();
    if (is_next && p.item.it->state == job_state::ready) those.push_back(&p);
  }
  std::ranges::sort(those, [](const commit::staged_push* a, const commit::staged_push* b) {
    if (a->item.queue != b->item.queue) return a->item.queue->number < b->item.queue->number;
    return position_of(*a->item.it) < position_of(*b->item.it);
  });
  const std::uint64_t before = counters.leased;
  for (auto first = those.begin(); first != those.end();) {
    queue_state* const q = (*first)->item.queue;
    const auto last = std::find_if(
        first, those.end(), [q](const commit::staged_push* p) { return p->item.queue != q; });
    // None goes before one that is more urgent and may turn out to be ready.
    hand_over_to(*q, {first, std::find_if_not(first, last, is_sure)}, out);
    first = last;
  }
  return counters.leased != before;
}

void core::hand_over_to(queue_state& q, std::span<commit::staged_push* const> those, answers& out) {
  const time_point now = time_.timers().now();
  // One whose args would not stay in memory could not be looked at before it is stored.
  const auto may_start_one = [&] {
    return !those.empty() && lets_start(q, now) &&
           leased_bytes_ + those.front()->item.weight <= options_.window_bytes_max;
  };
  while (!q.leases.empty() && may_start_one()) {
    auto& first = static_cast<lease_wait&>(*q.leases.front());
    std::vector<leased_job> taken;
    while (taken.size() < first.what.max && may_start_one()) {
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

// It would count as done if it were never stored.
bool core::comes_after_unstored(const job_spec& spec) const {
  return std::ranges::any_of(spec.after, [this](const dependency& d) {
    const auto found = leases_.find(d.on);
    return found != leases_.end() && found->second.is_unstored;
  });
}

void core::hear_what_waited(answers& out) {
  for (commit::after& then : std::exchange(unheard_, {})) then({}, out);
}

}  // namespace sluice::jobs::detail
