#include "sluice/executor/work_stealing_pool.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/base/random.hpp"
#include "sluice/base/this_thread.hpp"
#include "sluice/executor/detail/fork_wait.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/sync/named.hpp"

namespace sluice {

using detail::steal_worker;
using wait_report::party;

namespace {

// Every 61st time, a worker takes from the queue or its oldest piece first, so neither can starve.
constexpr std::uint32_t fair_turn = 61;

// The number of search rounds before a worker sleeps: some microseconds in all, less than a wake
// costs.
constexpr int search_rounds = 8;
constexpr int pauses_between_rounds = 24;

// A join deeper in the stack than this sleeps instead of running other workers' pieces: each piece
// may itself join and run other pieces.
constexpr std::uintptr_t help_stack_bytes = std::uintptr_t{1} << 20;

std::string numbered_name(std::string_view name, std::size_t number) {
  const auto ending = "-" + std::to_string(number);
  return std::string(name.substr(0, seam::thread_name_max - ending.size())) + ending;
}

[[gnu::noinline]] std::uintptr_t stack_here() noexcept {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

}  // namespace

// Work found by a worker: a piece, or a submission from outside.
class work_stealing_pool::piece {
 public:
  work* item = nullptr;
  std::optional<submission> outside{};
};

// A submission by a worker, in its deque.
class work_stealing_pool::own_submission final : public work {
 public:
  own_submission(work_stealing_pool& on, submission&& f) : on_(on), f_(std::move(f)) {}
  void run() noexcept override {
    const std::unique_ptr<own_submission> self(this);
    if (!on_.handing_back_.load(relaxed)) [[likely]] {
      on_.run_submission(f_);
    } else {
      const std::lock_guard hold(on_.handed_back_lock_);
      on_.handed_back_.push_back(std::move(f_));
    }
  }

