#include "sluice/executor/thread_pool.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <source_location>
#include <system_error>

#include "sluice/base/this_thread.hpp"
#include "sluice/sync/backoff.hpp"

namespace sluice {
namespace {

// The pool that the calling thread belongs to, whatever executor runs on top of it right now.
constinit thread_local const thread_pool* this_threads_pool = nullptr;

clock& clock_of(const thread_pool_options& o) {
  return o.clock != nullptr ? *o.clock : real_clock();
}

std::optional<detail::intake_store::by_priority::order> order_of(const thread_pool_options& o) {
  if (!o.by_priority) return std::nullopt;
  return detail::intake_store::by_priority::order{.ageing = o.ageing,
                                                  .time = &clock_of(o),
                                                  .evicts_least =
                                                      o.overflow == overflow::drop_oldest};
}

// The processors that threads are bound to: those asked for, all of which must be usable.
cpu_affinity checked(cpu_affinity asked) {
  if (asked.how == cpu_affinity::binding::none) return asked;
  const auto usable = seam::usable_cpus();
  if (asked.cpus.empty()) asked.cpus = usable;
  for (const unsigned cpu : asked.cpus) {
    if (std::ranges::find(usable, cpu) != usable.end()) continue;
    throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                            "sluice::thread_pool: this process may not use CPU " +
                                std::to_string(cpu));
  }
  return asked;
}

std::function<seam::thread_times()> measure_of(const thread_pool_options& o) {
  if (!o.sizing.has_value()) return {};
  if (o.sizing->measure) return o.sizing->measure;
  return [] { return seam::this_thread_times(); };
}

// What a policy drops may have been marked when it came in.
std::function<void(submission&&)> without_marks(std::function<void(submission&&)>&& on_drop) {
  if (!on_drop) return {};
  return [on_drop = std::move(on_drop)](submission&& dropped) {
    dropped.clear_mark();
    on_drop(std::move(dropped));
  };
}

// How a thread looks for more before it sleeps: some microseconds in all.
constexpr int looks_max = 12;
constexpr int pauses_between_looks = 24;

// The ends of so many threads are told of: what is known of one object is kept in one place, which
// a pool of hundreds would fill for others.
constexpr std::size_t told_threads_max = 128;

// For whoever watches: the end of the pool is a wait for the end of this thread.
void told_end_of(const event& ended, watch::party who) noexcept {
  watch::took({.object = &ended,
               .type = "sluice::thread_pool",
               .how = watch::held_as::running,
               .by = who,
               .at = std::source_location(),
               .waited = false});
}

// For whoever watches: what is queued is run by this thread, or another one of so many.
void told_crew_of(const executor& pool, std::size_t threads) noexcept {
  watch::took({.object = &pool,
               .type = "sluice::thread_pool",
               .how = watch::held_as::crew,
               .by = watch::party::this_thread(),
               .count = static_cast<std::int64_t>(threads),
               .waited = false});
}

// Of a number that its own thread alone changes.
void count(atomic<std::uint64_t>& mine) noexcept { mine.store(mine.load(relaxed) + 1, relaxed); }

}  // namespace

// On cache lines of its own: the counts are written by its thread after every function.
struct alignas(64) thread_pool::worker {
  explicit worker(std::size_t n) noexcept : number(n) {}

  const std::size_t number;  // from 1
  seam::thread handle;       // protected by the pool's mutex
  atomic<std::uint64_t> party{0};  // what whoever watches knows its thread by; 0: not begun

  alignas(64) atomic<std::uint64_t> completed{0};
  atomic<std::uint64_t> posts{0};
  atomic<bool> busy{false};

  // Its own thread's.
  detail::lent_batch batch;        // what it runs next
  bool newborn = true;             // was counted as idle when it was started
  std::size_t until_measured = 0;  // so many functions before the next one that is measured
};

// ---- the beginning

