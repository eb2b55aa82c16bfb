#include "sluice/executor/detail/steal_crew.hpp"

#include <exception>
#include <mutex>
#include <source_location>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice::detail {

constinit thread_local steal_worker* this_steal_worker = nullptr;

steal_crew::steal_crew(work_stealing_pool& pool, intake& outside, settings s)
    : pool_(pool),
      outside_(outside),
      threads_(s.threads),
      spares_max_(s.spares_max),
      deque_capacity_(s.deque_capacity),
      keep_alive_(s.keep_alive),
      make_thread_(std::move(s.make_thread)),
      workers_(std::make_unique<atomic<steal_worker*>[]>(s.threads + s.spares_max)) {}

steal_crew::~steal_crew() {
  join_threads();
  while (!vacant_.empty()) vacant_.pop_front();
  for (std::size_t i = 0; i < size(); ++i) delete &at(i);
}

void steal_crew::start(serve each) {
  serve_ = std::move(each);
  for (std::size_t i = 0; i < threads_; ++i) {
    {
      const std::lock_guard hold(lock_);
      ++live_;
      ++running_;
      ++searching_;
    }
    start_thread(nullptr);
  }
}

void steal_crew::join_threads() noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    seam::thread ending;
    {
      const std::lock_guard hold(hiring_);
      ending = std::move(at(i).thread);
    }
    if (ending.joinable()) ending.join();
  }
}

// Starts a thread for the vacant worker `reused`, or for a new worker if null. The caller has
// counted it as searching; a failure undoes that.
void steal_crew::start_thread(steal_worker* reused) {
  const std::lock_guard hiring(hiring_);
  try {
    if (reused == nullptr) {
      const auto at = made_.load(relaxed);
      check(at < threads_ + spares_max_, "sluice::work_stealing_pool",
            "a slot for every thread that may be alive");
      reused = new steal_worker(pool_, at + 1, deque_capacity_);
      workers_[at].store(reused, release);  // release, both: pair with the acquire in at and size
      made_.store(at + 1, release);
    } else if (reused->thread.joinable()) {
      reused->thread.join();  // it has left the crew and is about to end
    }
    const auto life = [this, reused] {
      reused->sleeper = &seam::this_parker();
      reused->party.store(wait_report::party::this_thread().word(), relaxed);  // orders nothing
      if (wait_report::is_on()) [[unlikely]] report_end_holder(*reused);
      serve_(*reused);
      end_worker(*reused);
    };
    reused->thread = make_thread_ ? make_thread_(life) : seam::thread(life);
  } catch (...) {
    const std::lock_guard hold(lock_);
    --live_;
    --running_;
    --searching_;
    ++start_failures_;
    if (reused != nullptr) vacant_.push_back(*reused);
    update_flags();
    end_if_done();  // a worker that rested meanwhile saw this one as running
    throw;
  }
}

// ---- waking

void steal_crew::call_one() noexcept {
  seam::parker* sleeper = nullptr;
  steal_worker* reused = nullptr;
  {
    const std::lock_guard hold(lock_);
    if (!wanted_.load(relaxed)) return;
    if (steal_worker* const called = next_to_call(); called != nullptr) {
      remove_from_list(*called);
      called->called = true;
      // Read under the lock: after it, the worker may time out and end, and its object be reused.
      sleeper = called->sleeper;
    } else {
      ++live_;
      if (!vacant_.empty()) reused = &vacant_.pop_front();
    }
    ++running_;
    ++searching_;
    update_flags();
  }
  if (sleeper != nullptr) {
    sleeper->unpark();
    return;
  }
  // relaxed: a statistic. Before the thread starts, so an effect of the thread implies the count.
  spares_started_.fetch_add(1, relaxed);
  try {
    start_thread(reused);
  } catch (const std::exception&) {
    spares_started_.fetch_sub(1, relaxed);
    // No thread can be started now: running workers will find the work, or the next call retries.
    // A worker that went to sleep meanwhile was not woken for work added since, so check again.
    bool has_sleeper = false;
    {
      const std::lock_guard hold(lock_);
      has_sleeper = wanted_.load(relaxed) && next_to_call() != nullptr;
    }
    if (has_sleeper) check_again();  // without a sleeper it would try to start threads forever
  }
}

steal_worker* steal_crew::next_to_call() noexcept {
  if (!resting_.empty()) return &resting_.front();
  if (watcher_ != nullptr && !watcher_->joining) return watcher_;
  if (!joining_.empty()) return &joining_.front();
  return watcher_;
}

