#include "sluice/sync/lazy.hpp"

#include <mutex>
#include <source_location>

#include "sluice/base/seam.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {

build_gate::~build_gate() {
  const std::lock_guard hold(guard_);  // the builder may still be about to release it
  check_object(waiters_.empty(), this, "sluice::lazy", "no waiters at its destruction");
  check_object(state_.load(relaxed) != building, this, "sluice::lazy",
               "its initialiser not to be running at its destruction");
  wait_report::destroyed(this);
}

std::size_t build_gate::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

void build_gate::starting() noexcept {
  builder_.store(seam::thread_number(), relaxed);
  if (!wait_report::is_on()) [[likely]]
    return;
  wait_report::took({.object = this,
                     .type = "sluice::lazy",
                     .mode = wait_report::held_as::running,
                     .by = wait_report::party::current(),
                     .at = std::source_location()});
}

void build_gate::succeeded() noexcept {
  wait_report::gave(this);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  builder_.store(0, relaxed);
  state_.store(built, release);  // pairs with the acquire in is_built
  while (auto* const next = claim_front<op::node>(waiters_)) wakes.add(*next->waiting);
}

void build_gate::failed() noexcept {
  wait_report::gave(this);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  builder_.store(0, relaxed);
  if (auto* const next = claim_front<op::node>(waiters_)) {
    next->turn = true;  // the state stays `building`: no other caller can build first
    wakes.add(*next->waiting);
  } else {
    state_.store(idle, release);  // pairs with the acquire of the next builder
  }
}

bool build_gate::op::attempt() noexcept {
  auto seen = gate_.state_.load(acquire);
  if (seen == built) return true;
  // acquire: pairs with the release in failed, if an earlier try failed.
  if (seen != idle || !gate_.state_.compare_exchange_strong(seen, building, acquire, acquire)) {
    return seen == built;
  }
  node_.turn = true;
  return true;
}

enlisted build_gate::op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(gate_.guard_);
  if (attempt()) return enlisted::finished;
  const bool is_builder = gate_.builder_.load(relaxed) == seam::thread_number();
  check_object(!waiting.is_thread() || !is_builder, &gate_, "sluice::lazy",
               "its initialiser not to call get on the value it builds", at_);
  return link_waiter(gate_.waiters_, node_, waiting);
}

void build_gate::op::retract() noexcept {
  const std::lock_guard hold(gate_.guard_);
  if (node_.linked()) node_.unlink();
}

}  // namespace sluice::detail
