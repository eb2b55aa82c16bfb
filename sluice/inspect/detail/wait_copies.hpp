#pragma once

// Copies of the waits of one shard, into room that is there before the shard is locked: whoever
// waits or goes on needs that lock, and must not wait for memory meanwhile.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sluice/inspect/detail/seen.hpp"
#include "sluice/sync/waiter.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::inspect::detail {

class wait_copies {
 public:
  wait_copies() { make_room(); }

  // A select of more than these is known by the first.
  static constexpr std::size_t alternatives_max = 32;
  // A thread that is in more turns at once, one inside the other, is known to be in the innermost.
  static constexpr std::size_t held_up_max = 8;

  // With the shard locked. False: there is no room for it.
  bool add(const watch::wait_record& w) noexcept {
    if (waits_.size() == room_) return false;
    const auto subjects = subjects_.size();
    const auto parties = parties_.size();
    subjects_.resize(subjects + alternatives_max);
    parties_.resize(parties + held_up_max);
    const auto all = w.about(subjects_.data() + subjects, alternatives_max);
    const auto on = std::min(all, alternatives_max);
    // Anybody could be behind those that are left out.
    if (all > on) subjects_[subjects].by = watch::served_by::unknown;
    // Of one that was served, or has given up, and only has not run yet, that is all.
    const bool is_served = w.who().ended_by() != waiter::state::waiting;
    const auto others = is_served ? 0 : w.held_up(parties_.data() + parties, held_up_max);
    subjects_.resize(subjects + on);
    parties_.resize(parties + others);
    waits_.push_back({.number = w.number,
                      .by = is_served ? watch::party() : w.by(),
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
  // Without the shard locked, from here on.
  void make_room() {
    room_ *= 2;
    waits_.reserve(room_);
    subjects_.reserve(room_ * alternatives_max);
    parties_.reserve(room_ * held_up_max);
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
                     .holds_up = {others, next_others}});
      on = next_on;
      others = next_others;
    }
  }

 private:
  struct copy {
    std::uint64_t number;
    watch::party by;
    time_point since;
    bool has_deadline;
    bool can_be_stopped;
    bool is_served;
    call_site at;
    std::size_t subjects;  // so many of them are its own
    std::size_t parties;   // the same
  };

  std::size_t room_ = 4;
  std::vector<copy> waits_;
  std::vector<watch::subject> subjects_;
  std::vector<watch::party> parties_;
};

}  // namespace sluice::inspect::detail
