#include "sluice/actor/detail/in_turn.hpp"

#include <bit>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::detail {

void in_turn::add_free_slot(std::uint32_t begun, std::uint32_t step) noexcept {
  if (step > 1) {
    if (!owes_slots_) {
      owes_slots_ = true;
      begun_when_full_ = begun - 1;
      since_ = seam::now();
      return;
    }
    const std::uint32_t free = begun - begun_when_full_;
    // Reading the clock costs as much as a small message: read it only at powers of two.
    if (free < step && (!std::has_single_bit(free) || seam::now() - since_ < long_wait)) return;
    owes_slots_ = false;
  }
  owner.admit_senders();
}

void in_turn::falls_asleep() noexcept {
  owner.admit_senders();
  if (before_ != nullptr) before_->falls_asleep();
}

void in_turn::woke_up() noexcept {
  if (before_ != nullptr) before_->woke_up();
}

wait_report::party in_turn::acts_for() const noexcept {
  return owner.acting_party();
}

void in_turn::helps_out() noexcept {
  owner.admit_senders();
  if (before_ != nullptr) before_->helps_out();
}

}  // namespace sluice::detail
