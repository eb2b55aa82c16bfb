#pragma once

// A count per period: {100, 1s}, {5000, 1h}. A count of 0 means no tokens at all.

#include <chrono>
#include <cstdint>

namespace sluice {

struct rate {
  std::int64_t count = 0;
  std::chrono::nanoseconds per = std::chrono::seconds(1);

  friend bool operator==(const rate&, const rate&) = default;
};

}  // namespace sluice
