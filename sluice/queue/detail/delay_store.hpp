#pragma once

// The store of delay_queue (queue_store in queue_core.hpp): the earliest item first, and none
// before its time. Not thread-safe: the queue core guards it.
//
// While a consumer waits, one timer is armed for the front item. When it fires, the queue core
// serves its waiters again.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/queue/delayed.hpp"
#include "sluice/queue/detail/slot_heap.hpp"
#include "sluice/sync/detail/wake_timer.hpp"

namespace sluice::detail {

template <class T>
class delay_store {
 public:
  // `due` makes the queue core serve its waiters. The clock must outlive the store.
  delay_store(std::size_t capacity, clock& time, wake_timer::check_again due)
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
    if (front > seen_) seen_ = clock_.now();  // a time once reached stays reached
    return was_ready_ = front <= seen_;
  }

  // Returns false for a deadline on a clock other than the store's: the two cannot be compared.
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
  std::size_t evict_newest(Sink&& sink) {
    check(!pool_.empty(), "sluice::delay_store", "an item to evict");
    return give(pool_.newest(), sink);
  }

  // Returns true if the front item became due after the last call of `ready`.
  bool settle(bool waited_for) {
    if (!waited_for || pool_.empty()) {
      disarm();
      return false;
    }
    if (was_ready_) return false;  // a woken consumer is about to take it
    const auto front = pool_.key(earliest_.top()).at;
    if (armed_for_ == front) return false;
    disarm();
    if (alarm_->is_coming()) return false;  // the queue core will call settle again
    if (!clock_.arm(*alarm_, front)) return true;
    armed_for_ = front;
    return false;
  }

  // Disarms the timer for good; when it returns, none runs. Called before the queue core is
  // destroyed, without its lock.
  void quiet() noexcept {
    // Without the lock, so it must not access members that a firing timer may use.
    if (auto* const alarm = std::exchange(to_leave_, nullptr)) alarm->leave(clock_);
  }

 private:
  struct key {
    time_point at{};
    std::uint64_t arrival = 0;
  };
  using pool = slot_pool<delayed<T>, key>;
  struct earlier {
    const pool* items;
    bool operator()(slot_number a, slot_number b) const noexcept {
      const key& x = items->key(a);
      const key& y = items->key(b);
      return x.at != y.at ? x.at < y.at : x.arrival < y.arrival;
    }
  };

  template <class Sink>
  std::size_t give(slot_number slot, Sink& sink) {
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
  slot_heap<earlier> earliest_;
  time_point seen_ = time_point::min();  // the latest time read from the clock
  bool was_ready_ = false;               // the last result of `ready`
  wake_timer* const alarm_;
  wake_timer* to_leave_;  // the same until quiet(); not used under the lock
  std::optional<time_point> armed_for_;
};

}  // namespace sluice::detail
