// After a commit, or when it was refused: what becomes of what was staged, and who is told.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "jobs/engine/detail/core.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

// Without the changes that go, all that knows a change by its number gets its new one.
void close_ranks(commit& c, const std::vector<bool>& goes) {
  std::vector<std::size_t> place(goes.size());
  std::vector<change> left;
  for (std::size_t i = 0; i < goes.size(); ++i) {
    place[i] = left.size();
    if (!goes[i]) left.push_back(std::move(c.changes.changes[i]));
  }
  c.changes.changes = std::move(left);
  for (commit::staged_push& p : c.pushes) p.change = place[p.change];
  for (end_item& e : c.ends) e.change = place[e.change];
  for (commit::eviction& e : c.evictions) e.change = place[e.change];
  for (commit::other& o : c.others) {
    if (o.change != commit::no_change) o.change = place[o.change];
  }
}

// What is wrong, of the one on whose account a whole list was refused.
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

// Why a push was not done, as its caller is told it. `of_group`: why its group was refused, if it
// is in one.
result<push_receipt> answer_to_clash(const conflict& clash, const conflict* of_group, const job& j,
                                     engine_stats& counters) {
  const bool in_group = of_group != nullptr;
  const std::string nothing = in_group ? "; nothing was pushed" : "";
  const std::string batch = "batch " + std::to_string(j.spec.batch);
  switch (clash.why) {
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
                   batch + " has ended: nothing can be pushed into it any more" + nothing,
                   j.spec.batch};
    case conflict::reason::no_such_batch:
      ++counters.refused;
      return error{error_code::not_found,
                   "there is no " + batch +
                       ": it never was, or it has ended and its retention is "
                       "over" +
                       nothing,
                   j.spec.batch};
    case conflict::reason::skipped:
      ++counters.skipped;
      if (!in_group) return push_receipt{0, push_receipt::fate::skipped};
      return error{error_code::wrong_state,
                   "what the job waits for can no longer come true" + nothing};
    case conflict::reason::other_of_group:
      break;
  }
  ++counters.refused;
  return error{code_of(in_group ? of_group->why : clash.why),
               "another job of the list was refused; nothing was pushed"};
}

// What a push hears whose job a worker has, and nobody else ever will.
error begun_nonetheless(error why) {
  why.code = error_code::io_error;  // the others are certain that nothing was done
  why.message += "; a worker had begun the job, and it is not kept";
  return why;
}

}  // namespace

void core::apply_counts(const change& c) {
  queue_state* const q = find_queue(c.queue);
  check(q != nullptr, "sluice::jobs::core", "a queue for every change");
  switch (c.what) {
    case change::op::add:
      ++q->counts.of(c.it->state);
      q->counts.bytes += weight_of(c.it->spec);
      break;
    case change::op::move:
      --q->counts.of(c.from);
      ++q->counts.of(c.to);
      if (!has_ended(c.from) && has_ended(c.to)) q->counts.bytes -= c.weight;
      if (has_ended(c.from) && !has_ended(c.to)) q->counts.bytes += c.weight;
      break;
    case change::op::drop:
      --q->counts.of(c.from);
      if (!has_ended(c.from)) q->counts.bytes -= c.weight;
      break;
    default:
      break;
  }
}

void core::committed(commit& c, const applied& how, answers& out) {
  is_applying_ = true;
  serves_due_ = false;
  ids_stored_ = std::max(ids_stored_, c.changes.ids_up_to);
  for (queue_state* const q : c.queues) {
    q->is_stored = true;
    q->is_staged = false;
  }
  std::vector<const conflict*> clashes(how.conflicts.empty() ? 0 : c.changes.changes.size());
  for (const conflict& one : how.conflicts) clashes[one.index] = &one;
  const auto clash_of = [&](std::size_t i) -> const conflict* {
    return i < clashes.size() ? clashes[i] : nullptr;
  };
  // The first of each group that is refused for itself.
  std::unordered_map<std::uint32_t, const conflict*> causes;
  for (const conflict& one : how.conflicts) {
    const std::uint32_t group = c.changes.changes[one.index].group;
    if (group != 0 && one.why != conflict::reason::other_of_group) causes.emplace(group, &one);
  }
  const auto cause_of = [&](std::size_t i) -> const conflict* {
    const auto found = causes.find(c.changes.changes[i].group);
    return found == causes.end() ? nullptr : found->second;
  };
  for (std::size_t i = 0; i < c.changes.changes.size(); ++i) {
    const change& done_change = c.changes.changes[i];
    if (done_change.queue != 0 && clash_of(i) == nullptr) apply_counts(done_change);
  }
  // Jobs of this commit that were to be ready or scheduled, and are not.
  std::vector<const effect*> held(how.effects.empty() ? 0 : c.changes.changes.size());
  for (const effect& e : how.effects) {
    if (e.what != effect::kind::held) continue;
    held[e.cause] = &e;
    const change& mine = c.changes.changes[e.cause];
    count_effect(e, mine.what == change::op::add ? mine.it->state : mine.to);
  }
  const auto instead_of = [&](std::size_t i) -> const effect* {
    return i < held.size() ? held[i] : nullptr;
  };
  counters.committed_changes += c.changes.changes.size();
  for (commit::staged_push& p : c.pushes) {
    staged_bytes_ -= p.item.weight;
    --p.item.queue->staged_jobs;
    p.item.queue->staged_bytes -= p.item.weight;
    push_committed(p, clash_of(p.change), cause_of(p.change), instead_of(p.change), out);
  }
  for (commit::eviction& e : c.evictions) evicted(e, out);
  for (end_item& e : c.ends) end_committed(e, c.changes.changes[e.change], out);
  apply_effects(c, how.effects, out);
  for (const auto& [number, counts] : how.counts) {
    queue_state* const q = find_queue(number);
    if (q == nullptr) continue;
    q->counts = counts;
    touch(*q);
  }
  for (commit::other& o : c.others) {
    const conflict* const clash = clash_of(o.change);
    if (clash != nullptr && c.changes.changes[o.change].what != change::op::add) {
      const job_id id = c.changes.changes[o.change].id;
      const error gone{
          error_code::not_found,
          "job " + std::to_string(id) + " was skipped: what it waited for can no longer come true",
          id};
      o.then({&gone, nullptr, clash}, out);
    } else {
      o.then({nullptr, instead_of(o.change), clash}, out);
    }
  }
  hear_what_waited(out);
  is_applying_ = false;
  settle(out);
}

