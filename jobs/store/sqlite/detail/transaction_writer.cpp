#include "jobs/store/sqlite/detail/transaction_writer.hpp"

#include <array>
#include <utility>

#include "jobs/store/groups.hpp"
#include "jobs/store/sqlite/detail/errors_json.hpp"
#include "jobs/store/sqlite/detail/history_json.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr const char* object = "sluice::jobs::sqlite_store";
// Expired keys deleted per transaction: at least as many as a transaction can add.
constexpr std::int64_t expired_keys_at_once = 1000;

// The columns that a move changes, and the SQL of their new values.
constexpr std::array<changed_column, 12> moved_columns = {
    {{"state", "?4"},
     {"due_at", "?5"},
     {"turn", "coalesce(?6, turn)"},
     {"attempts", "nullif(coalesce(?7, attempts), 0)"},
     {"ended_at", "nullif(coalesce(?8, ended_at), 0)"},
     {"rank", "coalesce(?9, rank)"},
     {"errors", "coalesce(?10, errors)"},
     {"result", "coalesce(?11, result)"},
     {"has_place", "?12"},
     {"progress", "coalesce(?13, progress)"},
     {"progress_text", "coalesce(?14, progress_text)"},
     {"history", "sluice_add_attempt(history, ?15)"}}};

// Returns the checksum of the columns key_columns.
std::int64_t checksum_of_key(queue_number queue, std::string_view key, job_id holder, bool expires,
                             unix_time when) {
  row_checksum sum;
  sum.number(0, queue);
  sum.text(1, key);
  sum.number(2, signed_of(holder));
  if (expires) sum.number(3, when.ms);
  return sum.value();
}

}  // namespace

bool transaction_writer::prepare(connection& on) {
  on_ = &on;
  return tables_.prepare(on) && lone_.prepare(on) && gated_.prepare(on) && settings_.prepare(on) &&
         damaged_.prepare(on) &&
         add_.prepare(on, "INSERT INTO jobs (" + column_list() + ") VALUES (" +
                              parameter_list(job_columns.size()) + ")") &&
         move_.prepare(on, "UPDATE jobs SET " + update_list(moved_columns) +
                               " WHERE id = ?1 AND queue = ?2 AND state = ?3") &&
         drop_.prepare(on, "DELETE FROM jobs WHERE id = ?1 AND queue = ?2 AND state = ?3") &&
         read_errors_.prepare(on, "SELECT errors FROM jobs WHERE id = ?1") &&
         find_key_.prepare(
             on,
             "SELECT job, expires_at, checksum FROM unique_keys WHERE queue = ?1 AND key = ?2") &&
         take_key_.prepare(on, "INSERT OR REPLACE INTO unique_keys VALUES (?1, ?2, ?3, ?4, ?5)") &&
         free_key_.prepare(on,
                           "DELETE FROM unique_keys WHERE queue = ?1 AND key = ?2 AND job = ?3") &&
         expired_keys_.prepare(on,
                               "SELECT queue, key FROM unique_keys WHERE expires_at <= ?1 "
                               "ORDER BY expires_at LIMIT ?2") &&
         drop_key_.prepare(on, "DELETE FROM unique_keys WHERE queue = ?1 AND key = ?2") &&
         next_expired_.prepare(on,
                               "SELECT min(expires_at) FROM unique_keys "
                               "WHERE expires_at IS NOT NULL") &&
         count_.prepare(on,
                        "UPDATE queues SET scheduled = scheduled + ?2, ready = ready + ?3, "
                        "retrying = retrying + ?4, done = done + ?5, dead = dead + ?6, "
                        "cancelled = cancelled + ?7, bytes = bytes + ?8, held = held + ?9 "
                        "WHERE number = ?1") &&
         save_lease_.prepare(on, "INSERT OR REPLACE INTO leases (" + std::string(lease_columns) +
                                     ", checksum) VALUES (" + parameter_list(lease_columns_count) +
                                     ", " + checksum_of(parameter_list(lease_columns_count)) +
                                     ")") &&
         drop_leases_.prepare(on, "DELETE FROM leases") &&
         mark_.prepare(on,
                       "INSERT INTO meta VALUES ('marks', 1, sluice_checksum('marks', 1)) "
                       "ON CONFLICT (name) DO UPDATE SET value = value + 1, "
                       "checksum = sluice_checksum('marks', value + 1)") &&
         ids_up_to_.prepare(on,
                            "UPDATE meta SET value = ?1, checksum = sluice_checksum(name, ?1) "
                            "WHERE name = 'ids_up_to' AND value < ?1");
}

