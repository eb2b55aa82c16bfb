// Committing: what the engine's own thread does, and whoever helps it. One at a time talks to the
// store.
#include <algorithm>
#include <deque>
#include <utility>

#include "jobs/engine/detail/engine_impl.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/this_thread.hpp"

namespace sluice::jobs {
namespace {

constexpr std::size_t window_page_jobs = 2048;
constexpr std::size_t due_page_jobs = 1000;
constexpr std::size_t evictions_at_once = 1000;
// Changes that do not fit the file: each costs a transaction, and those of the rest are refused
// along with it only if there are more.
constexpr int taken_out_at_once = 100;
constexpr std::chrono::nanoseconds gather_max = std::chrono::microseconds(100);
constexpr std::size_t help_changes_max = 32;
// Fewer callers than that are as well served one by one.
constexpr std::size_t help_gathers_from = 4;
constexpr std::chrono::nanoseconds help_commit_max = std::chrono::milliseconds(1);
constexpr std::chrono::nanoseconds help_commit_once_max = std::chrono::milliseconds(20);
// A disk that is full again after so little would only make pushes come and go.
constexpr std::uint64_t room_to_recover = std::uint64_t{1} << 20;

bool is_about_one_job(const error& why) {
  return why.code == error_code::corrupt && why.job != 0;
}

bool is_damage(const error& why) {
  return why.code == error_code::corrupt && why.job == 0;
}

}  // namespace

void engine::impl::run() {
  seam::name_thread("sluice-commit");
  for (;;) {
    wake_.reset();
    time_point until{};
    {
      const std::lock_guard turn(turn_);
      if (round(who::committer)) continue;
      const std::lock_guard hold(mutex_);
      if (stopping_) break;
      until = std::min(core_.next_wake(time_.timers().now()), next_probe_or_flush());
      sleeps_until_ = until;
    }
    // Not slept through: what was staged before sleeps_until_ was set has set the event.
    if (until == time_point::max()) {
      wake_.wait();
    } else {
      (void)wake_.wait_within(deadline::at(until, time_.timers()));
    }
    const std::lock_guard hold(mutex_);
    sleeps_until_ = time_point::min();
  }
  const std::lock_guard turn(turn_);
  finish();
}

thread_local engine::impl::helping engine::impl::helps_;

std::uint64_t engine::impl::next_number() noexcept {
  static atomic<std::uint64_t> last{0};
  return ++last;
}

// Few changes are committed here and now: to hand them over and to hear of it would take as long as
// the commit. Many are the committer's, while this thread gathers more; and so is a disk that lets
// one wait.
bool engine::impl::help(const between& then) {
  // What a thread staged here before it helped another engine is still to be begun.
  if (helps_.whom != number_) helps_ = {number_, helps_.whom != 0};
  // What was to be said after it helped last, it has said by now.
  if (std::exchange(helps_.has_to_say, false)) helps_.said_at = seam::now();
  if (!helps_.has_something) return false;
  std::unique_lock turn(turn_, std::try_to_lock);
  bool is_mine = turn.owns_lock() && commits_fast();
  if (is_mine) {
    const std::lock_guard hold(mutex_);
    is_mine = !stopping_ && core_.staged() <= help_changes_max;
    answered_at_ = std::max(answered_at_, helps_.said_at);
    if (is_mine && expected_ >= help_gathers_from && more_may_come()) return true;
  }
  helps_.has_something = false;
  if (!is_mine) {
    wake_.set();
    return false;
  }
  (void)round(who::helper, then);
  helps_.has_to_say = true;
  if (helps_.has_something) return true;  // that was asked in between
  const std::lock_guard hold(mutex_);
  const time_point next = std::min(core_.next_wake(time_.timers().now()), next_probe_or_flush());
  if (core_.has_staged() || !calls_.empty() || next < sleeps_until_) wake_.set();
  return false;
}

// One that is a little slow alone is no slow disk: the log was copied, or the system was busy.
bool engine::impl::commits_fast() const {
  return last_commit_ <= help_commit_max ||
         (last_commit_ <= help_commit_once_max && commit_before_ <= help_commit_max);
}

bool engine::impl::round(who by, const between& then) {
  std::vector<store_call> calls;
  std::vector<detail::queue_state*> windows;
  std::vector<std::uint64_t> stops;
  bool is_due = false;
  time_point due_since = time_point::max();
  detail::answers out;
  {
    const std::lock_guard hold(stops_guard_);
    stops.swap(stops_);
  }
  {
    const std::lock_guard hold(mutex_);
    for (const std::uint64_t number : stops) core_.stop_wait(number, out);
    calls.swap(calls_);
    windows = core_.take_refills();
    // What becomes due while we shut down is due when somebody opens the store again.
    is_due = !stopping_ && core_.due_has_come(time_.now());
    core_.serves_due(is_due);
    if (!stopping_) {
      due_since = core_.due_since();
      core_.stage_crons(time_.now());
    }
  }
  read_windows(windows, out);
  for (store_call& what : calls) what();
  if (is_due) read_due(out);
  make_room(out);
  mark_damaged();
  if (by == who::committer) gather();

  detail::commit next;
  bool fired = false;
  {
    const std::lock_guard hold(mutex_);
    const time_point now = time_.timers().now();
    fired = core_.next_timer() <= now;
    if (!stopping_) due_since = std::min(due_since, core_.due_since());
    core_.settle(out);  // first those who wait for what was read, then those who waited too long
    core_.fire_due(now, due_since, out);
    core_.settle(out);
    if (has_saved_leases_ && core_.staged() > 0) forget_saved_leases();
    next = core_.take_commit();
    if (next.empty()) {  // nothing that is due has changed a job
      core_.serves_due(false);
      core_.settle(out);
    }
  }
  announce();
  out.deliver();
  const bool had_work =
      !stops.empty() || !calls.empty() || !windows.empty() || is_due || fired || !next.empty();
  if (!next.empty()) write(std::move(next), then);
  // One moment for all: a clock that moves in between would flush twice.
  const time_point now = time_.timers().now();
  probe(now);
  flush_if_due(now);
  watch_store(now);
  return had_work;
}

// Callers that push one job after the other come back as soon as they are answered. A commit that
// begins with the first of them leaves the others to the next one, and each commit is then half as
// full as it could be. So it waits for as many as were answered just now, besides those that came
// while they were committed, for at most half of the time that a commit takes.
void engine::impl::gather() {
  if (expected_ < 2) return;
  for (;;) {
    {
      const std::lock_guard hold(mutex_);
      if (!more_may_come()) return;
    }
    seam::yield();
  }
}

bool engine::impl::more_may_come() const {
  const std::size_t staged = core_.staged();
  return staged > 0 && staged < expected_ &&
         seam::now() < answered_at_ + std::min(gather_max, last_commit_ / 2);
}

void engine::impl::read_windows(const std::vector<detail::queue_state*>& queues,
                                detail::answers& out) {
  for (detail::queue_state* const q : queues) {
    page_limit limit;
    position after;
    {
      const std::lock_guard hold(mutex_);
      const detail::window::bounds bounds = core_.window_bounds(*q);
      const std::uint64_t used = q->ready.bytes();
      const std::size_t free_places = bounds.jobs - std::min(bounds.jobs, q->ready.size());
      limit.bytes = bounds.bytes > used ? bounds.bytes - used : 1;
      // A page is read between two commits: others wait for it.
      limit.jobs = std::min(
          {free_places, window_page_jobs, static_cast<std::size_t>(limit.bytes / sizeof(job) + 1)});
      after = q->ready.horizon();
      if (limit.jobs == 0) core_.not_refilled(*q, false);
    }
    if (limit.jobs == 0) continue;
    auto page = store_->ready_after(q->number, after, limit);
    const std::lock_guard hold(mutex_);
    if (!page) {
      store_failed(page.error(), out);
      core_.not_refilled(*q, true);
      continue;
    }
    std::uint64_t bytes = 0;
    for (const job_ptr& it : *page) bytes += weight_of(it->spec);
    const bool was_all = page->size() < limit.jobs && bytes < limit.bytes;
    core_.refilled(*q, after, *std::move(page), was_all);
  }
}

void engine::impl::read_due(detail::answers& out) {
  const unix_time wall = time_.now();
  auto page = store_->due(wall, due_page_jobs);
  const std::lock_guard hold(mutex_);
  if (!page) {
    core_.set_next_due(wall + options_.probe_every);
    return store_failed(page.error(), out);
  }
  const bool has_more = page->jobs.size() == due_page_jobs;
  core_.read_due_page(has_more);
  core_.set_next_due(has_more ? std::optional(wall) : page->next);
  for (const job_ptr& it : page->jobs) stage_due(it, wall);
  for (const job_id id : page->batches) {
    change c;
    c.what = change::op::drop_batch;
    c.id = id;
    core_.stage(std::move(c));
  }
}

// A job whose time has come: to run, or to be forgotten.
void engine::impl::stage_due(const job_ptr& it, unix_time wall) {
  detail::queue_state* const q = core_.find_queue(it->spec.queue);
  check(q != nullptr, "sluice::jobs::engine", "a queue for every job");
  if (core_.is_busy(it->id)) return core_.note_due(wall);
  core_.mark_busy(it->id);
  change c;
  c.queue = q->number;
  c.id = it->id;
  c.from = it->state;
  c.weight = weight_of(it->spec);
  c.it = detail::core::said_of(it);
  std::shared_ptr<job> ready;
  if (jobs::has_ended(it->state)) {
    c.what = change::op::drop;
    c.to = it->state;
  } else {
    ready = std::make_shared<job>(*it);
    ready->state = job_state::ready;
    ready->turn = core_.next_turn();
    ready->due_at = {};
    ready->has_place = false;
    c.what = change::op::move;
    c.to = job_state::ready;
    c.how = std::make_unique<change::moved>();
    c.how->turn = ready->turn;
  }
  const std::size_t at = core_.stage(std::move(c));
  core_.stage_after(
      [this, id = it->id, ready](const detail::commit::outcome& how, detail::answers&) {
        core_.not_busy(id);
        if (how.why_not != nullptr) {
          core_.note_due(time_.now() + options_.probe_every);
        } else if (ready != nullptr && how.instead == nullptr) {
          core_.publish(ready);
        }
      },
      at);
}

// Pushes into full queues that drop other jobs to make room: so many a round that others get their
// commits in between.
void engine::impl::make_room(detail::answers& out) {
  found_victims found;
  for (std::size_t n = 0; n < evictions_at_once && found.bytes < page_limit{}.bytes; ++n) {
    std::optional<detail::push_item> item;
    {
      const std::lock_guard hold(mutex_);
      item = core_.take_eviction();
    }
    if (!item) return;
    std::optional<error> why = make_room_for(*item, found);
    const std::lock_guard hold(mutex_);
    if (!why) {
      core_.stage_push(*std::move(item));
      continue;
    }
    for (job_ptr& spared : item->victims) core_.spare_victim(*item->queue, std::move(spared));
    ++core_.counters.refused;
    if (why->code != error_code::queue_full) store_failed(*why, out);
    item->to.give(*std::move(why), out);
  }
}

// Chooses as many as are needed, so that none goes for a push that cannot be made room for. The
// store is asked once for all of a queue that a round needs: each time it has to look past those
// that were chosen before.
std::optional<error> engine::impl::make_room_for(detail::push_item& item, found_victims& found) {
  detail::queue_state& q = *item.queue;
  std::deque<job_ptr>& those = found.of[&q];
  for (;;) {
    victim which = victim::oldest;
    std::size_t wanted = 1;
    {
      const std::lock_guard hold(mutex_);
      const queue_options& o = q.options;
      const auto fits = [&] {
        return q.counts.unfinished() + q.staged_jobs - q.freeing_jobs + 1 <= o.capacity_jobs &&
               q.counts.bytes + q.staged_bytes - q.freeing_bytes + item.weight <= o.capacity_bytes;
      };
      while (!fits() && !those.empty()) {
        const job_ptr chosen = std::move(those.front());
        those.pop_front();
        // Somebody has just taken it, or its key's rate has put it off.
        if (core_.find_lease(chosen->id) != nullptr || core_.is_busy(chosen->id)) continue;
        core_.choose_victim(q, *chosen);
        item.victims.push_back(chosen);
      }
      if (fits()) return std::nullopt;
      which = o.when_full == overflow::latest ? victim::newest : victim::oldest;
      wanted += core_.evictions_from(q, evictions_at_once);
    }
    auto page = store_->victims(q.number, which, wanted, [this](job_id id) {
      const std::lock_guard hold(mutex_);
      return core_.is_busy(id) || core_.find_lease(id) != nullptr;
    });
    if (!page) return page.error();
    if (page->empty()) {
      return error{error_code::queue_full,
                   "queue '" + q.name +
                       "' is full, and every job in it is running or not ready yet, so none could "
                       "be dropped"};
    }
    for (job_ptr& it : *page) {
      found.bytes += weight_of(it->spec);
      those.push_back(std::move(it));
    }
  }
}

result<applied> engine::impl::apply(const batch& changes) {
  if (changes.changes.empty() && changes.ids_up_to == 0) return applied{};
  const time_point began = seam::now();  // also under a clock that is moved by hand
  auto how = store_->apply(changes);
  commit_before_ = std::exchange(last_commit_, seam::now() - began);
  commit_times_.record(last_commit_);
  return how;
}

// Whoever waits for the end of a job is told all of it, also when nothing of it is kept.
void engine::impl::read_args_of_ends(detail::commit& c) {
  std::vector<detail::end_item*> those;
  {
    const std::lock_guard hold(mutex_);
    those = core_.ends_without_args(c);
  }
  for (detail::end_item* const e : those) {
    auto found = store_->get(e->id);
    if (found && *found && !(*found)->is_damaged) e->args = std::move((*found)->spec.args);
  }
}

// Whoever waits for a job gets it before the disk is waited for.
void engine::impl::hand_over(detail::commit& c, const between& then) {
  if (c.pushes.empty()) return;
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    if (!core_.hand_over(c, out)) return;
  }
  out.deliver();
  if (then) then();
}

