#pragma once

// The result of a push of several items: how many the queue took, and why it stopped.

#include <cstddef>

#include "sluice/base/outcome.hpp"

namespace sluice {

// The first `count` items were accepted or, by a dropping policy, dropped. The caller keeps the
// rest. `status` is ok exactly if all items were accepted.
struct [[nodiscard]] batch_result {
  std::size_t count = 0;
  sluice::status status = sluice::status::ok;
};

}  // namespace sluice
