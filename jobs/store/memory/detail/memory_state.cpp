#include "jobs/store/memory/detail/memory_state.hpp"

#include <algorithm>
#include <memory>

#include "jobs/store/count_deltas.hpp"
#include "jobs/store/groups.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

position position_of(const job& j) {
  return {j.spec.priority, j.turn};
}

bool changes_held_job(const change& c) {
  return c.from == job_state::held && (c.type == change::op::move || c.type == change::op::drop);
}

// True for a change of a held job that an earlier change of the transaction released.
bool was_released(const job& now, const change& c) {
  return c.from == job_state::held &&
         (now.state == job_state::ready || now.state == job_state::scheduled);
}

// Applies the fields of a move to a job, except its state.
job moved_from(const job& was, const change::moved& fields) {
  job next = was;
  next.due_at = fields.due_at;
  if (fields.turn != 0) next.turn = fields.turn;
  if (fields.attempts) next.attempts = *fields.attempts;
  if (fields.ended_at) next.ended_at = *fields.ended_at;
  if (fields.error) {
    next.errors.push_back(*fields.error);
    if (next.errors.size() > limits::errors_max) next.errors.erase(next.errors.begin());
  }
  if (fields.attempt) add_attempt(next.history, *fields.attempt);
  if (fields.result) next.result = *fields.result;
  if (fields.priority) next.spec.priority = *fields.priority;
  if (fields.progress) next.progress = *fields.progress;
  return next;
}

}  // namespace

memory_state::kept_queue& memory_state::queue_of(queue_number number) {
  const auto at = queues_.find(number);
  check(at != queues_.end(), memory_store_object, "a queue that was set before it was used");
  return at->second;
}

memory_state::kept_job& memory_state::job_of(const change& c) {
  const auto at = jobs_.find(c.id);
  check(at != jobs_.end() && at->second.queue == c.queue &&
            (at->second.job->state == c.from || was_released(*at->second.job, c)),
        memory_store_object, "a job that is there, in the queue and the state of the change");
  return at->second;
}

void memory_state::enlist(const kept_job& k) {
  const job& j = *k.job;
  if (j.state == job_state::ready) {
    const bool is_new = queue_of(k.queue).ready.emplace(position_of(j), j.id).second;
    check(is_new, memory_store_object, "a unique turn for every ready job of a priority");
  }
  if (gates::waits_in_line(j)) in_line_.emplace(line_of(k.queue, j.spec.key), j.turn, j.id);
  if (j.due_at != unix_time{}) due_.emplace(j.due_at, j.id);
}

void memory_state::delist(const kept_job& k) {
  const job& j = *k.job;
  if (j.state == job_state::ready) queue_of(k.queue).ready.erase(position_of(j));
  if (gates::waits_in_line(j)) in_line_.erase({line_of(k.queue, j.spec.key), j.turn, j.id});
  due_.erase({j.due_at, j.id});
}

void memory_state::erase(job_id id) {
  jobs_.erase(id);
  leases_.erase(id);
  logs_.erase(id);
  auto at = edges_by_job_.lower_bound({id, 0, after_when::success});
  while (at != edges_by_job_.end() && std::get<0>(*at) == id) {
    edges_.erase({std::get<1>(*at), id, std::get<2>(*at)});
    at = edges_by_job_.erase(at);
  }
}

void memory_state::count(queue_number queue, std::optional<job_state> from,
                         std::optional<job_state> new_state, std::uint64_t weight) {
  count_deltas deltas;
  if (from) deltas.leave(queue, *from, weight);
  if (new_state) deltas.enter(queue, *new_state, weight);
  jobs::apply(deltas.touched().front(), queue_of(queue).counts);
}

// ---- unique keys

job_id memory_state::holder_for(const change& c, unix_time now) const {
  const auto at = keys_.find({c.queue, c.job->spec.unique.key});
  if (at == keys_.end()) return 0;
  return at->second.expires && *at->second.expires <= now ? 0 : at->second.holder;
}

void memory_state::take_key(const change& c) {
  const unique_key& unique = c.job->spec.unique;
  if (unique.key.empty()) return;
  const key_name name{c.queue, unique.key};
  kept_key& key = keys_[name];
  if (key.expires) expiring_.erase({*key.expires, name});
  key = {c.job->id, std::nullopt};
  if (unique.expires()) {
    key.expires = c.job->created_at + unique.lasts;
    expiring_.emplace(*key.expires, name);
  }
}

void memory_state::free_key(queue_number queue, const job& j) {
  if (!j.spec.unique.ends_with_job()) return;
  const auto at = keys_.find({queue, j.spec.unique.key});
  if (at == keys_.end() || at->second.holder != j.id) return;
  if (at->second.expires) expiring_.erase({*at->second.expires, at->first});
  keys_.erase(at);
}

void memory_state::forget_expired_keys(unix_time now) {
  while (!expiring_.empty() && expiring_.begin()->first <= now) {
    keys_.erase(expiring_.begin()->second);
    expiring_.erase(expiring_.begin());
  }
}

// ---- changes

// Adds the group that begins at `first`, or none of it; returns its end.
std::size_t memory_state::add_group(const transaction& t, std::size_t first,
                                    std::vector<conflict>& conflicts) {
  const std::size_t end = end_of_group(t, first);
  const auto found = conflicts_of_group(
      t, first, end, [&](const change& c) { return std::optional(holder_for(c, t.now)); },
      [&](const job_spec& spec, const std::vector<job_id>& own,
          std::optional<conflict::reason>& reason) {
        return gates_.refusal_of(spec, own, reason);
      });
  conflicts.insert(conflicts.end(), found->begin(), found->end());
  for (std::size_t i = first; found->empty() && i < end; ++i) {
    const change& c = t.changes[i];
    const bool added = c.type == change::op::add_batch ? gates_.add_batch(*c.batch) : add(i, c);
    check(added, memory_store_object, "rows that are in memory");
  }
  return end;
}

