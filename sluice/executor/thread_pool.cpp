// How a submission reaches a thread: `submit` pushes it into the intake (detail/intake.hpp), a
// bounded queue, and wakes a sleeping worker. A worker takes up to half its share of the queue as a
// batch (detail/lent_batch.hpp) and runs the batch without the queue's lock; an idle worker may
// steal back items of the batch that have not begun, so none waits behind a long function.

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

// The pool that the calling thread belongs to, even while it runs work of a strand on the pool.
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

// Fills in the processors to bind threads to. Throws if one of them is not usable.
cpu_affinity checked(cpu_affinity affinity) {
  if (affinity.kind == cpu_affinity::binding::none) return affinity;
  const auto usable = seam::usable_cpus();
  if (affinity.cpus.empty()) affinity.cpus = usable;
  for (const unsigned cpu : affinity.cpus) {
    if (std::ranges::find(usable, cpu) != usable.end()) continue;
    throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                            "sluice::thread_pool: this process may not use CPU " +
                                std::to_string(cpu));
  }
  return affinity;
}

std::function<seam::thread_times()> measure_of(const thread_pool_options& o) {
  if (!o.sizing.has_value()) return {};
  if (o.sizing->measure) return o.sizing->measure;
  return [] { return seam::this_thread_times(); };
}

// A dropped submission may have been marked when it was accepted.
std::function<void(submission&&)> without_marks(std::function<void(submission&&)>&& on_drop) {
  if (!on_drop) return {};
  return [on_drop = std::move(on_drop)](submission&& dropped) {
    dropped.clear_mark();
    on_drop(std::move(dropped));
  };
}

// How long a thread polls for work before it sleeps: some microseconds in all.
constexpr int polls_max = 12;
constexpr int pauses_between_polls = 24;

// Report at most this many threads per pool: all records of one object share one table shard, and a
// large pool would leave no capacity for other objects.
constexpr std::size_t reported_threads_max = 128;

// For wait reports: a wait for the end of the pool is a wait for the end of this thread.
void report_end_holder(const event& ended, wait_report::party holder) noexcept {
  wait_report::took({.object = &ended,
               .type = "sluice::thread_pool",
               .mode = wait_report::held_as::running,
               .by = holder,
               .at = std::source_location(),
               .waited = false});
}

// For wait reports: queued work is run by this thread or one of the other `threads`.
void report_crew(const executor& pool, std::size_t threads) noexcept {
  wait_report::took({.object = &pool,
               .type = "sluice::thread_pool",
               .mode = wait_report::held_as::crew,
               .by = wait_report::party::this_thread(),
               .count = static_cast<std::int64_t>(threads),
               .waited = false});
}

// Increments a counter that only the calling thread writes.
void increment(atomic<std::uint64_t>& counter) noexcept {
  counter.store(counter.load(relaxed) + 1, relaxed);
}

}  // namespace

// On its own cache lines: its thread writes the counts after every function.
struct alignas(64) thread_pool::worker {
  explicit worker(std::size_t n) noexcept : number(n) {}

  const std::size_t number;  // from 1
  seam::thread handle;       // protected by the pool's mutex
  atomic<std::uint64_t> party{0};  // its thread's id in wait reports; 0: not started

  alignas(64) atomic<std::uint64_t> completed{0};
  atomic<std::uint64_t> posts{0};
  atomic<bool> busy{false};

  // Used by its own thread only.
  detail::lent_batch batch;        // the submissions to run next
  bool counted_idle = true;        // `start_one` has counted it as idle
  std::size_t until_measured = 0;  // functions to run before the next measured one
};

// ---- construction

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
  const char* const expected = o.problem();
  check_named(expected == nullptr, "sluice::thread_pool", o.name.c_str(), expected);
  intake_.time_one_in(o.time_every, clock_of(o));
  if (!o.name.empty()) wait_report::set_name(&ended_, o.name);
  if (o.sizing.has_value()) {
    meter_.emplace(*o.sizing, core_, max_);
    limit_.store(meter_->threads(), relaxed);  // no other thread exists yet
  }
  try {
    const std::lock_guard hold(mutex_);
    while (threads() < core_) start_one();
  } catch (...) {
    if (threads() > 0) drain();
    throw;
  }
}

const char* thread_pool_options::problem() const noexcept {
  if (core < 1) return "at least one thread (core)";
  if (max.value_or(core) < core) return "max not to be below core";
  if (max.value_or(core) > thread_pool::threads_max) return "a max of at most 65536 threads";
  if (sizing.has_value() && !max.has_value()) return "a max, the upper limit of sizing";
  if (ageing < std::chrono::nanoseconds::zero()) return "an ageing that is not negative";
  return capacity > 0 ? nullptr : "a capacity of at least 1";
}