thread_pool::thread_pool(options o)
    : queued_executor("sluice::thread_pool",
                      {.capacity = o.capacity,
                       .overflow = o.overflow,
                       .name = o.name,
                       .on_drop = without_marks(std::move(o.on_drop)),
                       .on_error = std::move(o.on_error),
                       .users = spread::line_a_thread},
                      order_of(o)),
      core_(o.core),
      max_(o.max.value_or(o.core)),
      keep_alive_(o.keep_alive),
      clock_(o.clock),
      blocks_(o.overflow == overflow::block),
      affinity_(checked(std::move(o.affinity))),
      make_thread_(std::move(o.make_thread)),
      measure_(measure_of(o)),
      limit_(max_) {
  check_options(o);
  intake_.time_one_in(o.time_every, clock_of(o));
  if (!o.name.empty()) watch::set_name(&ended_, o.name);
  if (o.sizing.has_value()) {
    meter_.emplace(*o.sizing, core_, max_);
    limit_.store(meter_->threads(), relaxed);  // no other thread is there yet
  }
  try {
    const std::lock_guard hold(mutex_);
    while (threads() < core_) start_one();
  } catch (...) {
    if (threads() > 0) drain();
    throw;
  }
}

void thread_pool::check_options(const options& o) const noexcept {
  const auto require = [&](bool holds, const char* expected) {
    check_named(holds, "sluice::thread_pool", o.name.c_str(), expected);
  };
  require(core_ >= 1, "at least one thread (core)");
  require(max_ >= core_, "max not to be below core");
  require(max_ <= threads_max, "a max of at most 65536 threads");
  require(!o.sizing.has_value() || o.max.has_value(), "a max up to which sizing may go");
  require(o.ageing >= std::chrono::nanoseconds::zero(), "an ageing that is not negative");
}

thread_pool::~thread_pool() {
  drain();
  // acquire: pairs with the release in `post`, which touches nothing after it.
  for (backoff again; posting_.load(acquire) != 0;) again.pause();
  end("sluice::thread_pool");
  watch::gone(static_cast<const executor*>(this));
}

bool thread_pool::on_own_thread() const noexcept { return this_threads_pool == this; }

void thread_pool::must_not_be_own_thread() const noexcept {
  check_named(!on_own_thread(), "sluice::thread_pool", intake_.name().c_str(),
              "not to be ended or joined by one of its own threads, which would wait for itself");
}

// ---- what comes in

void thread_pool::post(work& item) noexcept {
  // The item may run at once, and somebody destroy the pool because of what it did; not while one
  // of its own threads is in here. relaxed: that one has seen this with it.
  const bool from_outside = !on_own_thread();
  if (from_outside) posting_.fetch_add(1, relaxed);
  const bool taken = intake_.post(item);
  if (taken) [[likely]] {
    arrived();
    if (is_closed()) [[unlikely]] wake_one_at_rest();
  }
  if (from_outside) posting_.fetch_sub(1, release);  // pairs with the acquire in the destructor
  if (!taken) run_here(item);
}

status thread_pool::accept(submission& f, const wait_limits* limits) {
  // All threads of the pool could wait for room at once, and then nobody would make any.
  const bool must_not_wait = limits != nullptr && blocks_ && on_own_thread();
  if (!must_not_wait) [[likely]] return queued_executor::accept(f, limits);
  if (limits->stop.stop_requested()) return status::stopped;
  const auto now = queued_executor::accept(f, nullptr);
  return now == status::full ? run_by_caller(f) : now;
}

// ---- threads come and go

// More is waiting than there are threads that look for it. Whoever submits puts something in and
// then looks here; a thread that has found something stops being idle and then looks here; one that
// leaves is no longer counted, stops being idle and then looks at what is waiting. All change
// idle_, so the later of them sees what the other did: nothing is left waiting while a thread could
// be started for it.
bool thread_pool::lacks_threads() noexcept {
  const auto idle = idle_.fetch_add(0, acq_rel);  // acq_rel: pairs with every other change of it
  return threads() < limit() && intake_.pending() > idle;
}

