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

// The worker is counted as searching already; taken back when there can be no thread for it.
void steal_crew::start_thread(steal_worker* again) {
  const std::lock_guard hiring(hiring_);
  try {
    if (again == nullptr) {
      const auto at = made_.load(relaxed);
      check(at < threads_ + spares_max_, "sluice::work_stealing_pool",
            "a place for every thread that may be alive");
      again = new steal_worker(pool_, at + 1, deque_capacity_);
      workers_[at].store(again, release);  // release, both: pair with the acquire in at and size
      made_.store(at + 1, release);
    } else if (again->thread.joinable()) {
      again->thread.join();  // it has left the crew: nothing is left for it but to end
    }
    const auto life = [this, again] {
      again->sleeper = &seam::this_parker();
      again->party.store(watch::party::this_thread().word(), relaxed);  // nothing hangs on it
      if (watch::is_on()) [[unlikely]] tell_end_of(*again);
      serve_(*again);
      leave_for_good(*again);
    };
    again->thread = make_thread_ ? make_thread_(life) : seam::thread(life);
  } catch (...) {
    const std::lock_guard hold(lock_);
    --live_;
    --running_;
    --searching_;
    ++start_failures_;
    if (again != nullptr) vacant_.push_back(*again);
    settle();
    end_if_done();  // who went to rest meanwhile left that to it
    throw;
  }
}

// ---- waking

void steal_crew::call_one() noexcept {
  seam::parker* sleeper = nullptr;
  steal_worker* again = nullptr;
  {
    const std::lock_guard hold(lock_);
    if (!wanted_.load(relaxed)) return;
    if (steal_worker* const called = next_to_call(); called != nullptr) {
      get_up(*called);
      called->called = true;
      // Here: once called, it may wake by the time, end, and leave its place to another thread.
      sleeper = called->sleeper;
    } else {
      ++live_;
      if (!vacant_.empty()) again = &vacant_.pop_front();
    }
    ++running_;
    ++searching_;
    settle();
  }
  if (sleeper != nullptr) {
    sleeper->unpark();
    return;
  }
  // relaxed: a number to read. Before the thread runs: who saw what it did finds it counted.
  spares_started_.fetch_add(1, relaxed);
  try {
    start_thread(again);
  } catch (const std::exception&) {
    spares_started_.fetch_sub(1, relaxed);
    // No thread to be had now: those that run will come to the work, or the next call will try.
    // Those that went to sleep meanwhile will not, and what came woke none of them.
    bool somebody_sleeps = false;
    {
      const std::lock_guard hold(lock_);
      somebody_sleeps = wanted_.load(relaxed) && next_to_call() != nullptr;
    }
    if (somebody_sleeps) look_once_more();  // else it would ask for a thread again, and again
  }
}

steal_worker* steal_crew::next_to_call() noexcept {
  if (!resting_.empty()) return &resting_.front();
  if (watcher_ != nullptr && !watcher_->joining) return watcher_;
  if (!joining_.empty()) return &joining_.front();
  return watcher_;
}