void engine::impl::write(detail::commit c, const between& then) {
  detail::answers out;
  std::optional<error> no_room;
  if (!c.pushes.empty()) {
    std::uint64_t bytes = 0;
    for (const detail::commit::staged_push& p : c.pushes) bytes += p.item.weight;
    if (const std::optional<std::uint64_t> room = store_->room(); room && *room < bytes) {
      no_room = error{error_code::disk_full,
                      "the disk is full (" + store_->describe() +
                          "): what is left is kept for acks and deletes; free some space"};
    }
  }
  read_args_of_ends(c);
  if (!no_room) hand_over(c, then);
  auto how = no_room ? result<applied>(*no_room) : apply(c.changes);
  if (!how && how.error().code == error_code::disk_full && !c.pushes.empty()) {
    // Acks and deletes need little or no space. They go on.
    {
      const std::lock_guard hold(mutex_);
      store_failed(how.error(), out);
      core_.refuse_pushes(c, how.error(), out);
    }
    announce();
    out.deliver();
    if (c.changes.changes.empty()) c.changes.ids_up_to = 0;  // they were for the pushes
    how = apply(c.changes);
  }
  if (!how && how.error().code == error_code::disk_full) {
    bool has_less = false;
    {
      const std::lock_guard hold(mutex_);
      store_failed(how.error(), out);
      has_less = core_.refuse_own(c, how.error(), out);
    }
    if (has_less) how = apply(c.changes);
  }
  for (int n = 0; n < taken_out_at_once && !how && is_about_one_job(how.error()); ++n) {
    bool is_out = false;
    {
      const std::lock_guard hold(mutex_);
      is_out = core_.take_out(c, how.error(), out);
    }
    if (!is_out) break;
    how = apply(c.changes);
  }
  {
    const std::lock_guard hold(mutex_);
    if (how) {
      if (!c.changes.changes.empty()) ++core_.counters.commits;
      core_.committed(c, *how, out);
    } else {
      // A change that does not fit one job says nothing about the disk.
      if (!is_about_one_job(how.error())) store_failed(how.error(), out);
      core_.refused(c, how.error(), out);
    }
  }
  announce();
  if (how && options_.flush_every > milliseconds(0) && flush_at_ == time_point::max()) {
    flush_at_ = time_.timers().now() + options_.flush_every;
  }
  {
    const std::lock_guard hold(mutex_);
    expected_ = core_.staged() + c.changes.changes.size();
  }
  out.deliver();
  answered_at_ = seam::now();
}