// Computes the flags that threads which add work read.
void steal_crew::update_flags() noexcept {
  const bool sleepers = !resting_.empty() || !joining_.empty() || watcher_ != nullptr;
  const bool spare = blocked_ > 0 && can_start_spare();
  const bool wanted =
      searching_ == 0 && running_ < threads_ && (sleepers || spare) && !has_ended_;
  const bool unwatched = wanted && sleepers && watcher_ == nullptr;
  const bool surplus = running_ > threads_;
  // relaxed: a thread that adds work has a barrier before it reads them; the caller has one after
  // this and before it checks for work. Written only on a change: this line is read often.
  if (wanted_.load(relaxed) != wanted) wanted_.store(wanted, relaxed);
  if (watch_wanted_.load(relaxed) != unwatched) watch_wanted_.store(unwatched, relaxed);
  if (surplus_.load(relaxed) != surplus) surplus_.store(surplus, relaxed);
}

bool steal_crew::work_is_visible() const noexcept {
  if (outside_.pending() > 0) return true;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!at(i).deque.looks_empty()) return true;
  }
  return false;
}

bool steal_crew::next_is_visible() const noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    if (at(i).next.load(relaxed) != nullptr) return true;
  }
  return false;
}

// ---- state changes of a worker

void steal_crew::begin_search() noexcept {
  const std::lock_guard hold(lock_);
  ++searching_;
  update_flags();
}

void steal_crew::end_search() noexcept {
  {
    const std::lock_guard hold(lock_);
    --searching_;
    update_flags();
    if (!wanted_.load(relaxed)) return;
  }
  check_again();
}

// No worker is searching, and that is now visible. Work added while one was searching woke none,
// so check for it here.
void steal_crew::check_again() noexcept {
  seam::heavy_barrier();  // pairs with the light one in work_added and next_added
  if (work_is_visible() || (watch_wanted_.load(relaxed) && next_is_visible())) call_one();
}

void steal_crew::blocks() noexcept {
  {
    const std::lock_guard hold(lock_);
    --running_;
    ++blocked_;
    update_flags();
    if (!wanted_.load(relaxed)) return;
  }
  check_again();
}

void steal_crew::unblocks() noexcept {
  const std::lock_guard hold(lock_);
  --blocked_;
  ++running_;
  update_flags();
}

// ---- sleeping

void steal_crew::park_in_list(steal_worker& self, bool may_watch) noexcept {
  if (may_watch && watcher_ == nullptr && running_ > 0) {
    watcher_ = &self;
    self.watching = true;
    self.quiet_ticks = 0;
  } else {
    (self.joining ? joining_ : resting_).push_front(self);
  }
}

void steal_crew::remove_from_list(steal_worker& self) noexcept {
  if (self.watching) {
    watcher_ = nullptr;
    self.watching = false;
  } else {
    self.unlink();
  }
}

bool steal_crew::rest(steal_worker& self, is_done done, const void* joined) noexcept {
  bool must_check = false;
  {
    const std::lock_guard hold(lock_);
    --searching_;
    --running_;
    self.called = false;
    self.joining = done != nullptr;
    park_in_list(self, true);
    update_flags();
    end_if_done();
    must_check = wanted_.load(relaxed);
  }
  if (must_check) {
    seam::heavy_barrier();  // pairs with the light one in work_added and next_added
    if (work_is_visible()) {
      leave(self);
      return true;
    }
  }
  self.parked.increment();
  for (;;) {
    if (done != nullptr && done(joined)) {
      leave(self);
      return true;
    }
    auto until = seam::time_point::max();
    {
      const std::lock_guard hold(lock_);
      if (self.called) return true;
      if (has_ended_) {
        remove_from_list(self);
        --live_;
        return false;
      }
      if (self.watching) {
        until = seam::now() + watch_period;
      } else if (live_ > threads_ && !self.joining && keep_alive_ != keep_alive_.max()) {
        until = seam::now() + keep_alive_;
      }
    }
    if (self.sleeper->park_until(until)) continue;
    const auto next = woken_by_time(self);
    if (next != after_sleep::sleep_on) return next == after_sleep::search;
  }
}

steal_crew::after_sleep steal_crew::woken_by_time(steal_worker& self) noexcept {
  {
    const std::lock_guard hold(lock_);
    if (self.called || has_ended_) return after_sleep::sleep_on;  // the loop in `rest` handles it
    if (!self.watching) {
      if (self.joining || live_ <= threads_) return after_sleep::sleep_on;
      remove_from_list(self);
      --live_;
      vacant_.push_back(self);  // together with live_: a thread that starts a spare finds a slot
      update_flags();
      return after_sleep::end;
    }
    ++looking_;
  }
  const auto next = watch(self);
  const std::lock_guard hold(lock_);
  if (next == after_sleep::search) count_in(self);
  --looking_;
  end_if_done();  // a worker that rested meanwhile saw looking_ above 0
  return next;
}