bool memory_state::add(std::size_t cause, const change& c) {
  check(c.job->id != 0, memory_store_object, "a job with an id");
  job_ptr added = c.job;
  if (gates::concern(added->spec)) {
    admission placement;
    if (!gates_.admit_new(cause, *added, c.queue, placement)) return false;
    job admitted = *added;
    admitted.state = placement.state;
    admitted.due_at = placement.due_at;
    admitted.blockers = placement.blockers;
    added = std::make_shared<const job>(std::move(admitted));
  }
  const auto [at, is_new] = jobs_.try_emplace(added->id, kept_job{added, c.queue});
  check(is_new, memory_store_object, "an id that was never used");
  enlist(at->second);
  count(c.queue, std::nullopt, added->state, weight_of(added->spec));
  take_key(c);
  return true;
}

bool memory_state::move(std::size_t cause, const change& c) {
  check(c.fields != nullptr, memory_store_object, "a move with fields");
  kept_job& kept = job_of(c);
  const job_ptr was = kept.job;
  const job_state from = was->state;
  const bool is_special = gates::concern(was->spec);
  job next = moved_from(*was, *c.fields);
  next.state = c.new_state;
  next.has_place = gates::keeps_place(*was, c.new_state);
  if (is_special && has_ended(from) && !has_ended(c.new_state) && !gates_.revived(*was, from)) {
    return false;
  }
  if (is_special && c.new_state == job_state::ready) {
    admission placement;
    if (!gates_.admit(cause, *was, c.queue, placement)) return false;
    next.state = placement.state;
    if (placement.state != job_state::ready) next.due_at = placement.due_at;
  }
  delist(kept);
  kept.job = std::make_shared<const job>(std::move(next));
  enlist(kept);
  count(c.queue, from, kept.job->state, c.weight);
  if (c.fields->free_key) {
    check(c.job != nullptr, memory_store_object, "the job whose key is to be freed");
    free_key(c.queue, *c.job);
  }
  if (has_ended(from) || !has_ended(c.new_state)) return true;
  return gates_.ended(cause, c.id, c.queue, is_special ? was.get() : nullptr, c.new_state);
}

bool memory_state::drop(std::size_t cause, const change& c) {
  const kept_job kept = job_of(c);
  delist(kept);
  erase(c.id);
  count(c.queue, kept.job->state, std::nullopt, c.weight);
  if (c.job) free_key(c.queue, *c.job);
  if (!has_ended(c.from)) {
    const job* const was = gates::concern(kept.job->spec) ? kept.job.get() : nullptr;
    const job_state as = has_ended(c.new_state) ? c.new_state : job_state::cancelled;
    if (!gates_.ended(cause, c.id, c.queue, was, as)) return false;
  }
  return gates_.gone(cause, c.id);
}

void memory_state::add_logs(const change& c) {
  check(c.logs != nullptr, memory_store_object, "the lines to add");
  if (!jobs_.contains(c.id)) return;
  std::vector<log_line>& lines = logs_[c.id];
  for (const log_line& line : *c.logs) {
    if (lines.size() >= limits::log_lines_max) return;
    lines.push_back(line);
    lines.back().number = lines.size();
  }
}

bool memory_state::apply_one(std::size_t cause, const change& c) {
  switch (c.type) {
    case change::op::add:
    case change::op::add_batch:
      break;  // done by add_group
    case change::op::move:
      return move(cause, c);
    case change::op::drop:
      return drop(cause, c);
    case change::op::drop_damaged:
      break;  // a memory store has no damaged rows
    case change::op::free_key:
      check(c.job != nullptr, memory_store_object, "the job whose key is to be freed");
      free_key(c.queue, *c.job);
      return true;
    case change::op::set_queue: {
      kept_queue& q = queues_[c.queue];
      q.name = c.settings->name;
      q.options = c.settings->options;
      return true;
    }
    case change::op::save_lease:
      leases_[c.id] = {c.queue, *c.lease};
      return true;
    case change::op::drop_leases:
      leases_.clear();
      return true;
    case change::op::close_batch:
      return gates_.close_batch(cause, c.id);
    case change::op::drop_batch:
      return gates_.drop_batch(cause, c.id);
    case change::op::set_cron:
      crons_[c.cron->spec.name] = *c.cron;
      return true;
    case change::op::drop_cron:
      crons_.erase(c.cron->spec.name);
      return true;
    case change::op::add_logs:
      add_logs(c);
      return true;
  }
  check(false, memory_store_object, "a change that exists");
  return false;
}

applied memory_state::apply(const transaction& t) {
  applied outcome;
  forget_expired_keys(t.now);
  gates_.begin(t.now);
  for (std::size_t i = 0; i < t.changes.size();) {
    const change::op type = t.changes[i].type;
    if (type == change::op::add || type == change::op::add_batch) {
      i = add_group(t, i, outcome.conflicts);
      continue;
    }
    if (changes_held_job(t.changes[i]) && !jobs_.contains(t.changes[i].id)) {
      outcome.conflicts.push_back({i, 0, conflict::reason::skipped});
    } else {
      check(apply_one(i, t.changes[i]), memory_store_object, "rows that are in memory");
    }
    ++i;
  }
  check(gates_.finish(), memory_store_object, "rows that are in memory");
  outcome.effects = gates_.take_effects();
  ids_up_to_ = std::max(ids_up_to_, t.ids_up_to);
  return outcome;
}

}  // namespace sluice::jobs::detail