void thread_pool::grow_if_needed() noexcept {
  if (!lacks_threads()) return;
  const std::lock_guard hold(mutex_);
  if (!lacks_threads() || ended_.is_set()) return;
  try {
    start_one();
  } catch (...) {
    ++past_.start_failures;
  }
}

void thread_pool::start_one() {
  auto place = std::find(workers_.begin(), workers_.end(), nullptr);
  if (place == workers_.end()) place = workers_.insert(place, nullptr);
  auto made = std::make_unique<worker>(static_cast<std::size_t>(place - workers_.begin()) + 1);
  worker& me = *made;
  const auto life = [this, &me] { live(me); };  // it takes mutex_ before it ends
  const auto now = threads() + 1;
  // Counted before it runs: it may have found something, and be idle no more, at any moment.
  threads_.store(now, relaxed);
  idle_.fetch_add(1, acq_rel);
  try {
    me.handle = make_thread_ ? make_thread_(life) : seam::thread(life);
  } catch (...) {
    threads_.store(now - 1, relaxed);
    idle_.fetch_sub(1, acq_rel);
    throw;
  }
  *place = std::move(made);
  past_.threads_largest = std::max(past_.threads_largest, now);
}

// False: it must stay, because there would be too few or because there is something to do. True:
// it has left, and touches nothing of the pool any more.
bool thread_pool::leave(worker& me, exit why) noexcept {
  seam::thread before;
  bool last = false;
  {
    std::unique_lock hold(mutex_);
    if (why == exit::idle_for_long && threads() <= core_) return false;
    if (why == exit::too_many && threads() <= limit()) return false;
    if (why == exit::closed && !rest(hold)) return false;
    threads_.store(threads() - 1, relaxed);  // before idle_: see lacks_threads
    const auto idle = idle_.fetch_sub(1, acq_rel) - 1;
    if (why == exit::idle_for_long && intake_.pending() > idle) {
      threads_.store(threads() + 1, relaxed);
      idle_.fetch_add(1, acq_rel);
      return false;
    }
    last = threads() == 0;
    if (!over_) at_rest_.notify_one();  // it may be that all who are left are at rest
    if (me.number <= told_threads_max) watch::gave(&ended_, watch::party::this_thread());
    if (max_ == core_) watch::gave(static_cast<const executor*>(this), watch::party::this_thread());
    past_.completed += me.completed.load(relaxed);
    past_.posts += me.posts.load(relaxed);
    before = std::exchange(last_ended_, std::move(me.handle));
    workers_[me.number - 1].reset();  // `me` is gone
  }
  if (before.joinable()) before.join();
  if (last) ended_.set();
  return true;
}

// Of a thread that has found the pool closed and empty. It stays while another one runs something:
// that may wait for a post which has not come yet. When all are here, the pool is at its end.
// False: there is something to do.
bool thread_pool::rest(std::unique_lock<sluice::mutex>& hold) noexcept {
  ++resting_;
  at_rest_.wait(hold, [&] { return over_ || resting_ == threads() || intake_.pending() > 0; });
  if (!over_ && resting_ == threads() && intake_.retire()) {
    over_ = true;
    at_rest_.notify_all();
  }
  --resting_;
  return over_;
}

// What was put in before is seen by whoever goes to rest after this.
void thread_pool::wake_one_at_rest() noexcept {
  const std::lock_guard hold(mutex_);
  at_rest_.notify_one();
}

// ---- what a thread does

