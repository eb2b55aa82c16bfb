// After a commit succeeded or failed: applies the outcome to memory and answers the callers.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "jobs/engine/detail/core.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

// Removes the marked changes and renumbers all references to the rest.
void remove_changes(commit& c, const std::vector<bool>& is_removed) {
  std::vector<std::size_t> place(is_removed.size());
  std::vector<change> left;
  for (std::size_t i = 0; i < is_removed.size(); ++i) {
    place[i] = left.size();
    if (!is_removed[i]) left.push_back(std::move(c.transaction.changes[i]));
  }
  c.transaction.changes = std::move(left);
  for (commit::staged_push& p : c.pushes) p.change = place[p.change];
  for (end_item& e : c.ends) e.change = place[e.change];
  for (commit::eviction& e : c.evictions) e.change = place[e.change];
  for (commit::other& o : c.others) {
    if (o.change != commit::no_change) o.change = place[o.change];
  }
}

// Returns the error code for the job that caused its whole group to be rejected.
error_code code_of(conflict::reason why) {
  switch (why) {
    case conflict::reason::batch_ended:
    case conflict::reason::skipped:
      return error_code::wrong_state;
    case conflict::reason::no_such_batch:
      return error_code::not_found;
    case conflict::reason::duplicate:
    case conflict::reason::other_of_group:
      break;
  }
  return error_code::duplicate;
}

// Returns the reply to a push with a conflict. `of_group`: the conflict that rejected its group, if
// it is in one.
result<push_receipt> reply_to_conflict(const conflict& clash, const conflict* of_group,
                                       const job& j, engine_stats& counters) {
  const bool in_group = of_group != nullptr;
  const std::string nothing = in_group ? "; nothing was pushed" : "";
  const std::string batch = "batch " + std::to_string(j.spec.batch);
  switch (clash.cause) {
    case conflict::reason::duplicate:
      ++counters.duplicates;
      if (!in_group) return push_receipt{clash.holder, push_receipt::fate::duplicate};
      return error{error_code::duplicate,
                   "unique key '" + j.spec.unique.key + "' is taken by job " +
                       std::to_string(clash.holder) + nothing,
                   clash.holder};
    case conflict::reason::batch_ended:
      ++counters.refused;
      return error{error_code::wrong_state,
                   batch + " has ended and accepts no further jobs" + nothing, j.spec.batch};
    case conflict::reason::no_such_batch:
      ++counters.refused;
      return error{error_code::not_found,
                   batch + " does not exist, or its retention period has passed" + nothing,
                   j.spec.batch};
    case conflict::reason::skipped:
      ++counters.skipped;
      if (!in_group) return push_receipt{0, push_receipt::fate::skipped};
      return error{error_code::wrong_state,
                   "a dependency of the job can no longer be met" + nothing};
    case conflict::reason::other_of_group:
      break;
  }
  ++counters.refused;
  return error{code_of(in_group ? of_group->cause : clash.cause),
               "another job of the list was rejected; nothing was pushed"};
}

// The error of a push whose job was leased before the failed commit.
error leased_but_not_stored(error why) {
  why.code = error_code::io_error;  // every other code means that nothing was done
  why.message += "; a worker had already leased the job, which was not stored";
  return why;
}

}  // namespace

void core::apply_counts(const change& c) {
  queue_state* const q = find_queue(c.queue);
  check(q != nullptr, "sluice::jobs::core", "a queue for every change");
  switch (c.type) {
    case change::op::add:
      ++q->counts.of(c.job->state);
      q->counts.bytes += weight_of(c.job->spec);
      break;
    case change::op::move:
      --q->counts.of(c.from);
      ++q->counts.of(c.new_state);
      if (!has_ended(c.from) && has_ended(c.new_state)) q->counts.bytes -= c.weight;
      if (has_ended(c.from) && !has_ended(c.new_state)) q->counts.bytes += c.weight;
      break;
    case change::op::drop:
      --q->counts.of(c.from);
      if (!has_ended(c.from)) q->counts.bytes -= c.weight;
      break;
    default:
      break;
  }
}

