#include "sluice/sync/event.hpp"

namespace sluice {

void event::set() {
  open_gate([this] {
    // Also when it is set already: what this caller did before must be seen by who comes next.
    set_.store(1, release);
    return true;
  });
}

void event::reset() noexcept {
  set_.store(0, relaxed);
}

}  // namespace sluice
