#include "sluice/sync/counter.hpp"

#include <algorithm>
#include <bit>

namespace sluice {

counter::counter() {
  // The number of hardware threads is 0 if it is not known.
  const std::size_t threads = std::max(1U, seam::thread::hardware_concurrency());
  const auto shards = std::min(std::bit_ceil(threads), shards_max);
  mask_ = shards - 1;
  shards_ = std::make_unique<shard[]>(shards);
}

counter::value_type counter::sum() const noexcept {
  std::uint64_t total = 0;
  for (std::size_t at = 0; at <= mask_; ++at) {
    // relaxed: an add that happened before this call is seen by coherence alone.
    total += static_cast<std::uint64_t>(shards_[at].value.load(relaxed));
  }
  return static_cast<value_type>(total);
}

}  // namespace sluice
