#pragma once

// One wait for room in a mailbox, as wait.hpp wants it.

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/told_wait.hpp"

namespace sluice::detail {

class room_wait {
 public:
  room_wait(cell& to, envelope& letter) noexcept : to_(to), letter_(letter) {}

  bool ready() const noexcept;
  bool attempt() noexcept;
  enlisted enlist(waiter& who) noexcept;
  bool woken() const noexcept { return true; }
  void retract() noexcept;
  spin_budget& spin() noexcept { return spin_; }
  watch::subject about() const noexcept {
    return {.object = &to_,
            .type = "sluice::actor",
            .wants = "send to",
            .by = watch::served_by::one,
            .capacity = to_.capacity_,
            .whom = to_.as_party(),
            .how = "takes from its mailbox"};
  }
  status::code result(status ended) const noexcept {
    return ended ? place_.how : static_cast<status::code>(ended);
  }

 protected:
  cell& to_;

 private:
  bool settle(const cell::offered& o) noexcept;

  envelope& letter_;
  room_node place_;
  std::uint32_t begun_before_ = 0;
  spin_budget spin_;
};

// The same for a coroutine: the observer hears of it.
class told_room_wait final : public room_wait {
 public:
  using room_wait::room_wait;

  enlisted enlist(waiter& who) noexcept {
    told_.begin(to_, actor_wait::room);
    return room_wait::enlist(who);
  }
  status::code result(status ended) noexcept {
    told_.end();
    return room_wait::result(ended);
  }

 private:
  told_wait told_;
};

}  // namespace sluice::detail
