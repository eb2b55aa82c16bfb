#include "sluice/future/detail/future_state.hpp"

#include "sluice/sync/backoff.hpp"

namespace sluice::detail {

constinit thread_local std::uint32_t finish_depth = 0;

std::uintptr_t state_base::when_unlocked() const noexcept {
  auto seen = word_.load(acquire);
  if (seen != locked) return seen;
  for (backoff again; seen == locked; seen = word_.load(acquire)) again.pause();
  return seen;
}

state_base* state_base::publish_slowly(std::uintptr_t seen) noexcept {
  for (;;) {
    if (seen == empty) {
      // release: the consumer sees the result. acquire: this thread sees a continuation attached
      // first.
      if (word_.compare_exchange_strong(seen, ready, acq_rel, acquire)) return nullptr;
    } else if (seen == dropped) {
      discard();
      return nullptr;
    } else if (seen == locked) {
      seen = when_unlocked();
    } else if (is_continuation(seen)) {
      return to_continuation(seen)->arrived(*this);
    } else {
      check((seen & awaited) != 0 && seen > locked, "sluice::future", "to be completed once");
      if (!word_.compare_exchange_strong(seen, locked, acq_rel, acquire)) continue;
      auto& node = *reinterpret_cast<wait_node*>(seen & ~awaited);
      waiter& waiting = *node.waiting;
      const bool claimed = waiting.try_claim(node);
      // release: pairs with every acquire of the consumer. After this the state may be destroyed;
      // a claimed waiter exists until it is woken.
      word_.store(ready, release);
      if (claimed) waiting.wake();
      return nullptr;
    }
  }
}

void state_base::drop() noexcept {
  auto expected = empty;
  if (word_.compare_exchange_strong(expected, dropped, acq_rel, acquire)) return;
  check(expected == ready, "sluice::future", "no wait to be in progress when it is destroyed");
  discard();
}

enlisted state_base::link(wait_node& node, waiter& waiting) noexcept {
  auto expected = empty;
  if (!word_.compare_exchange_strong(expected, locked, acq_rel, acquire)) {
    check(expected == ready, "sluice::future", "one consumer at a time");
    return enlisted::finished;
  }
  node.waiting = &waiting;
  const auto linked = reinterpret_cast<std::uintptr_t>(&node) | awaited;
  const bool committed = waiting.commit();
  // release: pairs with the acquire of the producer, which reads the node. After the store, another
  // thread may resume and destroy the coroutine; before it, `unlink` waits for the lock.
  word_.store(committed ? linked : empty, release);
  return committed ? enlisted::waiting : enlisted::ended;
}

void state_base::unlink(wait_node& node) noexcept {
  auto expected = reinterpret_cast<std::uintptr_t>(&node) | awaited;
  for (;;) {
    const auto seen = when_unlocked();
    if (seen != expected) return;  // the producer has unlinked the node
    if (word_.compare_exchange_strong(expected, empty, acq_rel, acquire)) return;
    expected = reinterpret_cast<std::uintptr_t>(&node) | awaited;
  }
}

bool state_base::is_awaited() const noexcept {
  const auto seen = when_unlocked();
  return seen > locked && (seen & awaited) != 0;
}

}  // namespace sluice::detail
