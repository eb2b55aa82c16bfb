#pragma once

// The earliest first, and none before its time: the store of delay_queue. See exchange.hpp for what
// a store is. Not thread-safe: the exchange guards it.
//
// It keeps at most one timer armed, for the front item, from when somebody waits for it. When
// the timer fires, the exchange looks again.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/queue/detail/slot_heap.hpp"
#include "sluice/sync/wake_timer.hpp"

namespace sluice {

// An item and the time before which nobody gets it.
template <class T>
struct delayed {
  T item;
  time_point at{};
};

template <class T>
class delay_store {
 public:
  // `due` makes the exchange look again. The clock outlives the store.
  delay_store(std::size_t capacity, clock& time, wake_timer::look_again due)
      : clock_(time),
        pool_(capacity),
        earliest_(capacity, earlier{&pool_}),
        alarm_(new wake_timer(std::move(due))),
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

  // On another clock than the store's, a deadline has no place among the times of the items.
  bool due_by(const deadline& until) const noexcept {
    const clock& on = until.on() != nullptr ? *until.on() : real_clock();
    return &on == &clock_ && !pool_.empty() && pool_.key(earliest_.top()).at <= until.when();
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
  wake_timer* const alarm_;
  wake_timer* to_leave_;  // the same, until it was left; not touched under the lock
  std::optional<time_point> armed_for_;
};

}  // namespace sluice
