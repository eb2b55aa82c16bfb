#include "sluice/actor/detail/in_turn.hpp"

#include <bit>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::detail {

void in_turn::room_for_one(std::uint32_t begun, std::uint32_t step) noexcept {
  if (step > 1) {
    if (!owes_) {
      owes_ = true;
      full_at_ = begun - 1;
      since_ = seam::now();
      return;
    }
    const std::uint32_t free = begun - full_at_;
    // A look at the clock costs as much as a small message: one now and then is enough.
    if (free < step && (!std::has_single_bit(free) || seam::now() - since_ < long_wait)) return;
    owes_ = false;
  }
  of.let_in();
}

void in_turn::falls_asleep() noexcept {
  of.let_in();
  if (before_ != nullptr) before_->falls_asleep();
}

void in_turn::woke_up() noexcept {
  if (before_ != nullptr) before_->woke_up();
}

watch::party in_turn::acts_for() const noexcept {
  return of.acting_party();
}

void in_turn::helps_out() noexcept {
  of.let_in();
  if (before_ != nullptr) before_->helps_out();
}

}  // namespace sluice::detail
