#pragma once

// Reports to the actor_observer which actor waits for which: for capacity of a mailbox, or for an
// answer.

#include <cstdint>
#include <memory>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::detail {

class cell;

// A wait for another actor. Reported, if there is an observer and an actor waits, before another
// thread can end it, and once at its end.
class reported_wait {
 public:
  void begin(const cell& target, actor_wait kind) noexcept;
  // Called when it waits for another actor instead.
  void move_to(const cell& target) noexcept;
  void end() noexcept;
  bool has_begun() const noexcept { return observer_ != nullptr; }

 private:
  actor_observer* observer_ = nullptr;
  actor_id waiter_ = 0;
  actor_id target_ = 0;
  std::uint64_t number_ = 0;
  actor_wait kind_ = actor_wait::capacity;
};

// A wait for an answer. The asker ends it; until then it follows the request, to the member of a
// group that has it and to the actors it is forwarded to. Any thread.
class reported_ask {
 public:
  // Null: there is no observer, or the caller is no actor.
  static std::shared_ptr<reported_ask> of(const cell& asked);
  void move_to(const cell& asked) noexcept;
  void end() noexcept;

 private:
  mutex lock_;
  reported_wait wait_;  // protected by lock_; not begun once it has ended
};
using reported_ask_ptr = std::shared_ptr<reported_ask>;

}  // namespace sluice::detail