// One tick of the watcher: takes a post that its worker is too busy to run, or checks for work.
steal_crew::after_sleep steal_crew::watch(steal_worker& self) noexcept {
  for (std::size_t i = 0; i < size() && self.rescued == nullptr; ++i) {
    self.rescued = take_stranded(at(i));
  }
  if (self.rescued != nullptr || work_is_visible()) return after_sleep::search;
  self.quiet_ticks = next_is_visible() ? 0 : self.quiet_ticks + 1;
  if (self.quiet_ticks < quiet_ticks_max) return after_sleep::sleep_on;
  {
    const std::lock_guard hold(lock_);
    if (self.called) return after_sleep::sleep_on;
    remove_from_list(self);
    park_in_list(self, false);  // the next post to a `next` calls a watcher again
    update_flags();
  }
  seam::heavy_barrier();  // pairs with the light one in next_added
  return next_is_visible() ? after_sleep::search : after_sleep::sleep_on;
}

// Called by the watcher only. Takes the `next` of a worker that has made no progress since the last
// tick; otherwise returns null.
work* steal_crew::take_stranded(steal_worker& from) noexcept {
  work* kept = from.next.load(relaxed);
  const auto executed = from.executed.get();
  // relaxed: a guess; the exchange below takes the work.
  const bool unmoved = from.next_seen.exchange(kept, relaxed) == kept &&
                       from.executed_seen.load(relaxed) == executed;
  from.executed_seen.store(executed, relaxed);
  if (kept == nullptr || !unmoved) return nullptr;
  // acquire: pairs with the release of the post.
  return from.next.compare_exchange_strong(kept, nullptr, acquire, relaxed) ? kept : nullptr;
}

void steal_crew::leave(steal_worker& self) noexcept {
  const std::lock_guard hold(lock_);
  count_in(self);
}

// Counts the worker as searching, unless call_one has done so.
void steal_crew::count_in(steal_worker& self) noexcept {
  if (self.called) return;
  remove_from_list(self);
  ++running_;
  ++searching_;
  update_flags();
}

// ---- shutdown

void steal_crew::closed() noexcept {
  const std::lock_guard hold(lock_);
  end_if_done();
}

// If no worker runs, is blocked or holds work, all deques are empty, and only the intake can still
// have work.
void steal_crew::end_if_done() noexcept {
  if (has_ended_ || running_ + blocked_ + looking_ > 0) return;
  if (has_joiner() || !outside_.is_closed()) return;
  if (!outside_.retire()) return;  // the thread that added work is about to call `work_added`
  has_ended_ = true;
  update_flags();
  for (std::size_t i = 0; i < size(); ++i) {
    if (at(i).sleeper != nullptr) at(i).sleeper->unpark();
  }
}

bool steal_crew::has_joiner() const noexcept {
  return !joining_.empty() || (watcher_ != nullptr && watcher_->joining);
}

namespace {

// Report at most this many workers per crew: all records of one object share one table shard, and a
// large crew would leave no capacity for other objects.
constexpr std::size_t reported_workers_max = 128;

}  // namespace

void steal_crew::report_end_holder(const steal_worker& member) const noexcept {
  const auto party = wait_report::party::from_word(member.party.load(relaxed));
  if (!party || member.number > reported_workers_max) return;
  wait_report::took({.object = &ended_,
               .type = "sluice::work_stealing_pool",
               .mode = wait_report::held_as::running,
               .by = party,
               .at = std::source_location(),
               .waited = false});
}

void steal_crew::report_end_holders() noexcept {
  if (!wait_report::is_on()) [[likely]] return;
  const std::lock_guard hold(lock_);  // no worker can end meanwhile
  for (std::size_t i = 0; i < size(); ++i) report_end_holder(at(i));
}

void steal_crew::end_worker(steal_worker& self) noexcept {
  bool last = false;
  {
    const std::lock_guard hold(lock_);
    self.party.store(0, relaxed);
    if (self.number <= reported_workers_max) {
      wait_report::gave(&ended_, wait_report::party::this_thread());
    }
    last = has_ended_ && live_ == 0;
  }
  if (last) ended_.set();
}

steal_crew::headcount steal_crew::count() const {
  const std::lock_guard hold(lock_);
  const std::size_t watching_rest = watcher_ != nullptr && !watcher_->joining ? 1 : 0;
  const std::size_t watching_join = watcher_ != nullptr && watcher_->joining ? 1 : 0;
  return {.live = live_,
          .running = running_,
          .searching = searching_,
          .resting = resting_.size() + watching_rest,
          .joining = joining_.size() + watching_join,
          .blocked = blocked_,
          .spares_started = spares_started_.load(relaxed),
          .start_failures = start_failures_};
}

}  // namespace sluice::detail
