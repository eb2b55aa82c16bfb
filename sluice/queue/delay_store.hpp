#pragma once

// The earliest first, and none before its time: the store of delay_queue. See exchange.hpp for what
// a store is. Not thread-safe: the exchange guards it.
//
// It keeps at most one timer armed, for the front item, from when somebody waits for it. When
// the timer fires, the exchange looks again.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/queue/detail/slot_heap.hpp"
#include "sluice/sync/backoff.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice {

// An item and the time before which nobody gets it.
template <class T>
struct delayed {
  T item;
  time_point at{};
};

namespace detail {

// A timer whose owner may be destroyed at any moment, also on the clock's own thread when the clock
// has decided to fire it and not come to it yet: so it lives on its own, and ends itself if it is
// left behind.
class delay_alarm final : public timer {
 public:
  using look_again = std::function<void(wake_batch&)>;

  explicit delay_alarm(look_again due) : due_(std::move(due)) {}

  bool claim() noexcept override {
    const std::lock_guard hold(guard_);
    coming_ = !orphaned_;
    return coming_;
  }
  void fire() noexcept override {
    wake_batch wakes;  // woken last: what they do may be the end of the queue
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
  ~delay_alarm() = default;

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

}  // namespace detail

template <class T>
class delay_store {
 public:
  // `due` makes the exchange look again. The clock outlives the store.
  delay_store(std::size_t capacity, clock& time, detail::delay_alarm::look_again due)
      : clock_(time),
        pool_(capacity),
        earliest_(capacity, earlier{&pool_}),
        alarm_(new detail::delay_alarm(std::move(due))),
        to_leave_(alarm_) {}
  delay_store(const delay_store&) = delete;
  delay_store& operator=(const delay_store&) = delete;
  ~delay_store() { quiet(); }

  bool empty() const noexcept { return pool_.empty(); }
  bool ready() noexcept {
    if (pool_.empty()) return was_ready_ = false;
    const auto front = pool_.key(earliest_.top()).at;
    if (front > seen_) seen_ = clock_.now();  // time that has come does not go away
    return was_ready_ = front <= seen_;
  }

  void put(delayed<T>& item, std::size_t weight) {
    earliest_.add(pool_.add(item, key{item.at, ++arrivals_}, weight));
  }
  template <class Sink>
  std::size_t take(Sink&& sink) {
    check(!pool_.empty(), "sluice::delay_store", "an item to take");
    return give(earliest_.top(), sink);
  }
  template <class Sink>
  std::size_t evict_oldest(Sink&& sink) {
    check(!pool_.empty(), "sluice::delay_store", "an item to evict");
    return give(pool_.oldest(), sink);
  }
  template <class Sink>
  std::size_t evict_latest(Sink&& sink) {
    check(!pool_.empty(), "sluice::delay_store", "an item to evict");
    return give(pool_.newest(), sink);
  }

  // True: the front item's time came after `ready` was last asked.
  bool settle(bool waited_for) {
    if (!waited_for || pool_.empty()) {
      disarm();
      return false;
    }
    if (was_ready_) return false;  // somebody is on the way to take it
    const auto front = pool_.key(earliest_.top()).at;
    if (armed_for_ == front) return false;
    disarm();
    if (alarm_->is_coming()) return false;  // the exchange will look again, and settle again
    if (!clock_.arm(*alarm_, front)) return true;
    armed_for_ = front;
    return false;
  }

  // No timer runs or will run after this. Before the exchange is destroyed, and without its lock.
  void quiet() noexcept {
    // Not under the lock: touches nothing that a timer which is firing now may use.
    if (auto* const alarm = std::exchange(to_leave_, nullptr)) alarm->leave(clock_);
  }

 private:
  struct key {
    time_point at{};
    std::uint64_t arrival = 0;
  };
  using pool = detail::slot_pool<delayed<T>, key>;
  struct earlier {
    const pool* items;
    bool operator()(detail::slot_number a, detail::slot_number b) const noexcept {
      const key& x = items->key(a);
      const key& y = items->key(b);
      return x.at != y.at ? x.at < y.at : x.arrival < y.arrival;
    }
  };

  template <class Sink>
  std::size_t give(detail::slot_number slot, Sink& sink) {
    sink(std::move(pool_.item(slot)));  // if it throws, nothing has changed
    const auto weight = pool_.weight(slot);
    earliest_.remove(slot);
    pool_.remove(slot);
    return weight;
  }
  void disarm() noexcept {
    if (!armed_for_.has_value()) return;
    clock_.disarm(*alarm_);
    armed_for_.reset();
  }

  clock& clock_;
  std::uint64_t arrivals_ = 0;
  pool pool_;
  detail::slot_heap<earlier> earliest_;
  time_point seen_ = time_point::min();  // the latest that the clock has shown
  bool was_ready_ = false;               // what `ready` said last
  detail::delay_alarm* const alarm_;
  detail::delay_alarm* to_leave_;  // the same, until it was left; not touched under the lock
  std::optional<time_point> armed_for_;
};

}  // namespace sluice