bool transaction_writer::write(const transaction& t, applied& outcome) {
  deltas_.clear();
  lone_.clear();
  gated_.clear();
  gates_.begin(t.now);
  has_dropped_damaged_ = must_recount_ = false;
  if (!forget_expired_keys(t)) return false;
  for (std::size_t i = 0; i < t.changes.size();) {
    i = write_next(t, i, outcome.conflicts);
    if (i == 0) return false;
  }
  if (!flush() || !gates_.finish()) return false;
  // An empty transaction writes a row too: it tests the store.
  if (t.changes.empty() && !mark()) return false;
  if (t.ids_up_to != 0 && !ids_up_to_.number(1, signed_of(t.ids_up_to)).run()) return false;
  outcome.effects = gates_.take_effects();
  if (!write_counts() || (must_recount_ && !damaged_.count_jobs())) return false;
  if (!has_dropped_damaged_) return true;
  std::vector<store::saved_queue> queues;
  if (auto loaded = load_queues(*on_, queues); !loaded) {
    own_error_ = std::move(loaded.error());
    return false;
  }
  for (const auto& q : queues) outcome.counts.emplace_back(q.number, q.counts);
  return true;
}

std::size_t transaction_writer::write_next(const transaction& t, std::size_t at,
                                           std::vector<conflict>& conflicts) {
  const change& c = t.changes[at];
  std::size_t next = at + 1;
  bool written = false;
  const bool is_unnoted_drop = c.type == change::op::drop && !tables_.may_be_noted(c.id);
  if (lone_rows::is_lone_add(c)) {
    check(c.job->id != 0, object, "a job with an id");
    deltas_.add(c);
    written = lone_.add(c);
  } else if (is_unnoted_drop && lone_rows::is_lone_drop(c)) {
    deltas_.add(c);
    written = lone_.drop(c);
  } else if (gated_rows::is_keyed_add(c)) {
    check(c.job->id != 0, object, "a job with an id");
    written = gated_.add(at, c);
  } else if (is_unnoted_drop && gated_rows::is_keyed_drop(c) &&
             tables_.leave_at_once(line_of(c.queue, c.job->spec.key))) {
    deltas_.add(c);
    written = (!gated_.has(c.id) || gated_.flush()) && lone_.drop(c);
  } else if (is_unnoted_drop && gated_rows::is_batch_job_drop(c)) {
    deltas_.add(c);
    const job_state as = has_ended(c.new_state) ? c.new_state : job_state::cancelled;
    written = (!gated_.has(c.id) || gated_.flush()) && lone_.drop(c) &&
              gates_.ended(at, c.id, c.queue, c.job.get(), as);
  } else if (flush()) {
    if (c.type == change::op::add || c.type == change::op::add_batch) {
      next = end_of_group(t, at);
      written = add_group(t, at, next, conflicts);
    } else if (bool is_there = true; find_from(c, is_there)) {
      if (!is_there) conflicts.push_back({at, 0, conflict::reason::skipped});
      written = !is_there || write_one(at, c);
    }
  }
  return written ? next : 0;
}

std::optional<error> transaction_writer::own_error() {
  auto own = std::exchange(own_error_, std::nullopt);
  auto of_lone = lone_.own_error();
  auto of_tables = tables_.own_error();
  if (own) return own;
  return of_lone ? of_lone : of_tables;
}

void transaction_writer::undone() noexcept {
  next_expiry_ = unix_time{};
  tables_.undone();
}

// Finds the state before a change. An earlier change of the transaction may have released or
// deleted a held job.
bool transaction_writer::find_from(const change& c, bool& is_there) {
  from_ = c.from;
  const bool changes_job = c.type == change::op::move || c.type == change::op::drop;
  if (!changes_job || c.from != job_state::held) return true;
  std::optional<job_state> now;
  if (!tables_.state_of(c.id, now)) return false;
  is_there = now.has_value();
  if (now == job_state::ready || now == job_state::scheduled) from_ = *now;
  return true;
}