 private:
  work_stealing_pool& on_;
  submission f_;
};

const char* work_stealing_pool_options::problem() const noexcept {
  if (threads == 0) return "at least one thread";
  if (!std::has_single_bit(deque_capacity)) return "a power of two as deque_capacity";
  return capacity > 0 ? nullptr : "a capacity of at least 1";
}

work_stealing_pool::work_stealing_pool(options o)
    : queued_executor("sluice::work_stealing_pool", {.capacity = o.capacity,
                                                     .overflow = o.overflow,
                                                     .name = std::move(o.name),
                                                     .on_drop = std::move(o.on_drop),
                                                     .on_error = std::move(o.on_error),
                                                     .users = spread::line_a_thread}),
      crew_(*this, intake_,
            {.threads = o.threads,
             .spares_max = o.spares_max,
             .deque_capacity = o.deque_capacity,
             .keep_alive = o.keep_alive,
             .make_thread = std::move(o.make_thread)}) {
  const char* const expected = o.problem();
  check_named(expected == nullptr, "sluice::work_stealing_pool", intake_.name().c_str(), expected);
  if (!intake_.name().empty()) wait_report::set_name(&crew_.ended(), intake_.name());
  try {
    crew_.start([this](steal_worker& self) { serve(self); });
  } catch (...) {
    if (crew_.count().live > 0) drain();
    throw;
  }
}

work_stealing_pool::~work_stealing_pool() {
  drain();
  // acquire: pairs with the release at the end of a post, which touches nothing after it.
  while (posting_.load(acquire) != 0) seam::yield();
  end("sluice::work_stealing_pool");
  wait_report::destroyed(static_cast<const executor*>(this));
}

// ---- submitting and posting

status work_stealing_pool::accept(submission& f, const wait_limits* limits) {
  steal_worker* const self = detail::this_steal_worker;
  if (self == nullptr || &self->pool != this) return queued_executor::accept(f, limits);
  check_named(static_cast<bool>(f), "sluice::work_stealing_pool", intake_.name().c_str(),
              "a function to run");
  if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
  if (is_closed()) return status::closed;
  if (self->deque.is_full()) [[unlikely]] {
    self->crowded.increment();
    return run_by_caller(f);
  }
  const bool pushed = self->deque.push(new own_submission(*this, std::move(f)));
  check(pushed, "sluice::work_stealing_pool",
        "a push to the worker's own deque to succeed: thieves only remove");
  crew_.work_added();
  return status::ok;
}

void work_stealing_pool::post(work& item) noexcept {
  steal_worker* const self = detail::this_steal_worker;
  if (self == nullptr || &self->pool != this) {
    post_from_outside(item);
    return;
  }
  // release: pairs with the acquire in take_next and take_stranded.
  work* const before = self->next.exchange(&item, release);
  if (before != nullptr) {
    push_own(*self, *before);
  } else {
    crew_.next_added();
  }
}

void work_stealing_pool::post_from_outside(work& item) noexcept {
  // relaxed: a thread that destroys the pool because of the item got the item, and this addition
  // happens before the item was queued.
  posting_.fetch_add(1, relaxed);
  const bool posted = intake_.post(item);
  if (posted) crew_.work_added();
  posting_.fetch_sub(1, release);
  if (!posted) run_here(item);
}

void work_stealing_pool::push_own(steal_worker& self, work& item) noexcept {
  if (!self.deque.push(&item)) {
    const bool posted = intake_.post(item);
    check(posted, "sluice::work_stealing_pool", "a pool that has not ended while its workers run");
  }
  crew_.work_added();
}

bool work_stealing_pool::fork_from_outside(work& child) noexcept {
  if (!intake_.post(child)) return false;
  crew_.work_added();
  return true;
}

// ---- a worker

void work_stealing_pool::serve(steal_worker& self) {
  const running here(*this);
  seam::name_thread(numbered_name(name(), self.number));
  detail::this_steal_worker = &self;
  observe_sleep(&self);
  self.stack_base = stack_here();
  report_crew();
  if (search(self, nullptr)) {
    for (;;) {
      if (run_one(self, first_look::outside)) continue;
      crew_.begin_search();
      if (!search(self, nullptr)) break;
    }
  }
  observe_sleep(nullptr);
  detail::this_steal_worker = nullptr;
  if (crew_.is_fixed()) wait_report::gave(static_cast<const executor*>(this), party::this_thread());
}

// For wait reports: queued work is run by this thread or one of the others.
void work_stealing_pool::report_crew() const noexcept {
  if (!crew_.is_fixed() || !wait_report::is_on()) return;
  wait_report::took({.object = static_cast<const executor*>(this),
                     .type = "sluice::work_stealing_pool",
                     .mode = wait_report::held_as::crew,
                     .by = party::this_thread(),
                     .count = static_cast<std::int64_t>(threads()),
                     .waited = false});
}

bool work_stealing_pool::find_own(steal_worker& self, piece& found) noexcept {
  if (++self.turn % fair_turn == 0) {
    if (find_outside(found)) return true;
    found.item = self.deque.steal();  // the oldest
    if (found.item != nullptr) return true;
  }
  if (self.favoured < favour_max) {
    found.item = self.take_next();
    if (found.item != nullptr) {
      ++self.favoured;
      return true;
    }
  }
  self.favoured = 0;
  found.item = self.deque.pop();
  if (found.item == nullptr && self.next.load(relaxed) != nullptr) {
    if (find_outside(found)) return true;
    found.item = self.take_next();
  }
  return found.item != nullptr;
}

bool work_stealing_pool::find_outside(piece& found) noexcept {
  if (intake_.pending() == 0) return false;
  // The pop may resume a coroutine that waited for capacity. Post it to the pool: resumed here, it
  // could wait for the submission that was just popped.
  const run_elsewhere afterwards(*this);
  auto popped = intake_.try_pop();
  if (!popped) return false;
  found.outside.emplace(std::move(*popped));
  return true;
}

bool work_stealing_pool::find_stolen(steal_worker& self, piece& found) noexcept {
  const auto count = crew_.size();
  auto at = thread_random().below(static_cast<std::uint32_t>(count));
  for (std::size_t left = count; left > 0; --left) {
    steal_worker& victim = crew_.at(at);
    at = at + 1 == count ? 0 : at + 1;
    if (&victim == &self || victim.deque.looks_empty()) continue;
    found.item = victim.deque.steal();
    if (found.item == nullptr) continue;
    self.stolen.increment();
    return true;
  }
  return false;
}

void work_stealing_pool::run(steal_worker& self, piece& found) noexcept {
  self.executed.increment();
  if (found.item != nullptr) {
    found.item->run();
  } else {
    run_submission(*found.outside);
  }
}

// A join searches the other workers first: its child is more likely to depend on their work.
bool work_stealing_pool::find_any(steal_worker& self, piece& found, first_look first) noexcept {
  return first == first_look::outside ? find_outside(found) || find_stolen(self, found)
                                      : find_stolen(self, found) || find_outside(found);
}

bool work_stealing_pool::run_one(steal_worker& self, first_look first) noexcept {
  piece found;
  if (!find_own(self, found)) {
    if (crew_.is_surplus() || !find_any(self, found, first)) return false;
  }
  run(self, found);
  return true;
}

bool work_stealing_pool::search(steal_worker& self, detail::fork_wait* join) noexcept {
  detail::fork_base* const child = join != nullptr ? &join->child : nullptr;
  const auto is_done = [](const void* joined) noexcept {
    return static_cast<const detail::fork_base*>(joined)->is_done();
  };
  const auto first = child == nullptr ? first_look::outside : first_look::others;
  // On one processor no other thread can add work while this one pauses.
  const int rounds = seam::can_spin() ? search_rounds : 1;
  const int pauses_between = seam::can_spin() ? pauses_between_rounds : 0;
  for (;;) {
    piece found;
    bool got = false;
    for (int left = rounds; left > 0 && !got; --left) {
      if (child != nullptr && child->is_done()) {
        crew_.end_search();
        return true;
      }
      if (crew_.is_surplus()) break;
      got = find_any(self, found, first);
      for (int pauses = got ? 0 : pauses_between; pauses > 0; --pauses) seam::pause();
    }
    if (!got) {
      if (child != nullptr && !child->announce_wait()) continue;
      if (join != nullptr) join->falls_asleep();
      const bool continues = crew_.rest(self, child != nullptr ? +is_done : nullptr, child);
      if (join != nullptr) join->woke_up();
      if (!continues) return false;
      found.item = std::exchange(self.rescued, nullptr);
      if (found.item == nullptr) continue;
      self.stolen.increment();
      self.rescues.increment();
    }
    crew_.end_search();
    run(self, found);
    return true;
  }
}

void work_stealing_pool::help(steal_worker& self, detail::fork_base& child, work* popped,
                              const call_site& at) noexcept {
  report_helping();
  detail::fork_wait join(child, at);
  if (popped != nullptr) {
    self.executed.increment();
    popped->run();
  }
  while (!child.is_done()) {
    if (self.stack_base - stack_here() < help_stack_bytes) {
      if (run_one(self, first_look::others)) continue;
      if (child.is_done()) return;
      self.helped.increment();
      crew_.begin_search();
      search(self, &join);
      continue;
    }
    piece own;
    if (find_own(self, own)) {
      run(self, own);
    } else if (child.announce_wait()) {
      crew_.blocks();
      join.falls_asleep();
      while (!child.is_done()) self.sleeper->park();
      join.woke_up();
      crew_.unblocks();
    }
  }
}

// Called when the function that the worker runs is about to sleep. Moves `next` to the deque, where
// other workers can steal it.
void work_stealing_pool::falls_asleep(steal_worker& self) noexcept {
  if (work* const kept = self.take_next()) push_own(self, *kept);
  crew_.blocks();
}

// ---- shutdown

void work_stealing_pool::check_outside(const char* expected) const noexcept {
  check_named(!is_worker(), "sluice::work_stealing_pool", intake_.name().c_str(), expected);
}

void work_stealing_pool::drain() {
  check_outside("to be drained by another thread than its own workers");
  close();
  crew_.report_end_holders();
  crew_.ended().wait();
  crew_.join_threads();
}

std::vector<submission> work_stealing_pool::stop() {
  check_outside("to be stopped by another thread than its own workers");
  close();
  handing_back_.store(true, relaxed);  // a worker that sees it late begins one more
  auto unstarted = intake_.take_back();
  // A worker that rested before take_back did not end the crew, because the intake was not empty;
  // check again.
  crew_.closed();
  stop_.request_stop();  // last: a function that stops would let its worker begin the next one
  drain();
  const std::lock_guard hold(handed_back_lock_);
  for (auto& f : handed_back_) unstarted.push_back(std::move(f));
  handed_back_.clear();
  return unstarted;
}

std::vector<submission> work_stealing_pool::shutdown(const wait_limits& limits) {
  check_outside("to be shut down by another thread than its own workers");
  close();
  if (!join(limits)) return stop();
  drain();
  return {};
}

status work_stealing_pool::join(const wait_limits& limits) {
  check_outside("to be joined by another thread than its own workers");
  crew_.report_end_holders();
  return crew_.ended().wait(limits);
}

work_stealing_pool::stats_type work_stealing_pool::stats() const {
  stats_type all;
  // Read before the rejections, of which it is a part.
  all.run_by_caller = run_by_caller_.load(relaxed);
  std::uint64_t found_full = 0;
  all.queued = intake_.pending();
  for (std::size_t i = 0; i < crew_.size(); ++i) {
    const steal_worker& each = crew_.at(i);
    all.executed += each.executed.get();
    all.forked += each.forked.get();
    all.stolen += each.stolen.get();
    all.rescued += each.rescues.get();
    all.helped += each.helped.get();
    all.parked += each.parked.get();
    found_full += each.crowded.get();
    all.queued += each.deque.size() + (each.next.load(relaxed) != nullptr ? 1 : 0);
  }
  const auto heads = crew_.count();
  const auto in = intake_.stats();
  found_full += in.rejected;
  all.failed = failures();
  all.rejected = found_full - std::min(found_full, all.run_by_caller);
  all.dropped = in.dropped;
  all.spares_started = heads.spares_started;
  all.start_failures = heads.start_failures;
  all.threads = heads.live;
  all.running = heads.running;
  all.blocked = heads.blocked;
  return all;
}

void detail::steal_worker::falls_asleep() noexcept {
  pool.falls_asleep(*this);
}
void detail::steal_worker::woke_up() noexcept {
  pool.woke_up();
}

}  // namespace sluice
