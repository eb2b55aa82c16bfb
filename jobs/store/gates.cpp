#include "jobs/store/gates.hpp"

#include <algorithm>

#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

constexpr const char* gates_object = "sluice::jobs::gates";

std::size_t index_of(after_when when) {
  return static_cast<std::size_t>(when);
}

}  // namespace

line_number line_of(queue_number queue, std::string_view key) noexcept {
  // FNV-1a, and a last mixing, so that keys that differ little are far apart. Stored: never change.
  std::uint64_t h = 14695981039346656037ULL ^ (queue * 0x9E3779B97F4A7C15ULL);
  for (const char c : key) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  return static_cast<line_number>(h);
}

bool gates::is_in_line(const job& j) noexcept {
  if (j.spec.key.empty()) return false;
  return j.state == job_state::ready || j.state == job_state::retrying ||
         (j.state == job_state::scheduled && j.has_place);
}

bool gates::waits_in_line(const job& j) noexcept {
  return j.state == job_state::held && j.blockers == 0 && !j.spec.key.empty();
}

void gates::begin(unix_time now) {
  now_ = now;
  effects_.clear();
  to_fire_.clear();
  batches_.clear();
}

// Conditions.

gates::outcome gates::outcome_of(job_state state) noexcept {
  if (state == job_state::done) return {hope::met, hope::met, hope::lost};
  if (has_ended(state)) return {hope::open, hope::met, hope::met};  // it may be retried
  return {hope::open, hope::open, hope::open};
}

gates::outcome gates::outcome_of(const batch_info& b) noexcept {
  const hope failure = b.failed > 0 ? hope::met : hope::open;
  if (!b.has_ended()) return {hope::open, hope::open, failure};
  if (b.failed == 0) return {hope::met, hope::met, hope::lost};
  return {hope::open, hope::met, failure};
}

bool gates::find_outcome(job_id on, outcome& what) {
  std::optional<job_state> state;
  if (!rows_.state_of(on, state)) return false;
  if (state) {
    what = outcome_of(*state);
    return true;
  }
  known_batch* b = nullptr;
  if (!find_batch(on, b)) return false;
  if (b != nullptr && b->is_damaged) {
    what = {hope::open, hope::open, hope::open};
    return true;
  }
  // What is gone by now was done: one that failed is kept for its retention, or was deleted.
  what = b != nullptr ? outcome_of(b->now) : outcome_of(job_state::done);
  return true;
}

bool gates::refusal_of(const job_spec& spec, std::span<const job_id> own,
                       std::optional<conflict::reason>& why) {
  why.reset();
  const auto is_own = [own](job_id id) { return std::ranges::binary_search(own, id); };
  if (spec.batch != 0 && !is_own(spec.batch)) {
    known_batch* b = nullptr;
    if (!find_sound_batch(spec.batch, b)) return false;
    if (b == nullptr) why = conflict::reason::no_such_batch;
    if (b != nullptr && b->now.has_ended()) why = conflict::reason::batch_ended;
  }
  for (const dependency& d : spec.after) {
    if (why || is_own(d.on)) continue;
    outcome known{};
    if (!find_outcome(d.on, known)) return false;
    if (known[index_of(d.when)] == hope::lost) why = conflict::reason::skipped;
  }
  return true;
}

// Arriving.

bool gates::admit_new(std::size_t cause, const job& j, queue_number queue, admission& how) {
  how = {j.state, j.due_at, 0};
  const std::vector<dependency>& after = j.spec.after;
  for (auto d = after.begin(); d != after.end(); ++d) {
    const bool is_repeated = std::any_of(after.begin(), d, [&](const dependency& other) {
      return other.on == d->on && other.when == d->when;
    });
    outcome known{};
    if (is_repeated) continue;
    if (!find_outcome(d->on, known)) return false;
    check(known[index_of(d->when)] != hope::lost, gates_object, "an add that was not refused");
    if (known[index_of(d->when)] == hope::met) continue;
    if (!rows_.add_edge(d->on, {j.id, d->when})) return false;
    ++how.blockers;
  }
  if (j.spec.batch != 0 && !count(cause, j.spec.batch, 1, 1, 0)) return false;
  if (how.blockers > 0) {
    how.state = job_state::held;
    how.due_at = {};
  } else if (j.state == job_state::ready && !enter(j, queue, how)) {
    return false;
  }
  if (how.state != j.state) note_held(cause, j, queue, how);
  return true;
}

bool gates::admit(std::size_t cause, const job& as_stored, queue_number queue, admission& how) {
  how = {job_state::ready, {}, as_stored.blockers};
  if (how.blockers > 0 || waits_in_line(as_stored)) {
    how.state = job_state::held;
  } else if (!is_in_line(as_stored) && !enter(as_stored, queue, how)) {
    return false;
  }
  if (how.state != job_state::ready) note_held(cause, as_stored, queue, how);
  return true;
}