void thread_pool::settle_in(const worker& me) const noexcept {
  // The number is what tells one from the other: a long name makes room for it.
  std::array<char, seam::thread_name_max + 1> shown{};
  std::array<char, seam::thread_name_max> digits{'-'};
  const auto end = std::to_chars(digits.data() + 1, digits.data() + digits.size(), me.number).ptr;
  const std::string_view ending(digits.data(), static_cast<std::size_t>(end - digits.data()));
  const auto first = name().substr(0, seam::thread_name_max - ending.size());
  std::ranges::copy(ending, std::ranges::copy(first, shown.begin()).out);
  seam::name_thread(shown.data());

  // A processor that has gone since the pool was made binds nobody: the thread runs elsewhere.
  const auto& cpus = affinity_.cpus;
  if (affinity_.how == cpu_affinity::binding::whole_set) seam::pin_thread(cpus);
  if (affinity_.how == cpu_affinity::binding::one_each) {
    seam::pin_thread({&cpus[(me.number - 1) % cpus.size()], 1});
  }
}

void thread_pool::live(worker& me) noexcept {
  this_threads_pool = this;
  me.party.store(watch::party::this_thread().word(), relaxed);  // a number, nothing hangs on it
  if (watch::is_on()) [[unlikely]] {
    if (me.number <= told_threads_max) told_end_of(ended_, watch::party::this_thread());
    if (max_ == core_) told_crew_of(*this, core_);  // there will be no others
  }
  settle_in(me);
  const running here(*this);
  while (auto* const f = next(me)) run(me, *f);
}

// The first of what is there, if anything. The rest is its own, until others have nothing to do.
submission* thread_pool::borrow(worker& me) {
  // While there could be more threads, nothing is put aside for one of them.
  const auto threads_to_share = threads() < limit() ? intake_.capacity() : threads();
  submission* first = nullptr;
  // All that was lent may be gone before it is begun.
  while (first == nullptr && intake_.lend(me.batch, threads_to_share)) first = me.batch.next();
  return first;
}

// Finds the thread idle if it is new, else busy; leaves it busy if there was something.
submission* thread_pool::next(worker& me) {
  if (auto* const mine = me.batch.next()) [[likely]] return mine;
  if (!std::exchange(me.newborn, false)) {
    const bool too_many = threads() > limit();
    if (!too_many) {
      if (auto* const mine = borrow(me)) return mine;
    }
    if (too_many) intake_.give_up(me.batch);
    idle_.fetch_add(1, acq_rel);
    // release: pairs with the acquire in `stats`. Who sees that it is not active, finds it idle.
    me.busy.store(false, release);
    if (too_many && leave(me, exit::too_many)) return nullptr;
  }
  submission* found = nullptr;
  while (found == nullptr) {
    if (look_for_more()) found = borrow(me);
    if (found != nullptr) break;
    deadline until;
    if (threads() > core_) {
      until = clock_ != nullptr ? deadline::after(keep_alive_, *clock_)
                                : deadline::after(keep_alive_);
    }
    auto got = intake_.wait_for_one(until);
    if (got) {
      found = me.batch.hold(std::move(*got));
    } else if (leave(me, got.status() == status::closed ? exit::closed : exit::idle_for_long)) {
      return nullptr;
    }
  }
  me.busy.store(true, relaxed);
  idle_.fetch_sub(1, acq_rel);
  if (max_ > core_) grow_if_needed();
  return found;
}

// A thread that has just run out of work is likely to get more in a moment. It looks now and then,
// not all the time: whoever submits would have to fetch the line back after every look, and what
// comes in meanwhile is taken at once. False: it is time to sleep.
bool thread_pool::look_for_more() noexcept {
  const auto there = [this] { return intake_.pending() > 0 || intake_.is_closed(); };
  if (seam::can_spin()) {
    intake_.start_looking();
    bool found = false;
    for (int looks = 0; looks < looks_max && !found; ++looks) {
      for (int left = pauses_between_looks; left > 0; --left) seam::pause();
      found = there();
    }
    intake_.stop_looking();
    if (found) return true;
  }
  for (int left = seam::yields_before_sleep; left > 0; --left) {
    seam::yield();
    if (there()) return true;
  }
  return false;
}