// With the lock held; what it changes is told by `announce`, without it.
void engine::impl::store_failed(const error& why, detail::answers& out) {
  if (core_.is_store_damaged()) return;
  // Damage does not pass, and a write to a sound page would succeed: so nothing is probed.
  const bool is_damaged = is_damage(why);
  if (is_damaged || !core_.is_degraded()) to_announce_ = jobs::health{false, why.code, why.message};
  core_.degrade(why, out);
  probe_at_ = is_damaged ? time_point::max() : time_.timers().now() + options_.probe_every;
}

// This engine has restored them. If a crash brought them back, they would hold jobs without a
// worker. No change of a job is stored before this, so a saved lease never outlives a change of its
// job.
void engine::impl::forget_saved_leases() {
  has_saved_leases_ = false;
  change c;
  c.what = change::op::drop_leases;
  core_.stage(std::move(c));
  core_.stage_after([this](const detail::commit::outcome& how, detail::answers&) {
    if (how.why_not != nullptr) has_saved_leases_ = true;  // with the next commit
  });
}

void engine::impl::announce() {
  const auto news = std::exchange(to_announce_, std::nullopt);
  if (news && options_.on_health) options_.on_health(*news);
  if (std::exchange(has_changed_queue_, false) && options_.on_queue_change) {
    options_.on_queue_change();
  }
}

