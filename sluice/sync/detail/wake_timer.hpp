#pragma once

// The timer of an object with waiters: at its time the owner checks again, and wakes the waiters
// it can serve.
//
// The owner may be destroyed at any moment, also by a coroutine that this timer resumed, and also
// after the clock has decided to fire it and before it runs. So the timer is allocated on its own,
// and deletes itself if its owner is destroyed first.
//
// Guarantees: `due` runs without a lock, on the clock's thread, and never after `leave` returned.
// The waiters that `due` claims are woken when it no longer accesses the owner. Arm it on one
// clock, under the owner's lock, and not while `is_coming()`: the owner is about to check anyway.
//
//     owner() : alarm_(new wake_timer([this](wake_batch& wakes) { serve(wakes); })) {}
//     ~owner() { alarm_->leave(clock_); }

#include <functional>
#include <mutex>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/sync/backoff.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

class wake_timer final : public timer {
 public:
  using check_again = std::function<void(wake_batch&)>;

  explicit wake_timer(check_again due) : due_(std::move(due)) {}

  bool claim() noexcept override {
    const std::lock_guard hold(guard_);
    coming_ = !orphaned_;
    return coming_;
  }
  void fire() noexcept override {
    wake_batch wakes;  // woken last: a woken waiter may destroy the owner
    if (begin()) {
      due_(wakes);
      const std::lock_guard hold(guard_);
      running_ = false;  // the last access: the owner may be waiting for it
    } else {
      delete this;
    }
  }

  // The clock has decided to fire it, and it has not begun: it must not be armed again before then.
  bool is_coming() const noexcept {
    const std::lock_guard hold(guard_);
    return coming_;
  }

  // The owner's last call. Waits for a `due` that is running.
  void leave(clock& armed_on) noexcept {
    if (orphan()) return;  // the clock will fire it
    armed_on.disarm(*this);
    delete this;
  }

 private:
  ~wake_timer() = default;

  bool begin() noexcept {
    const std::lock_guard hold(guard_);
    coming_ = false;
    running_ = !orphaned_;
    return running_;
  }
  // Returns true if it will still be fired.
  bool orphan() noexcept {
    for (backoff again;; again.pause()) {
      const std::lock_guard hold(guard_);
      if (running_) continue;
      orphaned_ = true;
      return coming_;
    }
  }

  const check_again due_;
  mutable spin_lock guard_;
  // Protected by guard_.
  bool coming_ = false;    // claimed by the clock, not begun
  bool running_ = false;   // `due` is using the owner
  bool orphaned_ = false;  // the owner is destroyed
};

}  // namespace sluice::detail