void core::committed(commit& c, const applied& outcome, answers& out) {
  is_applying_ = true;
  serves_due_since_ = time_point::max();
  ids_stored_ = std::max(ids_stored_, c.transaction.ids_up_to);
  for (queue_state* const q : c.queues) {
    q->is_stored = true;
    q->is_staged = false;
  }
  std::vector<const conflict*> clashes(outcome.conflicts.empty() ? 0
                                                                 : c.transaction.changes.size());
  for (const conflict& one : outcome.conflicts) clashes[one.index] = &one;
  const auto clash_of = [&](std::size_t i) -> const conflict* {
    return i < clashes.size() ? clashes[i] : nullptr;
  };
  // The first conflict of each group that is not a consequence of another.
  std::unordered_map<std::uint32_t, const conflict*> causes;
  for (const conflict& one : outcome.conflicts) {
    const std::uint32_t group = c.transaction.changes[one.index].group;
    if (group != 0 && one.cause != conflict::reason::other_of_group) causes.emplace(group, &one);
  }
  const auto cause_of = [&](std::size_t i) -> const conflict* {
    const auto found = causes.find(c.transaction.changes[i].group);
    return found == causes.end() ? nullptr : found->second;
  };
  for (std::size_t i = 0; i < c.transaction.changes.size(); ++i) {
    const change& done_change = c.transaction.changes[i];
    if (done_change.queue != 0 && clash_of(i) == nullptr) apply_counts(done_change);
  }
  // Jobs of this commit that were to become ready or scheduled, and became held.
  std::vector<const effect*> held(outcome.effects.empty() ? 0 : c.transaction.changes.size());
  for (const effect& e : outcome.effects) {
    if (e.type != effect::kind::held) continue;
    held[e.cause] = &e;
    const change& cause = c.transaction.changes[e.cause];
    count_effect(e, cause.type == change::op::add ? cause.job->state : cause.new_state);
  }
  const auto instead_of = [&](std::size_t i) -> const effect* {
    return i < held.size() ? held[i] : nullptr;
  };
  counters.committed_changes += c.transaction.changes.size();
  for (commit::staged_push& p : c.pushes) {
    staged_bytes_ -= p.item.weight;
    --p.item.queue->staged_jobs;
    p.item.queue->staged_bytes -= p.item.weight;
    push_committed(p, clash_of(p.change), cause_of(p.change), instead_of(p.change), out);
  }
  for (commit::eviction& e : c.evictions) evicted(e, out);
  for (end_item& e : c.ends) end_committed(e, c.transaction.changes[e.change], out);
  apply_effects(c, outcome.effects, out);
  for (const auto& [number, counts] : outcome.counts) {
    queue_state* const q = find_queue(number);
    if (q == nullptr) continue;
    q->counts = counts;
    touch(*q);
  }
  for (commit::other& o : c.others) {
    const conflict* const clash = clash_of(o.change);
    if (clash != nullptr && c.transaction.changes[o.change].type != change::op::add) {
      const job_id id = c.transaction.changes[o.change].id;
      const error gone{
          error_code::not_found,
          "job " + std::to_string(id) + " was skipped: a dependency can no longer be met", id};
      o.continuation({&gone, nullptr, clash}, out);
    } else {
      o.continuation({nullptr, instead_of(o.change), clash}, out);
    }
  }
  run_deferred(out);
  is_applying_ = false;
  settle(out);
}