// Whether a store that failed works again: by writing something, and having it synced.
void engine::impl::probe(time_point now) {
  if (probe_at_ == time_point::max() || now < probe_at_) return;
  batch nothing;
  {
    const std::lock_guard hold(mutex_);
    nothing.now = time_.now();
    nothing.ids_up_to = core_.ids_to_reserve();
  }
  const std::optional<std::uint64_t> room = store_->room();
  const bool has_room = !room || *room >= room_to_recover;
  std::optional<error> why;
  if (has_room) {
    auto written = store_->apply(nothing);
    auto flushed = written ? store_->flush() : void_result(written.error());
    if (!flushed) why = std::move(flushed.error());
  }
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    if (!has_room || why) {
      probe_at_ = time_.timers().now() + options_.probe_every;
      if (why) read_failed(*why, out);
    } else {
      probe_at_ = time_point::max();
      flush_at_ = time_point::max();
      core_.recover(out);
      if (has_saved_leases_) forget_saved_leases();
      core_.set_next_due(time_.now());
      to_announce_ = jobs::health{};
    }
  }
  announce();
  out.deliver();
}

// Checks that the files are still in their place.
void engine::impl::watch_store(time_point now) {
  if (now < watch_at_) return;
  const milliseconds every = store_->watch_every();
  watch_at_ = every > milliseconds(0) ? now + every : time_point::max();
  auto watched = store_->watch();
  if (watched) return;
  watch_at_ = time_point::max();
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    store_failed(watched.error(), out);
  }
  announce();
  out.deliver();
}

