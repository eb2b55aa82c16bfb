#include "sluice/sync/latch.hpp"

namespace sluice {

latch::latch(count_type expected) : missing_(expected) {
  check(expected >= 0, "sluice::latch", "a count that is not negative");
}

// Takes n away, unless that leaves less than `floor`.
bool latch::lower(count_type n, count_type floor, const call_site& at) noexcept {
  for (auto seen = missing_.load(relaxed);;) {
    check_object(n <= seen, this, type_name, "not to be counted down below zero", at);
    if (seen - n < floor) return false;
    // release: pairs with the acquire in is_open; acquire: the last one passes on what all did.
    if (missing_.compare_exchange_weak(seen, seen - n, acq_rel, relaxed)) return true;
  }
}

void latch::count_down(count_type n, call_site at) {
  check_object(n >= 0, this, type_name, "to be counted down by a number that is not negative", at);
  if (n == 0 || lower(n, 1, at)) return;
  // Zero is reached with the list guarded, so that who sees it cannot destroy the guard under us.
  open_gate([this, n, &at] {
    lower(n, 0, at);
    return missing_.load(relaxed) == 0;
  });
}

}  // namespace sluice
