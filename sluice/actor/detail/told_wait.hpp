#pragma once

#include "sluice/actor/actor_observer.hpp"

namespace sluice::detail {

class cell;

// Tells the observer, if there is one and an actor waits, of a wait for another actor: of its
// beginning before anybody can end it, and once of its end. Copies tell of the same wait.
class told_wait {
 public:
  void begin(const cell& for_whom, actor_wait what) noexcept;
  void end() noexcept;
  bool has_begun() const noexcept { return tell_ != nullptr; }

 private:
  actor_observer* tell_ = nullptr;
  actor_id who_ = 0;
  actor_id for_whom_ = 0;
  std::uint64_t number_ = 0;
  actor_wait what_ = actor_wait::room;
};

}  // namespace sluice::detail
