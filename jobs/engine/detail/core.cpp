#include "jobs/engine/detail/core.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

std::uint64_t seed_of(const engine_options& o) {
  if (o.seed != 0) return o.seed;
  std::uint64_t seed = 0;
  // Cannot fail for so few bytes; if it did, keys would be predictable, not wrong.
  if (::getentropy(&seed, sizeof seed) != 0) seed = 1;
  return seed;
}

// Ids reserved at a time: at most this many numbers are skipped after a crash.
constexpr std::uint64_t ids_ahead = 1000;

// A backlog longer than this many full pages of due jobs does not delay the ends of waits.
constexpr std::size_t full_due_pages_max = 16;

time_point earliest_of(const timer_heap& timers) {
  return timers.empty() ? time_point::max() : timers.earliest();
}

cron_schedule never() {
  return cron_schedule::parse("@yearly").value();
}

}  // namespace

bool queue_state::has_capacity(std::uint64_t jobs, std::uint64_t bytes) const noexcept {
  return counts.unfinished() + staged_jobs + jobs <= options.capacity_jobs &&
         counts.bytes + staged_bytes + bytes <= options.capacity_bytes;
}

core::core(const engine_options& o, time_source& time)
    : options_(o), time_(time), random_(seed_of(o)) {
  // Distinguishes the events of this process from those of another; fits a JavaScript number.
  epoch_ = static_cast<std::uint64_t>(time_.now().ms);
}

core::~core() = default;

void core::load(store::contents contents) {
  next_id_ = contents.ids_up_to + 1;
  ids_stored_ = contents.ids_up_to;
  for (store::saved_queue& saved : contents.queues) {
    auto q = std::make_unique<queue_state>();
    q->name = saved.name;
    q->number = saved.number;
    q->is_stored = true;
    set_in_use(*q, true);
    q->options = saved.options;
    q->counts = saved.counts;
    // Nothing is in memory yet: all stored jobs come after this horizon.
    if (q->counts.ready > 0) q->ready.extend({}, position{}, false);
    next_number_ = std::max(next_number_, saved.number + 1);
    by_number_.emplace(saved.number, q.get());
    queues_.emplace(std::move(saved.name), std::move(q));
  }
  restore_leases(std::move(contents.leases));
  for (cron_entry& saved : contents.crons) {
    auto when = cron_schedule::parse(saved.spec.schedule, saved.spec.zone);
    // If this machine no longer has the zone, the entry stays and does not run.
    const std::optional<unix_time> at =
        when && saved.next_at != unix_time{} ? std::optional(saved.next_at) : std::nullopt;
    std::string name = saved.spec.name;  // the entry is moved from below
    cron_state& c =
        crons_
            .try_emplace(
                std::move(name),
                cron_state{std::move(saved), when ? *std::move(when) : never(), {}, false, false})
            .first->second;
    if (!c.entry.spec.paused) time_cron(c, at);
  }
  // Jobs may have become due while no engine ran.
  next_due_ = unix_time{};
}

queue_state* core::find_queue(std::string_view name) {
  const auto found = queues_.find(name);
  return found == queues_.end() ? nullptr : found->second.get();
}

