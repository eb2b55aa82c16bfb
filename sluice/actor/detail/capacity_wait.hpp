#pragma once

// The wait for capacity in a mailbox: an operation for wait.hpp.

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/reported_wait.hpp"

namespace sluice::detail {

class capacity_wait {
 public:
  capacity_wait(cell& receiver, envelope& letter) noexcept : receiver_(receiver), letter_(letter) {}

  bool ready() const noexcept;
  bool attempt() noexcept;
  enlisted enlist(waiter& waiting) noexcept;
  bool woken() const noexcept { return true; }
  void retract() noexcept;
  spin_budget& spin() noexcept { return spin_; }
  wait_report::subject wait_subject() const noexcept {
    return {.object = &receiver_,
            .type = "sluice::actor",
            .wants = "send to",
            .by = wait_report::served_by::one,
            .capacity = receiver_.capacity_,
            .target = receiver_.as_party(),
            .activity = "takes from its mailbox"};
  }
  status::code result(status ended) const noexcept {
    return ended ? place_.result : static_cast<status::code>(ended);
  }

 protected:
  cell& receiver_;

 private:
  bool finish(const cell::offered& o) noexcept;

  envelope& letter_;
  sender_node place_;
  std::uint32_t begun_before_ = 0;
  spin_budget spin_;
};

// The wait of a coroutine, which is reported to the observer.
class reported_capacity_wait final : public capacity_wait {
 public:
  using capacity_wait::capacity_wait;

  enlisted enlist(waiter& waiting) noexcept {
    report_.begin(receiver_, actor_wait::capacity);
    return capacity_wait::enlist(waiting);
  }
  status::code result(status ended) noexcept {
    report_.end();
    return capacity_wait::result(ended);
  }

 private:
  reported_wait report_;
};

}  // namespace sluice::detail