thread_pool::~thread_pool() {
  drain();
  // acquire: pairs with the release in `post`, which touches nothing after it.
  for (backoff again; posting_.load(acquire) != 0;) again.pause();
  end("sluice::thread_pool");
  wait_report::destroyed(static_cast<const executor*>(this));
}

bool thread_pool::on_own_thread() const noexcept { return this_threads_pool == this; }

void thread_pool::must_not_be_own_thread() const noexcept {
  check_named(!on_own_thread(), "sluice::thread_pool", intake_.name().c_str(),
              "not to be ended or joined by one of its own threads, which would wait for itself");
}

// ---- submitting and posting

void thread_pool::post(work& item) noexcept {
  // The item may run immediately and cause the destruction of the pool while this call is still
  // running; not on one of the pool's own threads. relaxed: the thread that destroys the pool got
  // the item, and this addition happens before the item was queued.
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
  // If all threads of the pool waited for capacity at once, none would free any.
  const bool must_not_wait = limits != nullptr && blocks_ && on_own_thread();
  if (!must_not_wait) [[likely]] return queued_executor::accept(f, limits);
  if (limits->stop.stop_requested()) return status::stopped;
  const auto now = queued_executor::accept(f, nullptr);
  return now == status::full ? run_by_caller(f) : now;
}

// ---- starting and ending threads

// Returns true if more work is queued than threads are idle, and another thread is allowed.
// A submitter adds work and then calls this; a thread that has found work decrements idle_ and then
// calls this; a leaving thread decrements threads_, then idle_, then checks for queued work. All of
// them modify idle_, so the later one sees the effects of the earlier: no work stays queued while a
// thread could be started for it.
bool thread_pool::lacks_threads() noexcept {
  const auto idle = idle_.fetch_add(0, acq_rel);  // acq_rel: pairs with every other change of idle_
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
  const auto life = [this, &me] { live(me); };  // takes mutex_ before it ends
  const auto now = threads() + 1;
  // Count it before it runs: it may find work and decrement idle_ at any moment.
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

// Returns false if the thread must stay, because there would be too few threads or because there is
// work. Returns true if it has left; it must not touch the pool after that.
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
    if (!has_retired_) at_rest_.notify_one();  // all remaining threads may be at rest
    const auto this_thread = wait_report::party::this_thread();
    if (me.number <= reported_threads_max) wait_report::gave(&ended_, this_thread);
    if (max_ == core_) wait_report::gave(static_cast<const executor*>(this), this_thread);
    past_.completed += me.completed.load(relaxed);
    past_.posts += me.posts.load(relaxed);
    before = std::exchange(last_ended_, std::move(me.handle));
    workers_[me.number - 1].reset();  // destroys `me`
  }
  if (before.joinable()) before.join();
  if (last) ended_.set();
  return true;
}

// Called by a thread that found the pool closed and empty. Waits while another thread runs a
// function, which may wait for a post that is still to be made. The pool ends when all threads are
// here. Returns false if there is work.
bool thread_pool::rest(std::unique_lock<sluice::mutex>& hold) noexcept {
  ++resting_;
  at_rest_.wait(hold,
                [&] { return has_retired_ || resting_ == threads() || intake_.pending() > 0; });
  if (!has_retired_ && resting_ == threads() && intake_.retire()) {
    has_retired_ = true;
    at_rest_.notify_all();
  }
  --resting_;
  return has_retired_;
}

// Takes mutex_ so that a thread that rests after this sees work added before it.
void thread_pool::wake_one_at_rest() noexcept {
  const std::lock_guard hold(mutex_);
  at_rest_.notify_one();
}

// ---- the loop of a thread

void thread_pool::set_up_thread(const worker& me) const noexcept {
  // A long name is cut so that the number, which identifies the thread, fits.
  std::array<char, seam::thread_name_max + 1> shown{};
  std::array<char, seam::thread_name_max> digits{'-'};
  const auto end = std::to_chars(digits.data() + 1, digits.data() + digits.size(), me.number).ptr;
  const std::string_view ending(digits.data(), static_cast<std::size_t>(end - digits.data()));
  const auto first = name().substr(0, seam::thread_name_max - ending.size());
  std::ranges::copy(ending, std::ranges::copy(first, shown.begin()).out);
  seam::name_thread(shown.data());

  // If a processor was removed since the pool was created, the thread stays unbound.
  const auto& cpus = affinity_.cpus;
  if (affinity_.kind == cpu_affinity::binding::whole_set) seam::pin_thread(cpus);
  if (affinity_.kind == cpu_affinity::binding::one_each) {
    seam::pin_thread({&cpus[(me.number - 1) % cpus.size()], 1});
  }
}