// A job that could run now but for its key.
bool gates::enter(const job& j, queue_number queue, admission& how) {
  how.state = job_state::ready;
  if (j.spec.key.empty()) return true;
  bool is_active = false;
  if (!rows_.enter_line(line_of(queue, j.spec.key), rows_.slots_of(queue), is_active)) return false;
  if (!is_active) how.state = job_state::held;
  return true;
}

void gates::note_held(std::size_t cause, const job& j, queue_number queue, const admission& how) {
  effect e;
  e.what = effect::kind::held;
  e.cause = cause;
  e.id = j.id;
  e.queue = queue;
  e.to = how.state;
  e.due_at = how.due_at;
  e.blockers = how.blockers;
  e.weight = weight_of(j.spec);
  effects_.push_back(std::move(e));
}

void gates::note_released(std::size_t cause, const placed_job& now) {
  effect e;
  e.what = effect::kind::released;
  e.cause = cause;
  e.id = now.it->id;
  e.queue = now.queue;
  e.to = now.it->state;
  e.due_at = now.it->due_at;
  e.weight = weight_of(now.it->spec);
  e.it = now.it;
  effects_.push_back(std::move(e));
}

// Leaving.

bool gates::leave(std::size_t cause, const job& j, queue_number queue) {
  const bool was_active = is_in_line(j);
  if (!was_active && !waits_in_line(j)) return true;
  const line_number line = line_of(queue, j.spec.key);
  line_counts left;
  if (!rows_.leave_line(line, was_active, left)) return false;
  return fill_line(cause, line, queue, left);
}

bool gates::fill_line(std::size_t cause, line_number line, queue_number queue, line_counts left) {
  while (left.waiting > 0 && left.active < rows_.slots_of(queue)) {
    placed_job next;
    if (!rows_.first_in_line(line, next)) return false;
    if (next.it == nullptr) return rows_.correct_line(line, {left.active, 0});
    if (!rows_.move_up(line)) return false;
    next.it->state = job_state::ready;
    if (!rows_.place(next, job_state::held)) return false;
    note_released(cause, next);
    ++left.active;
    --left.waiting;
  }
  return true;
}

bool gates::ended(std::size_t cause, job_id id, queue_number queue, const job* as_stored,
                  job_state as) {
  if (as_stored != nullptr) {
    if (!leave(cause, *as_stored, queue)) return false;
    const int failed = as == job_state::done ? 0 : 1;
    if (as_stored->spec.batch != 0 && !count(cause, as_stored->spec.batch, 0, -1, failed)) {
      return false;
    }
  }
  if (rows_.may_be_waited_for(id)) fire_later(id, outcome_of(as));
  return fire_all(cause);
}

bool gates::gone(std::size_t cause, job_id id) {
  if (!rows_.may_be_waited_for(id)) return true;
  fire_later(id, {hope::lost, hope::met, hope::lost});
  return fire_all(cause);
}

bool gates::revived(const job& as_stored, job_state from) {
  if (as_stored.spec.batch == 0) return true;
  return count(0, as_stored.spec.batch, 0, 1, from == job_state::done ? 0 : -1);
}

bool gates::damaged_gone(std::size_t cause, job_id id, const remains& left) {
  for (const auto& [line, counts] : left.lines) {
    if (!rows_.correct_line(line, counts)) return false;
    if (!fill_line(cause, line, left.queue, counts)) return false;
  }
  known_batch* b = nullptr;
  if (left.batch != 0 && !find_sound_batch(left.batch, b)) return false;
  if (b != nullptr && b->now.pending > left.pending) {
    const int ended_now = static_cast<int>(b->now.pending - left.pending);
    if (!count(cause, left.batch, 0, -ended_now, ended_now)) return false;
  }
  return ended(cause, id, left.queue, nullptr, job_state::dead) && gone(cause, id);
}

// Telling those who wait. One after the other, however long the chain: what follows from one is
// noted, not called.

void gates::fire_later(job_id on, const outcome& what) {
  to_fire_.push_back({on, what});
}

bool gates::fire_all(std::size_t cause) {
  while (!to_fire_.empty()) {
    const firing next = to_fire_.front();
    to_fire_.pop_front();
    if (!fire(cause, next)) return false;
  }
  return true;
}

bool gates::fire(std::size_t cause, const firing& f) {
  std::vector<edge> all;
  if (!rows_.edges_on(f.on, all)) return false;
  for (const edge& e : all) {
    const hope now = f.what[index_of(e.when)];
    if (now == hope::open) continue;
    if (!rows_.drop_edge(f.on, e)) return false;
    if (!(now == hope::met ? meet(cause, e.job) : skip(cause, e.job))) return false;
  }
  return true;
}