// Applies the store's effects on other jobs, and on jobs of these changes.
void core::apply_effects(const commit& c, const std::vector<effect>& effects, answers& out) {
  // A later change of this transaction to a released job was counted as a change of a held job.
  const auto is_changed_later = [&](const effect& e) {
    const auto& all = c.transaction.changes;
    return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(e.cause), all.end(),
                       [&](const change& later) {
                         return later.id == e.id && later.from == job_state::held &&
                                (later.type == change::op::move || later.type == change::op::drop);
                       });
  };
  for (const effect& e : effects) {
    switch (e.type) {
      case effect::kind::held:
        ++counters.held;  // counted above: by now the job of an add has its new state
        break;
      case effect::kind::released:
        if (busy_.contains(e.id) && is_changed_later(e)) break;
        count_effect(e, job_state::held);
        ++counters.released;
        note(event_type::released, *e.job);
        if (e.job->is_damaged) break;  // the committer marks it dead
        e.new_state == job_state::ready ? publish(e.job) : note_due(e.due_at);
        break;
      case effect::kind::skipped:
        count_effect(e, job_state::held);
        ++counters.skipped;
        note(event_type::removed, *e.job, "skipped");
        job_removed(
            e.id,
            {error_code::not_found, "the job was skipped: a dependency can no longer be met", e.id},
            out);
        break;
      case effect::kind::batch_ended:
        note_batch(*e.batch);
        if (e.batch->due_at != unix_time{}) note_due(e.batch->due_at);
        break;
    }
  }
}

void core::count_effect(const effect& e, job_state from) {
  queue_state* const q = find_queue(e.queue);
  check(q != nullptr, "sluice::jobs::core", "a queue for every effect");
  --q->counts.of(from);
  if (e.type == effect::kind::skipped) {
    q->counts.bytes -= e.weight;
    touch(*q);
  } else {
    ++q->counts.of(e.new_state);
  }
}

void core::push_committed(commit::staged_push& p, const conflict* clash, const conflict* of_group,
                          const effect* instead, answers& out) {
  job& j = *p.item.job;
  if (clash != nullptr) {
    check(!p.is_handed_over, "sluice::jobs::core", "no conflict of a job that has no rule");
    touch(*p.item.queue);  // its capacity is free again
    for (job_ptr& spared : p.item.victims) spare_victim(*p.item.queue, std::move(spared));
    return p.item.reply.give(reply_to_conflict(*clash, of_group, j, counters), out);
  }
  ++counters.pushed;
  for (job_ptr& gone : p.item.victims) stage_eviction(*p.item.queue, std::move(gone), false);
  const job_id id = j.id;
  if (instead != nullptr) {
    j.state = instead->new_state;
    j.due_at = instead->due_at;
    j.blockers = instead->blockers;
  }
  note(event_type::pushed, j);
  if (p.is_handed_over) {
    handed_over_is_stored(j);
  } else if (j.state == job_state::ready) {
    publish(std::move(p.item.job));
  } else if (j.state == job_state::scheduled) {
    note_due(j.due_at);
  }
  p.item.reply.give(push_receipt{id, push_receipt::fate::accepted}, out);
}

void core::refuse_pushes(commit& c, const error& why, answers& out) {
  for (commit::staged_push& p : c.pushes) {
    staged_bytes_ -= p.item.weight;
    --p.item.queue->staged_jobs;
    p.item.queue->staged_bytes -= p.item.weight;
    ++counters.refused;
    touch(*p.item.queue);
    for (job_ptr& spared : p.item.victims) spare_victim(*p.item.queue, std::move(spared));
    if (p.is_handed_over) handed_over_is_not_stored(p.item.job->id, out);
    p.item.reply.give(p.is_handed_over ? leased_but_not_stored(why) : why, out);
  }
  // Their batches are removed with them. A batch that was added without jobs stays.
  std::vector<bool> is_removed(c.transaction.changes.size());
  std::unordered_set<std::uint32_t> groups;
  for (const commit::staged_push& p : c.pushes) {
    is_removed[p.change] = true;
    groups.insert(c.transaction.changes[p.change].group);
  }
  for (std::size_t i = 0; i < is_removed.size(); ++i) {
    const change& one = c.transaction.changes[i];
    if (one.type == change::op::add_batch && groups.contains(one.group)) is_removed[i] = true;
  }
  c.pushes.clear();
  for (commit::eviction& e : c.evictions) {
    if (!e.is_with_push) continue;
    is_removed[e.change] = true;
    spare_victim(*e.queue, std::move(e.gone));
  }
  std::erase_if(c.evictions, [](const commit::eviction& e) { return e.is_with_push; });
  remove_changes(c, is_removed);
}