// Damage that was found outside of a commit. With the lock held.
void engine::impl::read_failed(const error& why, detail::answers& out) {
  if (is_damage(why)) store_failed(why, out);
}

void engine::impl::flush_if_due(time_point now) {
  if (flush_at_ == time_point::max() || now < flush_at_) return;
  auto flushed = store_->flush();
  if (flushed) {
    flush_at_ = time_point::max();
    return;
  }
  flush_at_ = time_.timers().now() + options_.flush_every;
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    store_failed(flushed.error(), out);
  }
  announce();
  out.deliver();
}

time_point engine::impl::next_probe_or_flush() const {
  return std::min({probe_at_, flush_at_, watch_at_});
}

// The last rounds: everything that was called before is answered, open leases are saved.
void engine::impl::finish() {
  detail::commit last;
  for (;;) {
    if (round(who::committer)) continue;
    const std::lock_guard hold(mutex_);
    is_over_ = calls_.empty() && !core_.has_staged();
    if (!is_over_) continue;
    if (has_saved_leases_) forget_saved_leases();
    core_.stage_saved_leases();  // as they will stay: nobody can end one any more
    last = core_.take_commit();
    break;
  }
  if (!last.empty()) write(std::move(last));
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    core_.end_all_waits(out);
  }
  if (flush_at_ != time_point::max()) (void)store_->flush();
  out.deliver();
}

}  // namespace sluice::jobs