void steal_crew::settle() noexcept {
  const bool sleepers = !resting_.empty() || !joining_.empty() || watcher_ != nullptr;
  const bool spare = blocked_ > 0 && can_start_spare();
  const bool wanted = searching_ == 0 && running_ < threads_ && (sleepers || spare) && !over_;
  const bool unwatched = wanted && sleepers && watcher_ == nullptr;
  const bool surplus = running_ > threads_;
  // relaxed: whoever adds work has a barrier before it reads them, and we have one after this
  // before we look for work. Written only when it changes: others read this line all the time.
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

// ---- what a worker says of itself

void steal_crew::begin_search() noexcept {
  const std::lock_guard hold(lock_);
  ++searching_;
  settle();
}

void steal_crew::end_search() noexcept {
  {
    const std::lock_guard hold(lock_);
    --searching_;
    settle();
    if (!wanted_.load(relaxed)) return;
  }
  look_once_more();
}

// Nobody searches, as everybody can see now. What came while somebody did has woken nobody.
void steal_crew::look_once_more() noexcept {
  seam::heavy_barrier();  // pairs with the light one in work_added and next_added
  if (work_is_visible() || (watch_wanted_.load(relaxed) && next_is_visible())) call_one();
}

void steal_crew::blocks() noexcept {
  {
    const std::lock_guard hold(lock_);
    --running_;
    ++blocked_;
    settle();
    if (!wanted_.load(relaxed)) return;
  }
  look_once_more();
}

void steal_crew::unblocks() noexcept {
  const std::lock_guard hold(lock_);
  --blocked_;
  ++running_;
  settle();
}

// ---- sleeping

void steal_crew::lie_down(steal_worker& self, bool may_watch) noexcept {
  if (may_watch && watcher_ == nullptr && running_ > 0) {
    watcher_ = &self;
    self.watching = true;
    self.quiet_ticks = 0;
  } else {
    (self.joining ? joining_ : resting_).push_front(self);
  }
}

void steal_crew::get_up(steal_worker& self) noexcept {
  if (self.watching) {
    watcher_ = nullptr;
    self.watching = false;
  } else {
    self.unlink();
  }
}

bool steal_crew::rest(steal_worker& self, is_over over, const void* what) noexcept {
  bool look = false;
  {
    const std::lock_guard hold(lock_);
    --searching_;
    --running_;
    self.called = false;
    self.joining = over != nullptr;
    lie_down(self, true);
    settle();
    end_if_done();
    look = wanted_.load(relaxed);
  }
  if (look) {
    seam::heavy_barrier();  // pairs with the light one in work_added and next_added
    if (work_is_visible()) {
      leave(self);
      return true;
    }
  }
  self.parked.increment();
  for (;;) {
    if (over != nullptr && over(what)) {
      leave(self);
      return true;
    }
    auto until = seam::time_point::max();
    {
      const std::lock_guard hold(lock_);
      if (self.called) return true;
      if (over_) {
        get_up(self);
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
    if (self.called || over_) return after_sleep::sleep_on;  // the loop sees to it
    if (!self.watching) {
      if (self.joining || live_ <= threads_) return after_sleep::sleep_on;
      get_up(self);
      --live_;
      vacant_.push_back(self);  // with the count: whoever may start a thread finds a place for it
      settle();
      return after_sleep::end;
    }
    ++looking_;
  }
  const auto next = watch(self);
  const std::lock_guard hold(lock_);
  if (next == after_sleep::search) count_in(self);
  --looking_;
  end_if_done();  // who went to rest meanwhile left that to it
  return next;
}

// Looks for what no running worker comes to.
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
    get_up(self);
    lie_down(self, false);  // whoever keeps something for itself calls a watcher again
    settle();
  }
  seam::heavy_barrier();  // pairs with the light one in next_added
  return next_is_visible() ? after_sleep::search : after_sleep::sleep_on;
}

// The watcher alone. Null: there is nothing, or its worker has moved on since the last look.
work* steal_crew::take_stranded(steal_worker& from) noexcept {
  work* kept = from.next.load(relaxed);
  const auto executed = from.executed.get();
  // relaxed: a guess; whoever takes it does so by the exchange below.
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

// Searches again, unless somebody has counted it as searching by calling it.
void steal_crew::count_in(steal_worker& self) noexcept {
  if (self.called) return;
  get_up(self);
  ++running_;
  ++searching_;
  settle();
}

// ---- the end

void steal_crew::closed() noexcept {
  const std::lock_guard hold(lock_);
  end_if_done();
}

// Nobody runs anything or has taken it to run, so the workers' own queues are empty, and so stays
// what is outside.
void steal_crew::end_if_done() noexcept {
  if (over_ || running_ + blocked_ + looking_ > 0) return;
  if (!nobody_joins() || !outside_.is_closed()) return;
  if (!outside_.retire()) return;  // whoever put something in is about to call
  over_ = true;
  settle();
  for (std::size_t i = 0; i < size(); ++i) {
    if (at(i).sleeper != nullptr) at(i).sleeper->unpark();
  }
}

bool steal_crew::nobody_joins() const noexcept {
  return joining_.empty() && (watcher_ == nullptr || !watcher_->joining);
}

namespace {

// The ends of so many are told of: what is known of one object is kept in one place, which a crew
// of hundreds would fill for others.
constexpr std::size_t told_workers_max = 128;

}  // namespace

void steal_crew::tell_end_of(const steal_worker& who) const noexcept {
  const auto party = watch::party::from_word(who.party.load(relaxed));
  if (!party || who.number > told_workers_max) return;
  watch::took({.object = &ended_,
               .type = "sluice::work_stealing_pool",
               .how = watch::held_as::running,
               .by = party,
               .at = std::source_location(),
               .waited = false});
}

void steal_crew::tell_whose_end() noexcept {
  if (!watch::is_on()) [[likely]] return;
  const std::lock_guard hold(lock_);  // none of them leaves meanwhile
  for (std::size_t i = 0; i < size(); ++i) tell_end_of(at(i));
}

void steal_crew::leave_for_good(steal_worker& self) noexcept {
  bool last = false;
  {
    const std::lock_guard hold(lock_);
    self.party.store(0, relaxed);
    if (self.number <= told_workers_max) watch::gave(&ended_, watch::party::this_thread());
    last = over_ && live_ == 0;
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
