#pragma once

// One wait for room in a mailbox, as wait.hpp wants it.

#include "sluice/actor/detail/cell.hpp"

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
  status::code result(status ended) const noexcept {
    return ended ? place_.how : static_cast<status::code>(ended);
  }

 private:
  bool settle(const cell::offered& o) noexcept;

  cell& to_;
  envelope& letter_;
  room_node place_;
  std::uint32_t begun_before_ = 0;
  spin_budget spin_;
};

}  // namespace sluice::detail