bool transaction_writer::write_one(std::size_t cause, const change& c) {
  switch (c.type) {
    case change::op::add:
    case change::op::add_batch:
      break;  // done by add_group
    case change::op::move:
      return move(cause, c);
    case change::op::drop:
      return drop(cause, c);
    case change::op::drop_damaged:
      return drop_damaged(cause, c.id);
    case change::op::free_key:
      return free_key(c);
    case change::op::set_queue:
      tables_.set_queue(c.queue, c.settings->options);
      return settings_.set_queue(c.queue, *c.settings);
    case change::op::save_lease:
      return save_lease(c);
    case change::op::drop_leases:
      return drop_leases_.run();
    case change::op::close_batch:
      return gates_.close_batch(cause, c.id);
    case change::op::drop_batch:
      return gates_.drop_batch(cause, c.id);
    case change::op::set_cron:
      return settings_.set_cron(*c.cron);
    case change::op::drop_cron:
      return settings_.drop_cron(*c.cron);
    case change::op::add_logs:
      return tables_.add_logs(c.id, *c.logs);
  }
  check(false, object, "a change that exists");
  return false;
}

bool transaction_writer::add_group(const transaction& t, std::size_t first, std::size_t end,
                                   std::vector<conflict>& conflicts) {
  const auto found = conflicts_of_group(
      t, first, end, [&](const change& c) { return find_holder(c, t.now); },
      [&](const job_spec& spec, const std::vector<job_id>& own,
          std::optional<conflict::reason>& reason) {
        return gates_.refusal_of(spec, own, reason);
      });
  if (!found) return false;
  conflicts.insert(conflicts.end(), found->begin(), found->end());
  for (std::size_t i = first; found->empty() && i < end; ++i) {
    const change& c = t.changes[i];
    if (c.type == change::op::add_batch) {
      if (!gates_.add_batch(*c.batch)) return false;
    } else if (gated_rows::is_gated_add(c)) {
      check(c.job->id != 0, object, "a job with an id");
      if (!gated_.add(i, c)) return false;
    } else if (!gated_.flush() || !take_key(c) || !add(i, c)) {
      return false;
    }
  }
  return true;
}

std::optional<job_id> transaction_writer::find_holder(const change& c, unix_time now) {
  const reset_at_end ended(find_key_);
  const int rc = find_key_.number(1, c.queue).text(2, c.job->spec.unique.key).step();
  if (rc == SQLITE_DONE) return 0;
  if (rc != SQLITE_ROW) return std::nullopt;
  const auto holder = unsigned_of(find_key_.number(0));
  const bool expires = !find_key_.is_null(1);
  const unix_time when{find_key_.number(1)};
  if (!find_key_.is_null(2) &&
      find_key_.number(2) !=
          checksum_of_key(c.queue, c.job->spec.unique.key, holder, expires, when)) {
    // The holder and expiry of the key are unknown. The add takes the key.
    damage_->notify(true, "unique key '" + c.job->spec.unique.key + "' is damaged: it is free");
    return 0;
  }
  return expires && when <= now ? 0 : holder;
}

bool transaction_writer::take_key(const change& c) {
  const unique_key& unique = c.job->spec.unique;
  if (unique.key.empty()) return true;
  const bool expires = unique.expires();
  const unix_time when = c.job->created_at + unique.lasts;
  if (expires && (!next_expiry_ || when < *next_expiry_)) next_expiry_ = when;
  return take_key_.number(1, c.queue)
      .text(2, unique.key)
      .number(3, signed_of(c.job->id))
      .number_or_null(4, when.ms, !expires)
      .number(5, checksum_of_key(c.queue, unique.key, c.job->id, expires, when))
      .run();
}

bool transaction_writer::add(std::size_t cause, const change& c) {
  check(c.job->id != 0, object, "a job with an id");
  if (!gates::concern(c.job->spec)) return insert(*c.job, c.queue);
  admission placement;
  if (!gates_.admit_new(cause, *c.job, c.queue, placement)) return false;
  job admitted = *c.job;
  admitted.state = placement.state;
  admitted.due_at = placement.due_at;
  admitted.blockers = placement.blockers;
  return insert(admitted, c.queue);
}

bool transaction_writer::insert(const job& j, queue_number queue) {
  deltas_.enter(queue, j.state, weight_of(j.spec));
  row_texts texts;
  bind_job(add_, j, queue, texts);
  return add_.run();
}

