// Committing: the engine's own thread, and callers of commit_here. One thread at a time uses the
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
// Changes that do not match the file. Each costs a transaction; if there are more, the whole commit
// fails.
constexpr int rejected_changes_max = 100;
constexpr std::chrono::nanoseconds gather_max = std::chrono::microseconds(100);
constexpr std::size_t local_changes_max = 32;
// With fewer callers, waiting for them does not pay.
constexpr std::size_t local_gather_min = 4;
constexpr std::chrono::nanoseconds fast_commit_max = std::chrono::milliseconds(1);
constexpr std::chrono::nanoseconds fast_commit_once_max = std::chrono::milliseconds(20);
// Less free space would be used up at once, and pushes would alternate between accepted and
// rejected.
constexpr std::uint64_t recovery_bytes_min = std::uint64_t{1} << 20;

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
      const std::lock_guard committing(commit_mutex_);
      if (round(run_by::committer)) continue;
      const std::lock_guard hold(mutex_);
      if (stopping_) break;
      until = std::min(core_.next_wake(time_.timers().now()), next_probe_or_flush());
      sleeps_until_ = until;
    }
    // No lost wake-up: changes staged before sleeps_until_ was set have set the event.
    if (until == time_point::max()) {
      wake_.wait();
    } else {
      (void)wake_.wait(deadline::at(until, time_.timers()));
    }
    const std::lock_guard hold(mutex_);
    sleeps_until_ = time_point::min();
  }
  const std::lock_guard committing(commit_mutex_);
  finish();
}

thread_local engine::impl::local_commit engine::impl::local_commit_;

std::uint64_t engine::impl::next_number() noexcept {
  static atomic<std::uint64_t> last{0};
  return ++last;
}

// Few changes are committed on this thread: switching to the committer and back would take as long
// as the commit. Many changes are left to the committer, while this thread collects more; so is a
// slow disk.
bool engine::impl::commit_here(const flush_call& flush_replies) {
  // Changes that this thread staged here while it committed for another engine are still pending.
  if (local_commit_.engine_number != number_) {
    local_commit_ = {number_, local_commit_.engine_number != 0};
  }
  // The replies of this thread's previous commit have been sent by now.
  if (std::exchange(local_commit_.has_unsent_replies, false)) {
    local_commit_.replies_sent_at = seam::now();
  }
  if (!local_commit_.has_staged) return false;
  std::unique_lock committing(commit_mutex_, std::try_to_lock);
  bool commits_here = committing.owns_lock() && commits_fast();
  if (commits_here) {
    const std::lock_guard hold(mutex_);
    commits_here = !stopping_ && core_.staged() <= local_changes_max;
    replies_sent_at_ = std::max(replies_sent_at_, local_commit_.replies_sent_at);
    if (commits_here && expected_changes_ >= local_gather_min && more_may_come()) return true;
  }
  local_commit_.has_staged = false;
  if (!commits_here) {
    wake_.set();
    return false;
  }
  (void)round(run_by::caller, flush_replies);
  local_commit_.has_unsent_replies = true;
  if (local_commit_.has_staged) return true;  // staged by flush_replies
  const std::lock_guard hold(mutex_);
  const time_point next = std::min(core_.next_wake(time_.timers().now()), next_probe_or_flush());
  if (core_.has_staged() || !calls_.empty() || next < sleeps_until_) wake_.set();
  return false;
}

// A single slow commit does not mean a slow disk: it may have been a checkpoint or a busy system.
bool engine::impl::commits_fast() const {
  return last_commit_ <= fast_commit_max ||
         (last_commit_ <= fast_commit_once_max && commit_before_ <= fast_commit_max);
}

