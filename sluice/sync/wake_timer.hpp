#pragma once

// The timer of something that others wait in: at its time the owner looks again, and wakes whom it
// can serve.
//
// Its owner may be destroyed at any moment, also by a coroutine that this very timer resumed, and
// also when the clock has decided to fire it and has not come to it yet. So it lives on its own,
// and ends itself if it is left behind.
//
// Guarantees: `due` runs without a lock, on the clock's thread, and never after `leave` returned.
// Those that `due` claims are woken when it no longer touches the owner. Arm it on one clock, under
// the owner's lock, and not while `is_coming()`: the owner is about to look again anyway.
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

namespace sluice {

class wake_timer final : public timer {
 public:
  using look_again = std::function<void(wake_batch&)>;

  explicit wake_timer(look_again due) : due_(std::move(due)) {}

  bool claim() noexcept override {
    const std::lock_guard hold(guard_);
    coming_ = !orphaned_;
    return coming_;
  }
  void fire() noexcept override {
    wake_batch wakes;  // woken last: what they do may be the end of the owner
    if (begin()) {
      due_(wakes);
      const std::lock_guard hold(guard_);
      running_ = false;  // the last touch: the owner may be waiting for it
    } else {
      delete this;
    }
  }

  // The clock has decided to fire it, and it has not begun: it must not be armed again before.
  bool is_coming() const noexcept {
    const std::lock_guard hold(guard_);
    return coming_;
  }

  // The owner's last call. Waits for a `due` that is running.
  void leave(clock& armed_on) noexcept {
    if (orphan()) return;  // the clock will come to it
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
  // True: it is coming. False: it never will.
  bool orphan() noexcept {
    for (backoff again;; again.pause()) {
      const std::lock_guard hold(guard_);
      if (running_) continue;
      orphaned_ = true;
      return coming_;
    }
  }

  const look_again due_;
  mutable spin_lock guard_;
  // Protected by guard_.
  bool coming_ = false;    // claimed by the clock, not begun
  bool running_ = false;   // `due` is using the owner
  bool orphaned_ = false;  // the owner is gone
};

}  // namespace sluice