// The job of a change may be outdated: since the engine read it, the store may have met its
// dependencies or given it a place, which is in its row.
bool transaction_writer::find_stored(const change& c, const job*& was) {
  was = c.job && gates::concern(c.job->spec) ? c.job.get() : nullptr;
  if (was == nullptr) return true;
  gate_tables::waiting now{was->blockers, was->has_place};
  const bool may_differ =
      from_ == job_state::scheduled ||
      (!was->spec.after.empty() && from_ != job_state::ready && from_ != job_state::retrying);
  if (may_differ && !tables_.read_waiting(c.id, now)) return false;
  if (was->state == from_ && was->blockers == now.blockers && was->has_place == now.has_place) {
    return true;
  }
  stored_ = *was;
  stored_.state = from_;
  stored_.blockers = now.blockers;
  stored_.has_place = now.has_place;
  was = &stored_;
  return true;
}

bool transaction_writer::move(std::size_t cause, const change& c) {
  check(c.fields != nullptr, object, "a move with fields");
  const job* was = nullptr;
  if (!find_stored(c, was)) return false;
  admission placement{c.new_state, c.fields->due_at, 0};
  bool has_place = false;
  if (was != nullptr) {
    has_place = gates::keeps_place(*was, c.new_state);
    if (has_ended(from_) && !has_ended(c.new_state) && !gates_.revived(*was, from_)) return false;
    if (c.new_state == job_state::ready && !gates_.admit(cause, *was, c.queue, placement)) {
      return false;
    }
    if (placement.state == job_state::ready) placement.due_at = c.fields->due_at;
  }
  if (!write_move(c, placement.state, placement.due_at, has_place)) return false;
  if (has_ended(from_) || !has_ended(c.new_state)) return true;
  return gates_.ended(cause, c.id, c.queue, was, c.new_state);
}

bool transaction_writer::write_move(const change& c, job_state new_state, unix_time due_at,
                                    bool has_place) {
  const change::moved& fields = *c.fields;
  deltas_.leave(c.queue, from_, c.weight);
  deltas_.enter(c.queue, new_state, c.weight);
  std::string errors;
  if (fields.error && !add_error(c, errors)) return false;
  move_.number(1, signed_of(c.id)).number(2, c.queue).number(3, static_cast<int>(from_));
  move_.number(4, static_cast<int>(new_state));
  move_.number_or_null(5, due_at.ms, due_at == unix_time{});
  move_.number_or_null(6, signed_of(fields.turn), fields.turn == 0);
  move_.number_or_null(7, fields.attempts.value_or(0), !fields.attempts);
  move_.number_or_null(8, fields.ended_at.value_or(unix_time{}).ms, !fields.ended_at);
  move_.number_or_null(9, -fields.priority.value_or(0), !fields.priority);
  fields.error ? move_.text(10, errors) : move_.null(10);
  fields.result ? bind_payload(move_, 11, *fields.result) : void(move_.null(11));
  move_.number_or_null(12, 1, !has_place);
  fields.progress ? move_.real(13, fields.progress->percent) : move_.null(13);
  fields.progress ? move_.text(14, fields.progress->text) : move_.null(14);
  const std::string attempt = fields.attempt ? history_to_json({*fields.attempt}) : std::string();
  fields.attempt ? move_.text(15, attempt) : move_.null(15);
  if (!move_.run()) return false;
  if (sqlite3_changes(on_->handle()) != 1) return missing("moved", c.id);
  return !fields.free_key || free_key(c);
}

bool transaction_writer::add_error(const change& c, std::string& errors) {
  const reset_at_end ended(read_errors_);
  const int rc = read_errors_.number(1, signed_of(c.id)).step();
  if (rc == SQLITE_DONE) return missing("moved", c.id);
  if (rc != SQLITE_ROW) return false;
  std::vector<attempt_error> all;
  if (!read_errors_.is_null(0)) all = errors_from_json(read_errors_.view(0));
  all.push_back(*c.fields->error);
  if (all.size() > limits::errors_max) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(limits::errors_max));
  }
  errors = errors_to_json(all);
  return true;
}

bool transaction_writer::drop(std::size_t cause, const change& c) {
  const job* was = nullptr;
  if (!find_stored(c, was)) return false;
  deltas_.leave(c.queue, from_, c.weight);
  drop_.number(1, signed_of(c.id)).number(2, c.queue).number(3, static_cast<int>(from_));
  if (!drop_.run()) return false;
  if (sqlite3_changes(on_->handle()) != 1) return missing("dropped", c.id);
  if (c.job && !free_key(c)) return false;
  if (was != nullptr && !was->spec.after.empty() && !tables_.drop_edges_of(c.id)) return false;
  if (!tables_.drop_logs_of(c.id)) return false;
  if (!has_ended(from_)) {
    const job_state as = has_ended(c.new_state) ? c.new_state : job_state::cancelled;
    if (!gates_.ended(cause, c.id, c.queue, was, as)) return false;
  }
  return gates_.gone(cause, c.id);
}