bool engine::impl::round(run_by thread, const flush_call& flush_replies) {
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
    // Jobs that become due during shutdown are left to the next start.
    is_due = !stopping_ && core_.due_has_come(time_.now());
    if (!stopping_) {
      due_since = core_.due_since();
      core_.serves_due(due_since);
      core_.stage_crons(time_.now());
    }
  }
  read_windows(windows, out);
  for (store_call& read_call : calls) read_call();
  if (is_due) read_due(out);
  evict_for_pushes(out);
  mark_damaged();
  if (thread == run_by::committer) gather();

  detail::commit next;
  bool fired = false;
  {
    const std::lock_guard hold(mutex_);
    const time_point now = time_.timers().now();
    fired = core_.next_timer() <= now;
    if (!stopping_) due_since = std::min(due_since, core_.due_since());
    core_.settle(out);  // first calls whose jobs were read, then calls whose deadline has passed
    core_.fire_due(now, due_since, out);
    core_.settle(out);
    if (has_saved_leases_ && core_.staged() > 0) delete_saved_leases();
    next = core_.take_commit();
    if (next.empty()) {  // the due work has changed no job
      core_.serves_due(time_point::max());
      core_.settle(out);
    }
  }
  announce();
  out.deliver();
  const bool had_work =
      !stops.empty() || !calls.empty() || !windows.empty() || is_due || fired || !next.empty();
  if (!next.empty()) write(std::move(next), flush_replies);
  // One time for all three: with a clock that moves in between the flush would run twice.
  const time_point now = time_.timers().now();
  probe(now);
  flush_if_due(now);
  watch_store(now);
  return had_work;
}

// Callers that push one job after the other call again as soon as they have their reply. A commit
// that begins with the first of them leaves the others to the next, and each commit is half full.
// So the committer waits for as many changes as were just answered, plus those staged during that
// commit, for at most half the duration of a commit.
void engine::impl::gather() {
  if (expected_changes_ < 2) return;
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
  return staged > 0 && staged < expected_changes_ &&
         seam::now() < replies_sent_at_ + std::min(gather_max, last_commit_ / 2);
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
      // The page is read between two commits, so callers wait for it.
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
    for (const job_ptr& job : *page) bytes += weight_of(job->spec);
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
  for (const job_ptr& job : page->jobs) stage_due(job, wall);
  for (const job_id id : page->batches) {
    change c;
    c.type = change::op::drop_batch;
    c.id = id;
    core_.stage(std::move(c));
  }
}

// Stages the change of a due job: to ready, or dropped at the end of its retention.
void engine::impl::stage_due(const job_ptr& job, unix_time wall) {
  detail::queue_state* const q = core_.find_queue(job->spec.queue);
  check(q != nullptr, "sluice::jobs::engine", "a queue for every job");
  if (core_.is_busy(job->id)) return core_.note_due(wall);
  core_.mark_busy(job->id);
  change c;
  c.queue = q->number;
  c.id = job->id;
  c.from = job->state;
  c.weight = weight_of(job->spec);
  c.job = detail::core::job_for_change(job);
  std::shared_ptr<jobs::job> ready;
  if (jobs::has_ended(job->state)) {
    c.type = change::op::drop;
    c.new_state = job->state;
  } else {
    ready = std::make_shared<jobs::job>(*job);
    ready->state = job_state::ready;
    ready->turn = core_.next_sequence();
    ready->due_at = {};
    ready->has_place = false;
    c.type = change::op::move;
    c.new_state = job_state::ready;
    c.fields = std::make_unique<change::moved>();
    c.fields->turn = ready->turn;
  }
  const std::size_t at = core_.stage(std::move(c));
  core_.stage_after(
      [this, id = job->id, ready](const detail::commit::outcome& outcome, detail::answers&) {
        core_.clear_busy(id);
        if (outcome.failure != nullptr) {
          core_.note_due(time_.now() + options_.probe_every);
        } else if (ready != nullptr && outcome.held_as == nullptr) {
          core_.publish(ready);
        }
      },
      at);
}

// Evicts jobs for pushes into full queues; limited per round, so that other commits are not
// delayed.
void engine::impl::evict_for_pushes(detail::answers& out) {
  found_victims found;
  for (std::size_t n = 0; n < evictions_at_once && found.bytes < page_limit{}.bytes; ++n) {
    std::optional<detail::push_item> item;
    {
      const std::lock_guard hold(mutex_);
      item = core_.take_eviction();
    }
    if (!item) return;
    std::optional<error> why = choose_victims(*item, found);
    const std::lock_guard hold(mutex_);
    if (!why) {
      core_.stage_push(*std::move(item));
      continue;
    }
    for (job_ptr& spared : item->victims) core_.spare_victim(*item->queue, std::move(spared));
    ++core_.counters.refused;
    if (why->code != error_code::queue_full) store_failed(*why, out);
    item->reply.give(*std::move(why), out);
  }
}

