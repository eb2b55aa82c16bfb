#pragma once

// Marks this thread as in the turn of a cell, and around that perhaps of another one: of the parent
// that spawns it, or of one whose handler runs other work while it joins a fork.
//
// It also knows what that turn owes to senders that wait for room. Each message that is begun makes
// room for one of them, but to let them in one by one costs a lock, a wake and a turn each. So it
// lets them in when a sixteenth of the mailbox is free, and until then owes it to them. Somebody
// who waits can be the very one that the handler waits for: so what is owed is paid
//   - when a sixteenth is free, or sooner if the messages take long (at the next that is begun);
//   - before the turn ends, however that is: also when a coroutine that keeps the floor suspends;
//   - before this thread falls asleep in a wait of the library, whatever it waits for, and before
//     it does other work in a join.
// Nothing is owed from one turn to the next, and nothing by a mailbox for less than 32.
//
// And for whoever watches (sluice::inspect): what this thread does in the turn, it does for the
// actor.

#include <chrono>
#include <cstdint>

#include "sluice/base/clock.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

class cell;

class in_turn final : public sleep_observer {
 public:
  explicit in_turn(cell& c) noexcept;
  in_turn(const in_turn&) = delete;
  in_turn& operator=(const in_turn&) = delete;
  ~in_turn();

  // A message was begun, the so-manieth that counts, and senders wait. `step`: that many are let in
  // at a time.
  void room_for_one(std::uint32_t begun, std::uint32_t step) noexcept;

  void falls_asleep() noexcept override;
  void woke_up() noexcept override;
  void helps_out() noexcept override;
  watch::party acts_for() const noexcept override;
  const sleep_observer* around() const noexcept override { return before_; }

  cell& of;
  in_turn* const outer;

 private:
  static constexpr std::chrono::microseconds long_wait{50};

  bool owes_ = false;
  std::uint32_t full_at_ = 0;  // if it owes: what was begun when there was no room
  time_point since_;
  sleep_observer* const before_;
};

}  // namespace sluice::detail
