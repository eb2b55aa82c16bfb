#pragma once

// The result of `try_lock_for` and its like: a status that also converts to bool, as the
// TimedLockable requirements of the standard demand.

#include "sluice/base/outcome.hpp"

namespace sluice {

class [[nodiscard]] timed_lock_status : public status {
 public:
  constexpr timed_lock_status(status ended) noexcept : status(ended) {}
  constexpr operator bool() const noexcept { return *this == status::ok; }
};

}  // namespace sluice
