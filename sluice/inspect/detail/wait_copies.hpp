#pragma once

// Copies of the waits of one shard. Memory is reserved before the shard is locked: threads need
// that lock to begin and end a wait, and must not wait for an allocation.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sluice/inspect/detail/seen.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::inspect::detail {

class wait_copies {
 public:
  wait_copies() { grow(); }

  // The limit of a select's objects; those beyond are not copied.
  static constexpr std::size_t alternatives_max = 32;
  // The limit of other blocked parties. For a thread with more nested turns, the innermost count.
  static constexpr std::size_t also_blocked_max = 8;

  // Must hold the lock of the shard. Returns false if the capacity is exhausted.
  bool add(const wait_report::wait_record& w) noexcept {
    if (waits_.size() == capacity_) return false;
    const auto subjects = subjects_.size();
    const auto parties = parties_.size();
    subjects_.resize(subjects + alternatives_max);
    parties_.resize(parties + also_blocked_max);
    const auto all = w.wait_subject(subjects_.data() + subjects, alternatives_max);
    const auto on = std::min(all, alternatives_max);
    // An unknown party could be behind the objects that were not copied.
    if (all > on) subjects_[subjects].by = wait_report::served_by::unknown;
    // A wait that was served or gave up, and has not run yet, has no party and blocks none.
    const bool is_served = w.waiting().ended_by() != waiter::state::waiting;
    const auto others = is_served ? 0 : w.blocked(parties_.data() + parties, also_blocked_max);
    subjects_.resize(subjects + on);
    parties_.resize(parties + others);
    waits_.push_back({.number = w.number,
                      .by = is_served ? wait_report::party() : w.by(),
                      .since = w.since,
                      .has_deadline = !w.limits().deadline.is_never(),
                      .can_be_stopped = w.limits().stop.stop_possible(),
                      .is_served = is_served,
                      .at = w.at(),
                      .subjects = on,
                      .parties = others});
    return true;
  }

  void clear() noexcept {
    waits_.clear();
    subjects_.clear();
    parties_.clear();
  }
  // Doubles the capacity. Must not hold the lock of the shard, here and below.
  void grow() {
    capacity_ *= 2;
    waits_.reserve(capacity_);
    subjects_.reserve(capacity_ * alternatives_max);
    parties_.reserve(capacity_ * also_blocked_max);
  }
  void append_to(std::vector<seen_wait>& all) const {
    auto on = subjects_.begin();
    auto others = parties_.begin();
    for (const auto& w : waits_) {
      const auto next_on = on + static_cast<std::ptrdiff_t>(w.subjects);
      const auto next_others = others + static_cast<std::ptrdiff_t>(w.parties);
      all.push_back({.number = w.number,
                     .by = w.by,
                     .since = w.since,
                     .has_deadline = w.has_deadline,
                     .can_be_stopped = w.can_be_stopped,
                     .is_served = w.is_served,
                     .at = w.at,
                     .on = {on, next_on},
                     .also_blocked = {others, next_others}});
      on = next_on;
      others = next_others;
    }
  }

 private:
  struct copy {
    std::uint64_t number;
    wait_report::party by;
    time_point since;
    bool has_deadline;
    bool can_be_stopped;
    bool is_served;
    call_site at;
    std::size_t subjects;  // the number of its entries in subjects_
    std::size_t parties;   // the number of its entries in parties_
  };

  std::size_t capacity_ = 4;
  std::vector<copy> waits_;
  std::vector<wait_report::subject> subjects_;
  std::vector<wait_report::party> parties_;
};

}  // namespace sluice::inspect::detail
