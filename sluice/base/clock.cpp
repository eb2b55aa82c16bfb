#include "sluice/base/clock.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/detail/run_local.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/work.hpp"

namespace sluice {

bool timer_heap::before(const timer& a, const timer& b) noexcept {
  return a.when_ != b.when_ ? a.when_ < b.when_ : a.order_ < b.order_;
}

void timer_heap::place(timer& t, std::size_t at) noexcept {
  heap_[at] = &t;
  t.place_ = at;
}

void timer_heap::rise(std::size_t at) noexcept {
  timer& t = *heap_[at];
  while (at > 0) {
    const auto parent = (at - 1) / 4;
    if (!before(t, *heap_[parent])) break;
    place(*heap_[parent], at);
    at = parent;
  }
  place(t, at);
}

void timer_heap::sink(std::size_t at) noexcept {
  timer& t = *heap_[at];
  for (;;) {
    const auto first = at * 4 + 1;
    if (first >= heap_.size()) break;
    auto least = first;
    for (auto child = first + 1; child < heap_.size() && child < first + 4; ++child) {
      if (before(*heap_[child], *heap_[least])) least = child;
    }
    if (!before(*heap_[least], t)) break;
    place(*heap_[least], at);
    at = least;
  }
  place(t, at);
}

void timer_heap::add(timer& t, time_point when) {
  check(t.place_ == timer::nowhere, "sluice::timer", "to be armed once at a time");
  heap_.push_back(&t);
  t.when_ = when;
  t.order_ = ++armed_;
  rise(heap_.size() - 1);
}

bool timer_heap::remove(timer& t) noexcept {
  if (t.place_ == timer::nowhere) return false;
  const auto at = t.place_;
  check(at < heap_.size() && heap_[at] == &t, "sluice::timer", "to be disarmed on its own clock");
  t.place_ = timer::nowhere;
  timer& last = *heap_.back();
  heap_.pop_back();
  if (&last != &t) {
    place(last, at);
    rise(at);
    sink(last.place_);
  }
  return true;
}

timer* timer_heap::claim_due(time_point now) noexcept {
  timer* first = nullptr;
  timer** end = &first;
  while (!heap_.empty() && heap_.front()->when_ <= now) {
    timer& due = *heap_.front();
    remove(due);
    if (!due.claim()) continue;
    due.next_due_ = nullptr;
    *end = &due;
    end = &due.next_due_;
  }
  return first;
}

void timer_heap::fire_all(timer* chain) noexcept {
  const run_scope coroutines_last;  // a resumed coroutine must not delay the next timer
  while (chain != nullptr) {
    timer* const due = chain;
    chain = due->next_due_;  // before firing, which may destroy the timer
    due->fire();
  }
}

namespace {

class steady final : public clock {
 public:
  time_point now() const noexcept override { return seam::now(); }

  bool arm(timer& t, time_point when) override {
    if (when <= seam::now()) return false;
    const std::lock_guard hold(mutex_);
    if (parker_ == nullptr) start();  // may throw: then nothing is armed
    timers_.add(t, when);
    if (timers_.earliest() == when) parker_->unpark();
    return true;
  }

  bool disarm(timer& t) noexcept override {
    const std::lock_guard hold(mutex_);
    return timers_.remove(t);
  }

 private:
  // Must hold mutex_: the new thread locks it before it reads parker_.
  void start() {
    auto parker = std::make_unique<seam::parker>();
    seam::run_forever([](void* self) { static_cast<steady*>(self)->run(); }, this);
    parker_ = std::move(parker);
  }

  void run() noexcept {
    for (;;) {
      time_point next{};
      // After firing, which takes time, more timers may be due: checks again before it sleeps.
      if (!fire_due(next)) parker_->park_until(next);
    }
  }

  // Fires all due timers, deadline by deadline, as a manual clock does: an earlier timer may end a
  // wait that a later timer limits, and must do so before the later one claims. Returns whether any
  // was due, and in `next` the earliest deadline.
  bool fire_due(time_point& next) noexcept {
    const run_scope coroutines_last;
    const time_point now = seam::now();
    for (bool has_fired = false;; has_fired = true) {
      timer* due = nullptr;
      {
        const std::lock_guard hold(mutex_);
        next = timers_.empty() ? time_point::max() : timers_.earliest();
        if (next > now) return has_fired;
        due = timers_.claim_due(next);
      }
      timer_heap::fire_all(due);
    }
  }

  seam::os_mutex mutex_;
  timer_heap timers_;                     // protected by mutex_
  std::unique_ptr<seam::parker> parker_;  // of the timer thread; set once, under mutex_
};

}  // namespace

// Never destroyed: the timer thread may outlive the statics.
clock& real_clock() noexcept {
  return run_local<steady>();
}

struct manual_clock::state {
  mutable seam::os_mutex mutex;
  timer_heap timers;  // protected by mutex
  time_point now;     // protected by mutex
};

manual_clock::manual_clock(time_point start) : state_(std::make_unique<state>()) {
  state_->now = start;
}

manual_clock::~manual_clock() {
  check(state_->timers.empty(), "sluice::manual_clock", "no armed timers at its destruction");
}

time_point manual_clock::now() const noexcept {
  const std::lock_guard hold(state_->mutex);
  return state_->now;
}

bool manual_clock::arm(timer& t, time_point when) {
  const std::lock_guard hold(state_->mutex);
  if (when <= state_->now) return false;
  state_->timers.add(t, when);
  return true;
}

bool manual_clock::disarm(timer& t) noexcept {
  const std::lock_guard hold(state_->mutex);
  return state_->timers.remove(t);
}

void manual_clock::advance(std::chrono::nanoseconds by) {
  check(by.count() >= 0, "sluice::manual_clock", "time to move forwards");
  std::unique_lock hold(state_->mutex);
  const auto end = state_->now > time_point::max() - by ? time_point::max() : state_->now + by;
  while (!state_->timers.empty() && state_->timers.earliest() <= end) {
    if (state_->timers.earliest() > state_->now) state_->now = state_->timers.earliest();
    timer* const due = state_->timers.claim_due(state_->now);
    hold.unlock();
    timer_heap::fire_all(due);
    hold.lock();
  }
  if (state_->now < end) state_->now = end;
}

std::size_t manual_clock::pending() const noexcept {
  const std::lock_guard hold(state_->mutex);
  return state_->timers.size();
}

time_point manual_clock::earliest() const noexcept {
  const std::lock_guard hold(state_->mutex);
  return state_->timers.empty() ? time_point::max() : state_->timers.earliest();
}

}  // namespace sluice
