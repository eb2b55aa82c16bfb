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
  // FNV-1a with a final mix, so that similar keys have distant numbers. Stored: never change.
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

// ---- conditions

gates::outcome gates::outcome_of(job_state state) noexcept {
  if (state == job_state::done) return {hope::met, hope::met, hope::lost};
  if (has_ended(state)) return {hope::open, hope::met, hope::met};  // it can be retried
  return {hope::open, hope::open, hope::open};
}

gates::outcome gates::outcome_of(const batch_info& b) noexcept {
  const hope failure = b.failed > 0 ? hope::met : hope::open;
  if (!b.has_ended()) return {hope::open, hope::open, failure};
  if (b.failed == 0) return {hope::met, hope::met, hope::lost};
  return {hope::open, hope::met, failure};
}

bool gates::find_outcome(job_id on, outcome& outcomes) {
  std::optional<job_state> state;
  if (!rows_.state_of(on, state)) return false;
  if (state) {
    outcomes = outcome_of(*state);
    return true;
  }
  known_batch* b = nullptr;
  if (!find_batch(on, b)) return false;
  if (b != nullptr && b->is_damaged) {
    outcomes = {hope::open, hope::open, hope::open};
    return true;
  }
  // A dependency that no longer exists counts as done: failed jobs are kept for their retention.
  outcomes = b != nullptr ? outcome_of(b->now) : outcome_of(job_state::done);
  return true;
}

bool gates::refusal_of(const job_spec& spec, std::span<const job_id> own,
                       std::optional<conflict::reason>& reason) {
  reason.reset();
  const auto is_own = [own](job_id id) { return std::ranges::binary_search(own, id); };
  if (spec.batch != 0 && !is_own(spec.batch)) {
    known_batch* b = nullptr;
    if (!find_sound_batch(spec.batch, b)) return false;
    if (b == nullptr) reason = conflict::reason::no_such_batch;
    if (b != nullptr && b->now.has_ended()) reason = conflict::reason::batch_ended;
  }
  for (const dependency& d : spec.after) {
    if (reason || is_own(d.on)) continue;
    outcome known{};
    if (!find_outcome(d.on, known)) return false;
    if (known[index_of(d.when)] == hope::lost) reason = conflict::reason::skipped;
  }
  return true;
}

// ---- adds and moves to ready

bool gates::admit_new(std::size_t cause, const job& j, queue_number queue, admission& placement) {
  placement = {j.state, j.due_at, 0};
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
    ++placement.blockers;
  }
  if (j.spec.batch != 0 && !count(cause, j.spec.batch, 1, 1, 0)) return false;
  if (placement.blockers > 0) {
    placement.state = job_state::held;
    placement.due_at = {};
  } else if (j.state == job_state::ready && !enter(j, queue, placement)) {
    return false;
  }
  if (placement.state != j.state) note_held(cause, j, queue, placement);
  return true;
}

bool gates::admit(std::size_t cause, const job& as_stored, queue_number queue,
                  admission& placement) {
  placement = {job_state::ready, {}, as_stored.blockers};
  if (placement.blockers > 0 || waits_in_line(as_stored)) {
    placement.state = job_state::held;
  } else if (!is_in_line(as_stored) && !enter(as_stored, queue, placement)) {
    return false;
  }
  if (placement.state != job_state::ready) note_held(cause, as_stored, queue, placement);
  return true;
}

// Takes a place under the key for a job that is blocked by nothing else, or makes it wait.
bool gates::enter(const job& j, queue_number queue, admission& placement) {
  placement.state = job_state::ready;
  if (j.spec.key.empty()) return true;
  bool is_active = false;
  if (!rows_.enter_line(line_of(queue, j.spec.key), rows_.slots_of(queue), is_active)) return false;
  if (!is_active) placement.state = job_state::held;
  return true;
}

void gates::note_held(std::size_t cause, const job& j, queue_number queue,
                      const admission& placement) {
  effect e;
  e.type = effect::kind::held;
  e.cause = cause;
  e.id = j.id;
  e.queue = queue;
  e.new_state = placement.state;
  e.due_at = placement.due_at;
  e.blockers = placement.blockers;
  e.weight = weight_of(j.spec);
  effects_.push_back(std::move(e));
}

void gates::note_released(std::size_t cause, const placed_job& now) {
  effect e;
  e.type = effect::kind::released;
  e.cause = cause;
  e.id = now.job->id;
  e.queue = now.queue;
  e.new_state = now.job->state;
  e.due_at = now.job->due_at;
  e.weight = weight_of(now.job->spec);
  e.job = now.job;
  effects_.push_back(std::move(e));
}

// ---- ends and deletions

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
    if (next.job == nullptr) return rows_.correct_line(line, {left.active, 0});
    if (!rows_.move_up(line)) return false;
    next.job->state = job_state::ready;
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

// ---- firing edges: through a queue and not by recursion, since chains can be long

void gates::fire_later(job_id on, const outcome& outcomes) {
  to_fire_.push_back({on, outcomes});
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
    const hope now = f.outcomes[index_of(e.when)];
    if (now == hope::open) continue;
    if (!rows_.drop_edge(f.on, e)) return false;
    if (!(now == hope::met ? meet(cause, e.job) : skip(cause, e.job))) return false;
  }
  return true;
}

// One dependency of a job is met.
bool gates::meet(std::size_t cause, job_id id) {
  placed_job found;
  if (!rows_.read_job(id, found)) return false;
  if (found.job == nullptr || found.job->blockers == 0) return true;
  job& j = *found.job;
  const job_state from = j.state;
  --j.blockers;
  if (from == job_state::held && j.blockers == 0) {
    admission placement;
    if (j.spec.run_at > now_) {
      placement = {job_state::scheduled, j.spec.run_at, 0};
    } else if (!enter(j, found.queue, placement)) {
      return false;
    }
    j.state = placement.state;
    j.due_at = placement.due_at;
  }
  if (!rows_.place(found, from)) return false;
  if (j.state != from) note_released(cause, found);
  return true;
}

bool gates::skip(std::size_t cause, job_id id) {
  placed_job found;
  if (!rows_.read_job(id, found)) return false;
  if (found.job == nullptr) return true;
  // A cancelled job does not wait. If it is revived later, this dependency must not block it, since
  // it can never be met.
  if (found.job->state != job_state::held) return meet(cause, id);
  if (!rows_.forget(found)) return false;
  effect e;
  e.type = effect::kind::skipped;
  e.cause = cause;
  e.id = id;
  e.queue = found.queue;
  e.weight = weight_of(found.job->spec);
  e.job = found.job;
  effects_.push_back(std::move(e));
  if (rows_.may_be_waited_for(id)) fire_later(id, {hope::lost, hope::met, hope::lost});
  return found.job->spec.batch == 0 || count(cause, found.job->spec.batch, 0, -1, 0);
}

// ---- batches

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
  if (b == nullptr) return true;  // the batch was deleted before some of its jobs
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
    e.type = effect::kind::batch_ended;
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
  if (b != nullptr && !b->now.has_ended()) return true;  // one of its jobs was revived
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