queue_state* core::find_queue(queue_number number) {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

queue_state* core::make_queue(std::string_view name, bool only_waited_for) {
  queue_state* q = find_queue(name);
  if (q != nullptr && (q->is_in_use || only_waited_for)) return q;
  if (name != webhook_queue && count_queues(only_waited_for) >= options_.queues_max) return nullptr;
  if (q == nullptr) {
    auto made = std::make_unique<queue_state>();
    made->name = name;
    q = queues_.emplace(made->name, std::move(made)).first->second.get();
  }
  set_in_use(*q, !only_waited_for);
  return q;
}

// Counts the queues in use, or those with only waiting calls. The server's own queue is not
// counted.
std::size_t core::count_queues(bool only_waited_for) const {
  const auto own = queues_.find(webhook_queue);
  const bool is_among = own != queues_.end() && own->second->is_in_use != only_waited_for;
  const std::size_t all = only_waited_for ? queues_.size() - used_queues_ : used_queues_;
  return all - (is_among ? 1 : 0);
}

error core::no_such_queue(std::string_view name) {
  return {error_code::not_found, "there is no queue '" + std::string(name) + "'"};
}

error core::too_many_queues() const {
  return {error_code::overloaded,
          std::to_string(options_.queues_max) +
              " queues, which is the limit (queues_max), are in use or waited for already; use "
              "fewer queue names"};
}

void core::set_in_use(queue_state& q, bool is) {
  if (q.is_in_use != is) is ? ++used_queues_ : --used_queues_;
  q.is_in_use = is;
}

void core::drop_unused(queue_state& q) {
  if (q.number != 0 || q.pins > 0 || !q.pushes.empty()) return;
  set_in_use(q, false);
  if (!q.leases.empty()) return;
  std::ranges::replace(touched_, &q, nullptr);  // a loop over it may be running
  std::erase(stalled_, &q);
  std::erase(starved_, &q);
  timers_.remove(q.rate_timer);
  timers_.remove(q.pause_timer);
  queues_.erase(queues_.find(q.name));
}

lease_state* core::find_lease(job_id id) {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

std::size_t core::stage(change c) {
  next_.transaction.changes.push_back(std::move(c));
  return next_.transaction.changes.size() - 1;
}

void core::stage_queue(queue_state& q, const queue_options& options) {
  if (q.number == 0) {
    q.number = next_number_++;
    by_number_.emplace(q.number, &q);
  }
  q.is_staged = true;
  change c;
  c.type = change::op::set_queue;
  c.queue = q.number;
  c.settings = std::make_unique<change::queue_settings>(change::queue_settings{q.name, options});
  next_.settings.push_back(std::move(c));
  next_.queues.push_back(&q);
}

void core::note_due(unix_time at) {
  if (!next_due_ || at < *next_due_) next_due_ = at;
}

milliseconds core::keep_of(const queue_state& q, const job_spec& spec, job_state ended,
                           bool has_result) const {
  if (spec.keep_for) return *spec.keep_for;
  if (ended != job_state::done) return q.options.keep_dead;
  return has_result ? q.options.keep_results : q.options.keep_done;
}

// Waiting calls.

time_point core::deadline_of(const wait_limits& limits) const {
  if (limits.deadline.is_never()) return time_point::max();
  clock& ours = time_.timers();
  clock* const theirs = limits.deadline.on();
  const time_point there = theirs == nullptr ? seam::now() : theirs->now();
  if (limits.deadline.when() <= there) return time_point::min();
  return ours.now() + (limits.deadline.when() - there);
}

std::optional<error> core::refuse_wait(std::uint64_t bytes) const {
  if (waits_.size() >= options_.waiting_max) {
    return error{error_code::overloaded,
                 std::to_string(waits_.size()) +
                     " calls wait already, which is the limit (waiting_max); try again later, or "
                     "with fewer calls at a time"};
  }
  // A call that is larger than the limit waits if it is the only one.
  if (waiting_bytes_ > 0 && waiting_bytes_ + bytes > options_.waiting_bytes_max) {
    return error{error_code::overloaded, "calls that wait hold " + std::to_string(waiting_bytes_) +
                                             " of " + std::to_string(options_.waiting_bytes_max) +
                                             " bytes (waiting_bytes_max), and this one has " +
                                             std::to_string(bytes) +
                                             "; try again later, or push less at a time"};
  }
  return std::nullopt;
}

void core::park(std::unique_ptr<waiting> w, const std::vector<waiting::line*>& lines,
                const wait_limits& limits, const std::stop_token& cancel) {
  waiting& wait = *w;
  wait.number = next_wait_++;
  waits_.emplace(wait.number, std::move(w));
  waiting_bytes_ += wait.bytes;
  waiting_leases_ += wait.purpose == waiting::kind::lease ? 1 : 0;
  waiting_pushes_ += wait.purpose == waiting::kind::push ? 1 : 0;
  for (waiting::line* const where : lines) wait.join(*where);
  wait.each_queue([](queue_state& q) { ++q.pins; });
  if (const time_point until = deadline_of(limits); until != time_point::max()) {
    wait.on_deadline = [this](waiting& late) {
      end_wait_early(late, {error_code::timed_out, "the deadline came first"}, *firing_);
    };
    deadlines_.add(wait, until);
    wait.is_timed = true;
  }
  const auto stop = [this, number = wait.number] { on_stop(number); };
  if (limits.stop.stop_possible()) wait.on_stop.emplace(limits.stop, stop);
  if (cancel.stop_possible()) wait.on_cancel.emplace(cancel, stop);
}

std::unique_ptr<waiting> core::unpark(waiting& w) {
  w.each_queue([](queue_state& q) { --q.pins; });
  w.leave_all();
  if (w.is_timed) deadlines_.remove(w);
  w.is_timed = false;
  waiting_bytes_ -= w.bytes;
  waiting_leases_ -= w.purpose == waiting::kind::lease ? 1 : 0;
  waiting_pushes_ -= w.purpose == waiting::kind::push ? 1 : 0;
  const auto found = waits_.find(w.number);
  check(found != waits_.end(), "sluice::jobs::core", "a wait that has not ended");
  std::unique_ptr<waiting> ended = std::move(found->second);
  waits_.erase(found);
  return ended;
}

void core::end_wait_early(waiting& w, error why, answers& out) {
  std::unique_ptr<waiting> ended = unpark(w);
  if (ended->line_queue != nullptr) touch(*ended->line_queue);  // pushes behind it may fit
  ended->refuse(std::move(why), out);
  std::vector<queue_state*> left;
  ended->each_queue([&](queue_state& q) {
    if (std::ranges::find(left, &q) == left.end()) left.push_back(&q);
  });
  for (queue_state* const q : left) drop_unused(*q);
  out.destroy_later(std::move(ended));
}

void core::stop_wait(std::uint64_t number, answers& out) {
  const auto found = waits_.find(number);
  if (found == waits_.end()) return;
  end_wait_early(*found->second, {error_code::stopped, "the caller asked to stop"}, out);
}

void core::end_all_waits(answers& out) {
  while (!waits_.empty()) end_wait_early(*waits_.begin()->second, shutting_down(), out);
}

// Used by the committer.

// The wall clock may be set during the sleep: it is read again at least every minute.
std::chrono::nanoseconds core::sleep_until_due(unix_time due) const {
  using std::chrono::nanoseconds;
  return std::clamp(time_.until(due), nanoseconds(0), nanoseconds(std::chrono::minutes(1)));
}

time_point core::next_wake(time_point now) const {
  if (has_staged()) return now;
  time_point at = next_timer();
  if (next_due_) {
    at = std::min(at, now + sleep_until_due(*next_due_));
  }
  if (!cron_times_.empty() && !closed_ && !degraded_) {
    at = std::min(at, now + sleep_until_due(cron_times_.begin()->first));
  }
  return at;
}

time_point core::next_timer() const {
  return std::min(earliest_of(timers_), earliest_of(deadlines_));
}

// Returns a time on the clock of the timers.
time_point core::due_since() const {
  if (full_due_pages_ > full_due_pages_max) return time_point::max();
  const unix_time wall = time_.now();
  unix_time first{std::numeric_limits<std::int64_t>::max()};
  if (due_has_come(wall)) first = *next_due_;
  if (cron_has_come(wall)) first = std::min(first, cron_times_.begin()->first);
  return first <= wall ? time_.timers().now() + time_.until(first) : time_point::max();
}

// A call that does not wait still gets jobs that were due when it was made: it waits for their
// commit.
bool core::due_is_pending(time_point since) const {
  return std::min(serves_due_since_, due_since()) <= since;
}

// Fires timers and ends waits in the order of their times. An event comes before all deadlines
// after it: its changes must be committed, or read, before those deadlines may end a wait.
// `first_due`: the time at which the first event that this round stages was due; max: it stages
// none.
void core::fire_due(time_point now, time_point first_due, answers& out) {
  constexpr std::chrono::nanoseconds tick(1);
  if (next_timer() > now) return;
  firing_ = &out;
  for (time_point ends_before = first_due;;) {
    const time_point event = earliest_of(timers_);
    const time_point end = earliest_of(deadlines_);
    const bool may_end = end <= now && end < ends_before;
    if (event <= now && (event <= end || !may_end)) {
      const std::size_t before = staged();
      timer_heap::fire_all(timers_.claim_due(may_end ? end : now));
      settle(out);
      const bool is_done = staged() == before && refills_.empty();
      if (!is_done) ends_before = std::min(ends_before, event);
    } else if (may_end) {
      timer_heap::fire_all(deadlines_.claim_due(std::min({now, event - tick, ends_before - tick})));
    } else {
      break;
    }
  }
  firing_ = nullptr;
}

commit core::take_commit() {
  if (next_.empty()) return {};
  commit c = std::exchange(next_, {});
  // The next one is likely to have about as many.
  constexpr std::size_t reserve_max = 64;
  next_.transaction.changes.reserve(std::min(reserve_max, c.transaction.changes.size()));
  next_.pushes.reserve(std::min(reserve_max, c.pushes.size()));
  next_.ends.reserve(std::min(reserve_max, c.ends.size()));
  if (const std::size_t first = c.settings.size(); first > 0) {
    for (change& later : c.transaction.changes) c.settings.push_back(std::move(later));
    c.transaction.changes = std::exchange(c.settings, {});
    for (commit::staged_push& p : c.pushes) p.change += first;
    for (end_item& e : c.ends) e.change += first;
    for (commit::eviction& e : c.evictions) e.change += first;
    for (commit::other& o : c.others) o.change += o.change == commit::no_change ? 0 : first;
  }
  c.transaction.now = time_.now();
  if (next_id_ - 1 > ids_stored_) c.transaction.ids_up_to = ids_to_reserve();
  return c;
}

std::uint64_t core::ids_to_reserve() const {
  return next_id_ - 1 + ids_ahead;
}

void core::degrade(const error& why, answers& out) {
  degraded_ = why;
  refuse_waiting_pushes(why, out);
  if (!is_store_damaged()) return;
  std::vector<waiting*> leases;
  for (const auto& [number, w] : waits_) {
    if (w->purpose == waiting::kind::lease) leases.push_back(w.get());
  }
  for (waiting* const w : leases) end_wait_early(*w, why, out);
}

bool core::is_store_damaged() const {
  return degraded_ && degraded_->code == error_code::corrupt && degraded_->job == 0;
}

void core::recover(answers& out) {
  degraded_.reset();
  // Windows whose read has failed.
  for (const auto& [name, q] : queues_) {
    q->is_unreadable = false;
    if (!q->leases.empty()) touch(*q);
  }
  settle(out);
}

void core::close(answers& out) {
  closed_ = true;
  std::vector<waiting*> ends;
  for (const auto& [number, w] : waits_) {
    // A push that waits only for staged_bytes_max is accepted like any other.
    const bool waits_for_capacity = w->purpose == waiting::kind::push && w->line_queue != nullptr;
    if (w->purpose == waiting::kind::lease || waits_for_capacity) ends.push_back(w.get());
  }
  ends.insert(ends.end(), event_waits_.begin(), event_waits_.end());
  for (waiting* const w : ends) end_wait_early(*w, shutting_down(), out);
}

queue_info core::info_of(const queue_state& q) const {
  queue_info info{q.name, q.options, q.counts};
  info.counts.ready -= q.running - q.unstored;
  info.counts.running = q.running;
  return info;
}

std::vector<queue_info> core::queues() const {
  std::vector<queue_info> all;
  for (const auto& [name, q] : queues_) {
    if (q->is_stored) all.push_back(info_of(*q));
  }
  return all;
}

void core::add_stats(engine_stats& s) const {
  s = counters;
  s.running = running_;
  s.window_jobs = window_jobs_;
  s.window_bytes = window_bytes_;
  s.waiting_leases = waiting_leases_;
  s.waiting_pushes = waiting_pushes_;
}

}  // namespace sluice::jobs::detail