// What the store has done to other jobs than those of the changes, and to these.
void core::apply_effects(const commit& c, const std::vector<effect>& effects, answers& out) {
  // Held jobs that were changed after something had released them: their change was counted as one
  // of a held job.
  const auto is_changed_later = [&](const effect& e) {
    const auto& all = c.changes.changes;
    return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(e.cause), all.end(),
                       [&](const change& later) {
                         return later.id == e.id && later.from == job_state::held &&
                                (later.what == change::op::move || later.what == change::op::drop);
                       });
  };
  for (const effect& e : effects) {
    switch (e.what) {
      case effect::kind::held:
        ++counters.held;  // counted before: the job of an add has its new state by now
        break;
      case effect::kind::released:
        if (busy_.contains(e.id) && is_changed_later(e)) break;
        count_effect(e, job_state::held);
        ++counters.released;
        note(event_type::released, *e.it);
        if (e.it->is_damaged) break;  // the committer marks it dead
        e.to == job_state::ready ? publish(e.it) : note_due(e.due_at);
        break;
      case effect::kind::skipped:
        count_effect(e, job_state::held);
        ++counters.skipped;
        note(event_type::removed, *e.it, "skipped");
        job_gone(e.id,
                 {error_code::not_found,
                  "the job was skipped: what it waited for can no longer come true", e.id},
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
  if (e.what == effect::kind::skipped) {
    q->counts.bytes -= e.weight;
    touch(*q);
  } else {
    ++q->counts.of(e.to);
  }
}

void core::push_committed(commit::staged_push& p, const conflict* clash, const conflict* of_group,
                          const effect* instead, answers& out) {
  job& j = *p.item.it;
  if (clash != nullptr) {
    check(!p.is_handed_over, "sluice::jobs::core", "no conflict of a job that has no rule");
    touch(*p.item.queue);  // its room is free again
    for (job_ptr& spared : p.item.victims) spare_victim(*p.item.queue, std::move(spared));
    return p.item.to.give(answer_to_clash(*clash, of_group, j, counters), out);
  }
  ++counters.pushed;
  for (job_ptr& gone : p.item.victims) stage_eviction(*p.item.queue, std::move(gone), false);
  const job_id id = j.id;
  if (instead != nullptr) {
    j.state = instead->to;
    j.due_at = instead->due_at;
    j.blockers = instead->blockers;
  }
  note(event_type::pushed, j);
  if (p.is_handed_over) {
    handed_over_is_stored(j);
  } else if (j.state == job_state::ready) {
    publish(std::move(p.item.it));
  } else if (j.state == job_state::scheduled) {
    note_due(j.due_at);
  }
  p.item.to.give(push_receipt{id, push_receipt::fate::accepted}, out);
}

void core::refuse_pushes(commit& c, const error& why, answers& out) {
  for (commit::staged_push& p : c.pushes) {
    staged_bytes_ -= p.item.weight;
    --p.item.queue->staged_jobs;
    p.item.queue->staged_bytes -= p.item.weight;
    ++counters.refused;
    touch(*p.item.queue);
    for (job_ptr& spared : p.item.victims) spare_victim(*p.item.queue, std::move(spared));
    if (p.is_handed_over) handed_over_is_not_stored(p.item.it->id, out);
    p.item.to.give(p.is_handed_over ? begun_nonetheless(why) : why, out);
  }
  // With them go their batches. One that has no jobs yet is not theirs.
  std::vector<bool> goes(c.changes.changes.size());
  std::unordered_set<std::uint32_t> groups;
  for (const commit::staged_push& p : c.pushes) {
    goes[p.change] = true;
    groups.insert(c.changes.changes[p.change].group);
  }
  for (std::size_t i = 0; i < goes.size(); ++i) {
    const change& one = c.changes.changes[i];
    if (one.what == change::op::add_batch && groups.contains(one.group)) goes[i] = true;
  }
  c.pushes.clear();
  for (commit::eviction& e : c.evictions) {
    if (!e.is_with_push) continue;
    goes[e.change] = true;
    spare_victim(*e.queue, std::move(e.gone));
  }
  std::erase_if(c.evictions, [](const commit::eviction& e) { return e.is_with_push; });
  close_ranks(c, goes);
}

bool core::refuse_own(commit& c, const error& why, answers& out) {
  const std::vector<change>& all = c.changes.changes;
  std::vector<bool> is_own(all.size());
  for (const commit::other& o : c.others) {
    if (o.change != commit::no_change && all[o.change].what == change::op::add) {
      is_own[o.change] = true;
    }
  }
  // What such a job is about stands right behind it: the end that it tells of, or the entry that
  // has run. The one does not happen without the other.
  std::vector<bool> goes = is_own;
  for (std::size_t i = 1; i < all.size(); ++i) goes[i] = goes[i] || is_own[i - 1];
  if (std::ranges::find(goes, true) == goes.end()) return false;
  for (end_item& e : c.ends) {
    if (goes[e.change]) refuse_end(e, why, out);
  }
  std::erase_if(c.ends, [&](const end_item& e) { return goes[e.change]; });
  std::vector<commit::other> theirs;
  for (commit::other& o : c.others) {
    if (o.change != commit::no_change && goes[o.change]) theirs.push_back(std::move(o));
  }
  std::erase_if(c.others, [](const commit::other& o) { return !o.then; });
  close_ranks(c, goes);
  for (commit::other& o : theirs) o.then({&why}, out);
  return true;
}

bool core::take_out(commit& c, const error& why, answers& out) {
  std::vector<bool> goes(c.changes.changes.size());
  const auto first = std::ranges::find_if(c.changes.changes, [&](const change& one) {
    return one.id == why.job && (one.what == change::op::move || one.what == change::op::drop ||
                                 one.what == change::op::drop_damaged);
  });
  if (first == c.changes.changes.end()) return false;
  const auto at = static_cast<std::size_t>(first - c.changes.changes.begin());
  goes[at] = true;
  for (commit::eviction& e : c.evictions) {
    if (e.change == at) forget_choice(*e.queue, *e.gone);  // it is gone already
  }
  std::erase_if(c.evictions, [&](const commit::eviction& e) { return e.change == at; });
  for (end_item& e : c.ends) {
    if (e.change != at) continue;
    said_bytes_ -= e.bytes;
    e.acked.give(why, out);
    if (e.failed) out.add(std::move(*e.failed), result<fail_receipt>(why));
    forget_lease(e.id, out);
  }
  std::erase_if(c.ends, [&](const end_item& e) { return e.change == at; });
  for (commit::other& o : c.others) {
    if (o.change == at) o.then({&why}, out);
  }
  std::erase_if(c.others, [&](const commit::other& o) { return o.change == at; });
  job_gone(why.job, why, out);
  close_ranks(c, goes);
  return true;
}

void core::refused(commit& c, const error& why, answers& out) {
  ++counters.commit_errors;
  serves_due_ = false;
  refuse_pushes(c, why, out);
  for (queue_state* const q : c.queues) {
    q->is_staged = false;
    // Others were staged for it while this was tried: they cannot go without it.
    if (!q->is_stored && q->staged_jobs > 0) stage_queue(*q, q->options);
  }
  for (commit::eviction& e : c.evictions) spare_victim(*e.queue, std::move(e.gone));
  for (end_item& e : c.ends) refuse_end(e, why, out);
  for (commit::other& o : c.others) o.then({&why}, out);
  hear_what_waited(out);
  settle(out);
}

void core::refuse_end(end_item& e, const error& why, answers& out) {
  if (lease_state* const l = find_lease(e.id)) {
    l->is_ending = false;
    // The worker hears of the error and can say it again: give it the time to, even beyond the
    // job's time limit. For one that has run out it is when that is tried again.
    l->until = std::max(l->until, time_.timers().now() + options_.probe_every * 2);
    timers_.remove(*l);
    timers_.add(*l, l->until);
  }
  said_bytes_ -= e.bytes;
  e.acked.give(why, out);
  if (e.failed) out.add(std::move(*e.failed), result<fail_receipt>(why));
}

}  // namespace sluice::jobs::detail
