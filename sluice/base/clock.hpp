#pragma once

// Where time comes from, and who calls back when it has come: one timer service, that a test can
// replace by a clock it moves by hand.
//
// `real_clock()` is the process's steady clock, with one thread that is started by the first
// timer and sleeps until the earliest. A `manual_clock` stands still until it is advanced.
//
// Guarantees: any thread may call anything. Timers fire in deadline order, and in the order they
// were armed when deadlines are equal; never early. A timer has fired before a timer with a later
// deadline claims, so an event wins over a later deadline. A timer is called in two steps: `claim`,
// under the clock's lock, returns whether it still has to fire; `fire`, outside the lock, acts. So
// `disarm` never waits: after it returns, `claim` is not running and will not be called.
// Cost: arming and disarming are O(log n) with no allocation but the heap's growth.
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

  // Called with the clock's lock held: must only decide, and touch no clock.
  virtual bool claim() noexcept = 0;
  // Called once, without the lock, when `claim` said true. May do anything, also end the timer.
  virtual void fire() noexcept = 0;

 protected:
  ~timer() = default;

 private:
  friend class timer_heap;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

  time_point when_{};
  std::uint64_t order_ = 0;
  std::size_t place_ = nowhere;  // in the heap; also the link of a due chain while firing
  timer* next_due_ = nullptr;
};

// Timers by deadline, then by order of arming. Not thread-safe: a clock guards its own.
class timer_heap {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  time_point earliest() const noexcept { return heap_.front()->when_; }
  void add(timer& t, time_point when);
  bool remove(timer& t) noexcept;

  // Takes out every timer due at `now`, keeps those that claim, and chains them in order.
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
  // False: `when` has come already; it is not armed and will not be called.
  [[nodiscard]] virtual bool arm(timer& t, time_point when) = 0;
  // True: it was armed and will not fire. False: it has fired, is firing, or was never armed.
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

  // Moves time on and fires, on this thread, all that has become due, in order. Each timer sees
  // its own deadline as the time, so that what it arms in turn is measured from there.
  // One thread advances at a time.
  void advance(std::chrono::nanoseconds by);
  std::size_t pending() const noexcept;  // timers armed: lets a test wait until someone waits
  // When the next of them is due, or the latest time there is: lets a test stop at each of them.
  time_point earliest() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace sluice
