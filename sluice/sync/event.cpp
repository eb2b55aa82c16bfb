#include "sluice/sync/event.hpp"

namespace sluice {

void event::set() {
  open_gate([this] {
    // Also if it is set already: later waiters must see what this caller did before.
    set_.store(1, release);
    return true;
  });
}

void event::reset() noexcept {
  set_.store(0, relaxed);
}

}  // namespace sluice
