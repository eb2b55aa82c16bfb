#pragma once

// The source of time and of timers, which a test can replace by a clock that it advances itself.
//
// `real_clock()` is the process's steady clock. Its one thread is started by the first timer and
// sleeps until the earliest deadline. The time of a `manual_clock` changes only in `advance`.
//
// Guarantees: any thread may call any function. Timers never fire early; they fire in the order of
// their deadlines, equal deadlines in the order of arming. A timer has fired before a timer with a
// later deadline claims, so an event wins over a later deadline. A timer is called in two steps:
// `claim`, under the clock's lock, returns whether it still has to fire; `fire`, outside the lock,
// acts. So `disarm` never waits: after it returns, `claim` is not running and will not be called.
// Cost: arming and disarming are O(log n); only the growth of the heap allocates.
//
//     manual_clock clock;
//     delay_queue<mail> later({.capacity = 100, .clock = &clock});
//     clock.advance(5min);

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "sluice/base/atomic.hpp"

namespace sluice {

using time_point = std::chrono::steady_clock::time_point;

class timer {
 public:
  timer() = default;
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;

  // Called with the clock's lock held: must only decide, and must not call any clock.
  virtual bool claim() noexcept = 0;
  // Called once, without the lock, after `claim` returned true. May do anything, even destroy the
  // timer.
  virtual void fire() noexcept = 0;

 protected:
  ~timer() = default;

 private:
  friend class timer_heap;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

  time_point when_{};
  std::uint64_t order_ = 0;
  std::size_t place_ = nowhere;  // index in the heap
  timer* next_due_ = nullptr;    // in the chain of claimed timers
};

// Orders timers by deadline, then by order of arming. Not thread-safe: the clock guards its heap.
class timer_heap {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  time_point earliest() const noexcept { return heap_.front()->when_; }
  void add(timer& t, time_point when);
  bool remove(timer& t) noexcept;

  // Removes every timer due at `now`. Returns the ones whose `claim` returned true, chained in
  // order.
  timer* claim_due(time_point now) noexcept;
  static void fire_all(timer* chain) noexcept;

 private:
  static bool before(const timer& a, const timer& b) noexcept;
  void place(timer& t, std::size_t at) noexcept;
  void rise(std::size_t at) noexcept;
  void sink(std::size_t at) noexcept;

  std::vector<timer*> heap_;
  std::uint64_t armed_ = 0;
};

class clock {
 public:
  virtual time_point now() const noexcept = 0;
  // Arms the timer. Returns false if `when` is not in the future: then the timer is not armed.
  [[nodiscard]] virtual bool arm(timer& t, time_point when) = 0;
  // Returns true if the timer was armed: it will not fire. Returns false if it has fired, is firing
  // or was never armed.
  virtual bool disarm(timer& t) noexcept = 0;

 protected:
  ~clock() = default;
};

clock& real_clock() noexcept;

class manual_clock final : public clock {
 public:
  explicit manual_clock(time_point start = time_point{} + std::chrono::hours(1));
  ~manual_clock();

  time_point now() const noexcept override;
  bool arm(timer& t, time_point when) override;
  bool disarm(timer& t) noexcept override;

  // Advances the time and fires the timers that become due, in order, on the calling thread. While
  // a timer fires, `now` is its deadline: a timer that it arms is measured from there. Only one
  // thread may advance at a time.
  void advance(std::chrono::nanoseconds by);
  // The number of armed timers. A test can wait until a party waits with a deadline.
  std::size_t pending() const noexcept;
  // The earliest deadline, or time_point::max(). A test can advance from timer to timer.
  time_point earliest() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace sluice