// One of the things that a job waits for has come true.
bool gates::meet(std::size_t cause, job_id id) {
  placed_job found;
  if (!rows_.read_job(id, found)) return false;
  if (found.it == nullptr || found.it->blockers == 0) return true;
  job& j = *found.it;
  const job_state from = j.state;
  --j.blockers;
  if (from == job_state::held && j.blockers == 0) {
    admission how;
    if (j.spec.run_at > now_) {
      how = {job_state::scheduled, j.spec.run_at, 0};
    } else if (!enter(j, found.queue, how)) {
      return false;
    }
    j.state = how.state;
    j.due_at = how.due_at;
  }
  if (!rows_.place(found, from)) return false;
  if (j.state != from) note_released(cause, found);
  return true;
}

bool gates::skip(std::size_t cause, job_id id) {
  placed_job found;
  if (!rows_.read_job(id, found)) return false;
  if (found.it == nullptr) return true;
  // One that was called off waits for nothing. If somebody brings it back, it is not held up by
  // what no longer exists.
  if (found.it->state != job_state::held) return meet(cause, id);
  if (!rows_.forget(found)) return false;
  effect e;
  e.what = effect::kind::skipped;
  e.cause = cause;
  e.id = id;
  e.queue = found.queue;
  e.weight = weight_of(found.it->spec);
  e.it = found.it;
  effects_.push_back(std::move(e));
  if (rows_.may_be_waited_for(id)) fire_later(id, {hope::lost, hope::met, hope::lost});
  return found.it->spec.batch == 0 || count(cause, found.it->spec.batch, 0, -1, 0);
}

// Batches.

bool gates::find_batch(job_id id, known_batch*& found) {
  found = nullptr;
  if (const auto known = batches_.find(id); known != batches_.end()) {
    found = &known->second;
    return true;
  }
  std::optional<batch_info> read;
  bool is_damaged = false;
  if (!rows_.read_batch(id, read, is_damaged)) return false;
  if (is_damaged) read.emplace();
  if (!read) return true;
  found = &batches_.emplace(id, known_batch{*std::move(read), false, is_damaged}).first->second;
  return true;
}

bool gates::find_sound_batch(job_id id, known_batch*& found) {
  if (!find_batch(id, found)) return false;
  if (found != nullptr && found->is_damaged) found = nullptr;
  return true;
}

bool gates::count(std::size_t cause, job_id batch, int total, int pending, int failed) {
  known_batch* b = nullptr;
  if (!find_sound_batch(batch, b)) return false;
  if (b == nullptr) return true;  // its retention is over, and some of its jobs were kept longer
  const bool had_failed = b->now.failed > 0;
  b->now.total += static_cast<std::uint64_t>(total);
  b->now.pending += static_cast<std::uint64_t>(pending);
  b->now.failed += static_cast<std::uint64_t>(failed);
  b->is_changed = true;
  if (pending < 0 || failed > 0) {
    settle_batch(cause, *b, had_failed);
  } else if (b->now.ended_at != unix_time{}) {
    b->now.ended_at = {};
    b->now.due_at = {};
  }
  return true;
}

void gates::settle_batch(std::size_t cause, known_batch& b, bool had_failed) {
  batch_info& now = b.now;
  const bool ends = now.has_ended();
  if (ends) {
    now.ended_at = now_;
    now.due_at = now_ + (now.failed == 0 ? now.keep_done : now.keep_failed);
    effect e;
    e.what = effect::kind::batch_ended;
    e.cause = cause;
    e.id = now.id;
    e.batch = std::make_shared<batch_info>(now);
    effects_.push_back(std::move(e));
  }
  const bool fails_first = !had_failed && now.failed > 0;
  if ((ends || fails_first) && rows_.may_be_waited_for(now.id)) {
    fire_later(now.id, outcome_of(now));
  }
}

bool gates::add_batch(const batch_info& b) {
  check(b.open, gates_object, "a new batch to be open");
  batches_.insert_or_assign(b.id, known_batch{b, true});
  return true;
}

bool gates::close_batch(std::size_t cause, job_id id) {
  known_batch* b = nullptr;
  if (!find_sound_batch(id, b)) return false;
  if (b == nullptr || !b->now.open) return true;
  b->now.open = false;
  b->is_changed = true;
  settle_batch(cause, *b, b->now.failed > 0);
  return fire_all(cause);
}

bool gates::drop_batch(std::size_t cause, job_id id) {
  known_batch* b = nullptr;
  if (!find_batch(id, b)) return false;
  if (b != nullptr && b->is_damaged) return true;
  if (b != nullptr && !b->now.has_ended()) return true;  // a job of it was just brought back
  batches_.erase(id);
  if (!rows_.forget_batch(id)) return false;
  return gone(cause, id);
}

bool gates::finish() {
  for (auto& [id, b] : batches_) {
    if (b.is_changed && !rows_.write_batch(b.now)) return false;
  }
  batches_.clear();
  return true;
}

}  // namespace sluice::jobs