// Chooses all victims of one push before any is dropped, so that none is dropped for a push that
// cannot fit. The store is asked once per queue and round, because each query has to skip the
// victims chosen before.
std::optional<error> engine::impl::choose_victims(detail::push_item& item, found_victims& found) {
  detail::queue_state& q = *item.queue;
  std::deque<job_ptr>& victims = found.by_queue[&q];
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
      while (!fits() && !victims.empty()) {
        const job_ptr chosen = std::move(victims.front());
        victims.pop_front();
        // It was leased meanwhile, or deferred by the rate of its key.
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
    for (job_ptr& job : *page) {
      found.bytes += weight_of(job->spec);
      victims.push_back(std::move(job));
    }
  }
}

result<applied> engine::impl::apply(const transaction& staged) {
  if (staged.changes.empty() && staged.ids_up_to == 0) return applied{};
  const time_point began = seam::now();  // measured in real time also under a manual clock
  auto outcome = store_->apply(staged);
  commit_before_ = std::exchange(last_commit_, seam::now() - began);
  commit_times_.record(last_commit_);
  return outcome;
}

// Reads the args of ending jobs that have waiters: they get the whole job, even if none of it is
// kept.
void engine::impl::read_args_of_ends(detail::commit& c) {
  std::vector<detail::end_item*> ends;
  {
    const std::lock_guard hold(mutex_);
    ends = core_.ends_without_args(c);
  }
  for (detail::end_item* const e : ends) {
    auto found = store_->get(e->id);
    if (found && *found && !(*found)->is_damaged) e->args = std::move((*found)->spec.args);
  }
}

// Leases new jobs to waiting workers before the wait for the disk.
void engine::impl::hand_over(detail::commit& c, const flush_call& flush_replies) {
  if (c.pushes.empty()) return;
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    if (!core_.hand_over(c, out)) return;
  }
  out.deliver();
  if (flush_replies) flush_replies();
}

void engine::impl::write(detail::commit c, const flush_call& flush_replies) {
  detail::answers out;
  std::optional<error> disk_full;
  if (!c.pushes.empty()) {
    std::uint64_t bytes = 0;
    for (const detail::commit::staged_push& p : c.pushes) bytes += p.item.weight;
    if (const std::optional<std::uint64_t> left = store_->free_bytes(); left && *left < bytes) {
      disk_full = error{error_code::disk_full,
                        "the disk is full (" + store_->describe() +
                            "): the rest is reserved for acks and deletes; free some space"};
    }
  }
  read_args_of_ends(c);
  if (!disk_full) hand_over(c, flush_replies);
  auto outcome = disk_full ? result<applied>(*disk_full) : apply(c.transaction);
  if (!outcome && outcome.error().code == error_code::disk_full && !c.pushes.empty()) {
    // Acks and deletes need little or no space: try again without the pushes.
    {
      const std::lock_guard hold(mutex_);
      store_failed(outcome.error(), out);
      core_.refuse_pushes(c, outcome.error(), out);
    }
    announce();
    out.deliver();
    if (c.transaction.changes.empty()) c.transaction.ids_up_to = 0;  // they were for the pushes
    outcome = apply(c.transaction);
  }
  if (!outcome && outcome.error().code == error_code::disk_full) {
    bool has_less = false;
    {
      const std::lock_guard hold(mutex_);
      store_failed(outcome.error(), out);
      has_less = core_.refuse_own(c, outcome.error(), out);
    }
    if (has_less) outcome = apply(c.transaction);
  }
  for (int n = 0; n < rejected_changes_max && !outcome && is_about_one_job(outcome.error()); ++n) {
    bool is_removed = false;
    {
      const std::lock_guard hold(mutex_);
      is_removed = core_.remove_rejected(c, outcome.error(), out);
    }
    if (!is_removed) break;
    outcome = apply(c.transaction);
  }
  {
    const std::lock_guard hold(mutex_);
    if (outcome) {
      if (!c.transaction.changes.empty()) ++core_.counters.commits;
      core_.committed(c, *outcome, out);
    } else {
      // A change that does not match one job's row is no fault of the disk.
      if (!is_about_one_job(outcome.error())) store_failed(outcome.error(), out);
      core_.refused(c, outcome.error(), out);
    }
  }
  announce();
  if (outcome && options_.flush_every > milliseconds(0) && flush_at_ == time_point::max()) {
    flush_at_ = time_.timers().now() + options_.flush_every;
  }
  {
    const std::lock_guard hold(mutex_);
    expected_changes_ = core_.staged() + c.transaction.changes.size();
  }
  out.deliver();
  replies_sent_at_ = seam::now();
}

