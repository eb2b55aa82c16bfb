#include "sluice/sync/latch.hpp"

namespace sluice {

latch::latch(count_type expected) : missing_(expected) {
  check(expected >= 0, "sluice::latch", "a count that is not negative");
}

// Subtracts n, unless that leaves less than `floor`. Returns true if it has subtracted.
bool latch::lower(count_type n, count_type floor, const call_site& at) noexcept {
  for (auto seen = missing_.load(relaxed);;) {
    check_object(n <= seen, this, type_name, "not to be counted down below zero", at);
    if (seen - n < floor) return false;
    // release: pairs with the acquire in is_open; acquire: the last arrival also publishes what all
    // earlier arrivals did.
    if (missing_.compare_exchange_weak(seen, seen - n, acq_rel, relaxed)) return true;
  }
}

void latch::count_down(count_type n, call_site at) {
  check_object(n >= 0, this, type_name, "a count that is not negative", at);
  if (n == 0 || lower(n, 1, at)) return;
  // Zero is reached with the list guarded, so that a waiter that sees it cannot destroy the guard
  // while it is in use here.
  open_gate([this, n, &at] {
    lower(n, 0, at);
    return missing_.load(relaxed) == 0;
  });
}

}  // namespace sluice