bool transaction_writer::drop_damaged(std::size_t cause, job_id id) {
  std::optional<job_state> state;
  placed_job found;
  if (!tables_.state_of(id, state)) return false;
  if (!state) return missing("dropped", id);
  if (!tables_.read_job(id, found)) return false;
  has_dropped_damaged_ = true;
  if (found.job == nullptr) {
    must_recount_ = true;
    gates::remains left;
    return damaged_.forget(id, tables_, left) && gates_.damaged_gone(cause, id, left);
  }
  // The control columns of the row are sound.
  change c;
  c.type = change::op::drop;
  c.queue = found.queue;
  c.id = id;
  c.from = from_ = found.job->state;
  c.new_state = has_ended(c.from) ? c.from : job_state::dead;
  c.weight = weight_of(found.job->spec);
  c.job = std::move(found.job);
  return drop(cause, c);
}

bool transaction_writer::free_key(const change& c) {
  check(c.job != nullptr, object, "the job whose key is to be freed");
  if (!c.job->spec.unique.ends_with_job()) return true;
  return free_key_.number(1, c.queue)
      .text(2, c.job->spec.unique.key)
      .number(3, signed_of(c.job->id))
      .run();
}

bool transaction_writer::save_lease(const change& c) {
  const change::lease_record& l = *c.lease;
  save_lease_.number(1, signed_of(c.id))
      .number(2, c.queue)
      .number(3, signed_of(l.key))
      .text(4, l.worker)
      .number(5, l.until.ms)
      .number(6, l.began.ms)
      .number_or_null(7, l.lasts.count(), l.lasts == milliseconds(0))
      .number_or_null(10, 1, !l.is_cancelled);
  l.progress ? save_lease_.real(8, l.progress->percent).text(9, l.progress->text)
             : save_lease_.null(8).null(9);
  l.job_key.empty() ? save_lease_.null(11) : save_lease_.text(11, l.job_key);
  return save_lease_.run();
}

bool transaction_writer::forget_expired_keys(const transaction& t) {
  if (!next_expiry_ || *next_expiry_ > t.now) return true;
  std::vector<std::pair<std::int64_t, std::string>> expired;
  {
    const reset_at_end ended(expired_keys_);
    const auto at_once = expired_keys_at_once + static_cast<std::int64_t>(t.changes.size());
    expired_keys_.number(1, t.now.ms).number(2, at_once);
    int rc = SQLITE_ROW;
    while ((rc = expired_keys_.step()) == SQLITE_ROW) {
      expired.emplace_back(expired_keys_.number(0), expired_keys_.string(1));
    }
    if (rc != SQLITE_DONE) return false;
  }
  for (const auto& [queue, key] : expired) {
    if (!drop_key_.number(1, queue).text(2, key).run()) return false;
  }
  const reset_at_end ended(next_expired_);
  if (next_expired_.step() != SQLITE_ROW) return false;
  next_expiry_.reset();
  if (!next_expired_.is_null(0)) next_expiry_ = unix_time{next_expired_.number(0)};
  return true;
}

bool transaction_writer::write_counts() {
  for (const auto& d : deltas_.touched()) {
    count_.number(1, d.queue)
        .number(2, d.jobs_of(job_state::scheduled))
        .number(3, d.jobs_of(job_state::ready))
        .number(4, d.jobs_of(job_state::retrying))
        .number(5, d.jobs_of(job_state::done))
        .number(6, d.jobs_of(job_state::dead))
        .number(7, d.jobs_of(job_state::cancelled))
        .number(8, d.bytes)
        .number(9, d.jobs_of(job_state::held));
    if (!count_.run()) return false;
    if (sqlite3_changes(on_->handle()) == 1) continue;
    own_error_ = error{error_code::corrupt,
                       on_->path() + ": there is no queue " + std::to_string(d.queue) +
                           " to count its jobs, so another program has changed the file: " +
                           std::string(corrupt_advice)};
    return false;
  }
  return true;
}

bool transaction_writer::missing(const char* done_to, job_id id) {
  own_error_ = changed_elsewhere(on_->path(), done_to, std::to_string(id), id);
  return false;
}

}  // namespace sluice::jobs::detail
