#pragma once

// Marks this thread as in the turn of a cell. Turns nest: a turn can be inside that of the parent
// that spawns the actor, or of an actor whose handler runs other work while it joins a fork.
//
// It also admits the senders that wait for capacity. Each bounded message that begins frees a slot,
// but admitting senders one by one costs a lock, a wake and a turn each. So a turn admits them when
// a sixteenth of the mailbox is free, and owes them the slots until then. The handler may itself
// wait for one of those senders, so the slots are granted
//   - when a sixteenth is free; if messages take long, at the next message that begins;
//   - before the turn ends, also when a coroutine with the exclusive turn suspends;
//   - before this thread sleeps in any wait of the library, and before it runs other work in a
//   join.
// Nothing is owed from one turn to the next, nor by a mailbox with a capacity below 32.
//
// In wait reports (sluice::inspect) this thread acts for the actor during the turn.

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

  // Called when bounded message number `begun` has started while senders wait. Admits them in
  // groups of `step`.
  void add_free_slot(std::uint32_t begun, std::uint32_t step) noexcept;

  void falls_asleep() noexcept override;
  void woke_up() noexcept override;
  void helps_out() noexcept override;
  wait_report::party acts_for() const noexcept override;
  const sleep_observer* around() const noexcept override { return before_; }

  cell& owner;
  in_turn* const outer;

 private:
  static constexpr std::chrono::microseconds long_wait{50};

  bool owes_slots_ = false;
  std::uint32_t begun_when_full_ = 0;  // if owes_slots_: begun when the mailbox was full
  time_point since_;
  sleep_observer* const before_;
};

}  // namespace sluice::detail