void thread_pool::run(worker& me, submission& f) noexcept {
  const auto what = f.mark;
  if (measure_ && me.until_measured-- == 0) [[unlikely]] {
    run_measured(me, f);
  } else if (what == submission::kind::timed) [[unlikely]] {
    run_timed(f);
  } else {
    run_submission(f);
  }
  f.run.reset();  // what it holds is let go of now, not when the next one comes
  count(what == submission::kind::posted ? me.posts : me.completed);
}

void thread_pool::run_timed(submission& f) noexcept {
  const auto& time = clock_ != nullptr ? *clock_ : real_clock();
  const auto begun = time.now();
  wait_times_.record(begun.time_since_epoch() - std::chrono::nanoseconds(f.stamp));
  run_submission(f);
  run_times_.record(time.now() - begun);
}

void thread_pool::run_measured(worker& me, submission& f) noexcept {
  const auto before = measure_();
  if (f.mark == submission::kind::timed) {
    run_timed(f);
  } else {
    run_submission(f);
  }
  const auto after = measure_();
  const seam::thread_times took{.wall = after.wall - before.wall,
                                .computing = after.computing - before.computing,
                                .runnable = after.runnable - before.runnable};
  me.until_measured = sizing::meter::skip_after(took.wall);
  {
    const std::lock_guard hold(sizing_guard_);
    limit_.store(meter_->add(took), relaxed);
  }
  grow_if_needed();
}

// ---- the end

status thread_pool::join(const wait_limits& limits) {
  must_not_be_own_thread();
  if (watch::is_on()) [[unlikely]] tell_whose_end();
  return ended_.wait_within(limits);
}

// A join waits for all threads that there are now.
void thread_pool::tell_whose_end() noexcept {
  const std::lock_guard hold(mutex_);
  for (const auto& each : workers_) {
    if (each == nullptr) continue;
    const auto who = watch::party::from_word(each->party.load(relaxed));
    if (who && each->number <= told_threads_max) told_end_of(ended_, who);
  }
}

void thread_pool::end_threads() noexcept {
  if (watch::is_on()) [[unlikely]] tell_whose_end();
  ended_.wait();
  seam::thread last;
  {
    const std::lock_guard hold(mutex_);
    last = std::exchange(last_ended_, seam::thread());
  }
  if (last.joinable()) last.join();
}

void thread_pool::drain() {
  must_not_be_own_thread();
  close();
  end_threads();
}

std::vector<submission> thread_pool::stop() {
  must_not_be_own_thread();
  close();
  auto unstarted = intake_.take_back();  // first: whoever stops would begin the next one
  for (auto& each : unstarted) each.clear_mark();
  stop_.request_stop();
  end_threads();
  return unstarted;
}

std::vector<submission> thread_pool::shutdown_within(const wait_limits& limits) {
  must_not_be_own_thread();
  close();
  if (!join(limits)) return stop();
  end_threads();
  return {};
}

// ---- looking

thread_pool_stats thread_pool::stats() const {
  const auto in = intake_.stats();
  const std::lock_guard hold(mutex_);
  auto now = past_;
  now.threads = threads();
  now.threads_limit = limit();
  now.queued = queued();
  now.dropped = in.dropped;
  now.run_by_caller = run_by_caller_.load(relaxed);
  // Those that a caller ran were turned away by the queue first.
  now.rejected = in.rejected - std::min(in.rejected, now.run_by_caller);
  now.completed += now.run_by_caller;
  now.failed = failures();
  for (const auto& each : workers_) {
    if (each == nullptr) continue;
    now.completed += each->completed.load(relaxed);
    now.posts += each->posts.load(relaxed);
    now.active += each->busy.load(acquire) ? 1U : 0U;  // acquire: pairs with `next`
  }
  return now;
}

}  // namespace sluice