// With mutex_ held. Call `announce` without it afterwards.
void engine::impl::store_failed(const error& why, detail::answers& out) {
  if (core_.is_store_damaged()) return;
  // Damage is permanent, and a write to a sound page would succeed, so it is not probed.
  const bool is_damaged = is_damage(why);
  if (is_damaged || !core_.is_degraded()) {
    pending_health_ = jobs::health{false, why.code, why.message};
  }
  core_.degrade(why, out);
  probe_at_ = is_damaged ? time_point::max() : time_.timers().now() + options_.probe_every;
}

// Deletes the saved leases, which this engine has restored: if a crash brought them back, they
// would hold jobs without a worker. No change of a job is stored before this, so a saved lease
// never outlives a change of its job.
void engine::impl::delete_saved_leases() {
  has_saved_leases_ = false;
  change c;
  c.type = change::op::drop_leases;
  core_.stage(std::move(c));
  core_.stage_after([this](const detail::commit::outcome& outcome, detail::answers&) {
    if (outcome.failure != nullptr) has_saved_leases_ = true;  // again with the next commit
  });
}

void engine::impl::announce() {
  const auto health = std::exchange(pending_health_, std::nullopt);
  if (health && options_.on_health) options_.on_health(*health);
  if (std::exchange(has_changed_queue_, false) && options_.on_queue_change) {
    options_.on_queue_change();
  }
}

// Checks whether a failed store works again, by a write and a sync.
void engine::impl::probe(time_point now) {
  if (probe_at_ == time_point::max() || now < probe_at_) return;
  transaction nothing;
  {
    const std::lock_guard hold(mutex_);
    nothing.now = time_.now();
    nothing.ids_up_to = core_.ids_to_reserve();
  }
  const std::optional<std::uint64_t> left = store_->free_bytes();
  const bool has_free_bytes = !left || *left >= recovery_bytes_min;
  std::optional<error> why;
  if (has_free_bytes) {
    auto written = store_->apply(nothing);
    auto flushed = written ? store_->flush() : void_result(written.error());
    if (!flushed) why = std::move(flushed.error());
  }
  detail::answers out;
  {
    const std::lock_guard hold(mutex_);
    if (!has_free_bytes || why) {
      probe_at_ = time_.timers().now() + options_.probe_every;
      if (why) read_failed(*why, out);
    } else {
      probe_at_ = time_point::max();
      flush_at_ = time_point::max();
      core_.recover(out);
      if (has_saved_leases_) delete_saved_leases();
      core_.set_next_due(time_.now());
      pending_health_ = jobs::health{};
    }
  }
  announce();
  out.deliver();
}

// Checks that the files are still in place.
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

// Handles damage that was found outside of a commit. With mutex_ held.
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

// The last rounds: every earlier call is answered, and open leases are saved.
void engine::impl::finish() {
  detail::commit last;
  // Detects a file that was deleted within the last second.
  watch_at_ = std::min(watch_at_, time_.timers().now());
  for (;;) {
    if (round(run_by::committer)) continue;
    const std::lock_guard hold(mutex_);
    has_shut_down_ = calls_.empty() && !core_.has_staged();
    if (!has_shut_down_) continue;
    if (has_saved_leases_) delete_saved_leases();
    core_.stage_saved_leases();  // final: no lease can end any more
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