void thread_pool::live(worker& me) noexcept {
  this_threads_pool = this;
  const auto this_thread = wait_report::party::this_thread();
  me.party.store(this_thread.word(), relaxed);  // only a number: orders nothing
  if (wait_report::is_on()) [[unlikely]] {
    if (me.number <= reported_threads_max) report_end_holder(ended_, this_thread);
    if (max_ == core_) report_crew(*this, core_);  // the set of threads is final
  }
  set_up_thread(me);
  const running here(*this);
  while (auto* const f = next(me)) run(me, *f);
}

// Takes a batch from the queue without waiting and returns its first submission; null if the queue
// is empty. Idle threads may steal back the rest of the batch.
submission* thread_pool::borrow(worker& me) {
  // While another thread could be started, take one submission at a time.
  const auto threads_to_share = threads() < limit() ? intake_.capacity() : threads();
  submission* first = nullptr;
  // Other threads may steal the whole batch before this one begins it.
  while (first == nullptr && intake_.lend(me.batch, threads_to_share)) first = me.batch.next();
  return first;
}

// Returns the next submission to run, or null if the thread has left the pool. On entry a new
// thread is counted as idle, any other as busy; on a non-null return it is counted as busy.
submission* thread_pool::next(worker& me) {
  if (auto* const own = me.batch.next()) [[likely]] return own;
  if (!std::exchange(me.counted_idle, false)) {
    const bool too_many = threads() > limit();
    if (!too_many) {
      if (auto* const own = borrow(me)) return own;
    }
    if (too_many) intake_.give_up(me.batch);
    idle_.fetch_add(1, acq_rel);
    // release: pairs with the acquire in `stats`: a thread that is seen not busy is counted idle.
    me.busy.store(false, release);
    if (too_many && leave(me, exit::too_many)) return nullptr;
  }
  submission* found = nullptr;
  while (found == nullptr) {
    if (poll_for_work()) found = borrow(me);
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

// Polls for a short time, because a thread that has just run out of work is likely to get more
// soon. Pauses between polls: after each poll, a submitter must fetch the cache line back. Returns
// false if there is no work and the thread should sleep.
bool thread_pool::poll_for_work() noexcept {
  const auto has_work = [this] { return intake_.pending() > 0 || intake_.is_closed(); };
  if (seam::can_spin()) {
    intake_.start_looking();
    bool found = false;
    for (int polls = 0; polls < polls_max && !found; ++polls) {
      for (int left = pauses_between_polls; left > 0; --left) seam::pause();
      found = has_work();
    }
    intake_.stop_looking();
    if (found) return true;
  }
  for (int left = seam::yields_before_sleep; left > 0; --left) {
    seam::yield();
    if (has_work()) return true;
  }
  return false;
}

void thread_pool::run(worker& me, submission& f) noexcept {
  const auto mark = f.mark;
  if (measure_ && me.until_measured-- == 0) [[unlikely]] {
    run_measured(me, f);
  } else if (mark == submission::kind::timed) [[unlikely]] {
    run_timed(f);
  } else {
    run_submission(f);
  }
  f.run.reset();  // destroy the captures now, not when the slot is used again
  increment(mark == submission::kind::posted ? me.posts : me.completed);
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

// ---- shutdown

status thread_pool::join(const wait_limits& limits) {
  must_not_be_own_thread();
  if (wait_report::is_on()) [[unlikely]] report_end_holders();
  return ended_.wait(limits);
}

// For wait reports: a join waits for all current threads.
void thread_pool::report_end_holders() noexcept {
  const std::lock_guard hold(mutex_);
  for (const auto& each : workers_) {
    if (each == nullptr) continue;
    const auto holder = wait_report::party::from_word(each->party.load(relaxed));
    if (holder && each->number <= reported_threads_max) report_end_holder(ended_, holder);
  }
}

void thread_pool::end_threads() noexcept {
  if (wait_report::is_on()) [[unlikely]] report_end_holders();
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
  // Before the stop request: a function that stops would let its thread begin the next one.
  auto unstarted = intake_.take_back();
  for (auto& each : unstarted) each.clear_mark();
  stop_.request_stop();
  end_threads();
  return unstarted;
}

std::vector<submission> thread_pool::shutdown(const wait_limits& limits) {
  must_not_be_own_thread();
  close();
  if (!join(limits)) return stop();
  end_threads();
  return {};
}

// ---- statistics

thread_pool_stats thread_pool::stats() const {
  const auto in = intake_.stats();
  const std::lock_guard hold(mutex_);
  auto now = past_;
  now.threads = threads();
  now.threads_limit = limit();
  now.queued = queued();
  now.dropped = in.dropped;
  now.run_by_caller = run_by_caller_.load(relaxed);
  // The queue rejected the submissions that their callers then ran.
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
