#include "sluice/sync/lazy.hpp"

#include <mutex>
#include <source_location>

#include "sluice/base/seam.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {

build_gate::~build_gate() {
  const std::lock_guard hold(guard_);  // the one that built may still be about to let go of it
  check_object(waiters_.empty(), this, "sluice::lazy", "no waiters at its destruction");
  check_object(state_.load(relaxed) != building, this, "sluice::lazy",
               "its initialiser not to be running at its destruction");
  watch::gone(this);
}

std::size_t build_gate::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

void build_gate::starting() noexcept {
  builder_.store(seam::thread_number(), relaxed);
  if (!watch::is_on()) [[likely]]
    return;
  watch::took({.object = this,
               .type = "sluice::lazy",
               .how = watch::held_as::running,
               .by = watch::party::current(),
               .at = std::source_location()});
}

void build_gate::succeeded() noexcept {
  watch::gave(this);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  builder_.store(0, relaxed);
  state_.store(built, release);  // pairs with the acquire in is_built
  while (auto* const next = claim_front<op::node>(waiters_)) wakes.add(*next->who);
}

void build_gate::failed() noexcept {
  watch::gave(this);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  builder_.store(0, relaxed);
  if (auto* const next = claim_front<op::node>(waiters_)) {
    next->turn = true;  // the state stays `building`: nobody gets in between
    wakes.add(*next->who);
  } else {
    state_.store(idle, release);  // pairs with the acquire of whoever has the next turn
  }
}

bool build_gate::op::attempt() noexcept {
  auto seen = gate_.state_.load(acquire);
  if (seen == built) return true;
  // acquire: pairs with the release in failed, when this is not the first try.
  if (seen != idle || !gate_.state_.compare_exchange_strong(seen, building, acquire, acquire)) {
    return seen == built;
  }
  node_.turn = true;
  return true;
}

enlisted build_gate::op::enlist(waiter& who) noexcept {
  const std::lock_guard hold(gate_.guard_);
  if (attempt()) return enlisted::finished;
  check_object(!who.is_thread() || gate_.builder_.load(relaxed) != seam::thread_number(), &gate_,
               "sluice::lazy", "its initialiser not to ask for the value that it is building", at_);
  return join(gate_.waiters_, node_, who);
}

void build_gate::op::retract() noexcept {
  const std::lock_guard hold(gate_.guard_);
  if (node_.linked()) node_.unlink();
}

}  // namespace sluice::detail
