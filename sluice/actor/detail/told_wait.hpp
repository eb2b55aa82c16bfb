#pragma once

#include <cstdint>
#include <memory>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::detail {

class cell;

// Tells the observer, if there is one and an actor waits, of a wait for another actor: of its
// beginning before anybody can end it, and once of its end.
class told_wait {
 public:
  void begin(const cell& for_whom, actor_wait what) noexcept;
  // The same one waits for another now.
  void move_to(const cell& for_whom) noexcept;
  void end() noexcept;
  bool has_begun() const noexcept { return tell_ != nullptr; }

 private:
  actor_observer* tell_ = nullptr;
  actor_id who_ = 0;
  actor_id for_whom_ = 0;
  std::uint64_t number_ = 0;
  actor_wait what_ = actor_wait::room;
};

// A wait for an answer. Whoever asked ends it; until then it follows the request, to the member of
// a group that has it, and to those that it is handed on to. Any thread.
class told_ask {
 public:
  // Null: nobody observes, or no actor asks.
  static std::shared_ptr<told_ask> of(const cell& asked);
  void move_to(const cell& asked) noexcept;
  void end() noexcept;

 private:
  mutex lock_;
  told_wait told_;  // protected by lock_; not begun: it has ended
};
using told_ask_ptr = std::shared_ptr<told_ask>;

}  // namespace sluice::detail