bool core::refuse_own(commit& c, const error& why, answers& out) {
  const std::vector<change>& all = c.transaction.changes;
  std::vector<bool> is_own(all.size());
  for (const commit::other& o : c.others) {
    if (o.change != commit::no_change && all[o.change].type == change::op::add) {
      is_own[o.change] = true;
    }
  }
  // The change a job of the server belongs to comes right after it: the end that its webhook
  // reports, or the cron entry that ran. They are applied together or not at all.
  std::vector<bool> is_removed = is_own;
  for (std::size_t i = 1; i < all.size(); ++i) is_removed[i] = is_removed[i] || is_own[i - 1];
  if (std::ranges::find(is_removed, true) == is_removed.end()) return false;
  for (end_item& e : c.ends) {
    if (is_removed[e.change]) refuse_end(e, why, out);
  }
  std::erase_if(c.ends, [&](const end_item& e) { return is_removed[e.change]; });
  std::vector<commit::other> removed_others;
  for (commit::other& o : c.others) {
    if (o.change != commit::no_change && is_removed[o.change])
      removed_others.push_back(std::move(o));
  }
  std::erase_if(c.others, [](const commit::other& o) { return !o.continuation; });
  remove_changes(c, is_removed);
  for (commit::other& o : removed_others) o.continuation({&why}, out);
  return true;
}

bool core::remove_rejected(commit& c, const error& why, answers& out) {
  std::vector<bool> is_removed(c.transaction.changes.size());
  const auto first = std::ranges::find_if(c.transaction.changes, [&](const change& one) {
    return one.id == why.job && (one.type == change::op::move || one.type == change::op::drop ||
                                 one.type == change::op::drop_damaged);
  });
  if (first == c.transaction.changes.end()) return false;
  const auto at = static_cast<std::size_t>(first - c.transaction.changes.begin());
  is_removed[at] = true;
  for (commit::eviction& e : c.evictions) {
    if (e.change == at) unchoose_victim(*e.queue, *e.gone);  // the job no longer exists
  }
  std::erase_if(c.evictions, [&](const commit::eviction& e) { return e.change == at; });
  for (end_item& e : c.ends) {
    if (e.change != at) continue;
    staged_result_bytes_ -= e.bytes;
    e.acked.give(why, out);
    if (e.failed) out.add(std::move(*e.failed), result<fail_receipt>(why));
    remove_lease(e.id, out);
  }
  std::erase_if(c.ends, [&](const end_item& e) { return e.change == at; });
  for (commit::other& o : c.others) {
    if (o.change == at) o.continuation({&why}, out);
  }
  std::erase_if(c.others, [&](const commit::other& o) { return o.change == at; });
  job_removed(why.job, why, out);
  remove_changes(c, is_removed);
  return true;
}

void core::refused(commit& c, const error& why, answers& out) {
  ++counters.commit_errors;
  serves_due_since_ = time_point::max();
  refuse_pushes(c, why, out);
  for (queue_state* const q : c.queues) {
    q->is_staged = false;
    // More pushes were staged for it meanwhile and need it in the next commit.
    if (!q->is_stored && q->staged_jobs > 0) stage_queue(*q, q->options);
  }
  for (commit::eviction& e : c.evictions) spare_victim(*e.queue, std::move(e.gone));
  for (end_item& e : c.ends) refuse_end(e, why, out);
  for (commit::other& o : c.others) o.continuation({&why}, out);
  run_deferred(out);
  settle(out);
}

void core::refuse_end(end_item& e, const error& why, answers& out) {
  if (lease_state* const l = find_lease(e.id)) {
    l->is_ending = false;
    // The worker gets the error and may retry: extend the lease for that, even beyond the job's
    // time limit. For an expired lease this is the time of the next attempt to end it.
    l->until = std::max(l->until, time_.timers().now() + options_.probe_every * 2);
    timers_.remove(*l);
    timers_.add(*l, l->until);
  }
  staged_result_bytes_ -= e.bytes;
  e.acked.give(why, out);
  if (e.failed) out.add(std::move(*e.failed), result<fail_receipt>(why));
}

}  // namespace sluice::jobs::detail
