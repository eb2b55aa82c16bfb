#pragma once

// A counting Bloom filter with one hash: shows for nearly every job that no row of the other tables
// refers to it, so that a plain job can be dropped without reading them.
//
// No false negatives: an id that was added and not removed is always found. A false positive costs
// only a read of the tables.
// Guarantees: plain value, one thread. `undo` reverts the changes since `keep`.
// Cost: 512 KiB, independent of the number of ids; one read per query.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class id_marks {
 public:
  bool may_have(job_id id) const noexcept { return (*counts_)[slot_of(id)] != 0; }

  void add(job_id id) {
    const std::size_t slot = slot_of(id);
    if (count(slot, 1)) undo_.emplace_back(slot, std::int8_t{-1});
  }
  void remove(job_id id) {
    const std::size_t slot = slot_of(id);
    if (count(slot, -1)) undo_.emplace_back(slot, std::int8_t{1});
  }
  void keep() noexcept { undo_.clear(); }
  void undo() noexcept {
    for (auto at = undo_.rbegin(); at != undo_.rend(); ++at) count(at->first, at->second);
    undo_.clear();
  }

 private:
  static constexpr unsigned slot_bits = 18;
  static constexpr std::uint16_t full = std::numeric_limits<std::uint16_t>::max();

  static std::size_t slot_of(job_id id) noexcept {
    return static_cast<std::size_t>((id * 0x9E3779B97F4A7C15ULL) >> (64 - slot_bits));
  }
  // A saturated counter is never changed again: its true value is unknown.
  bool count(std::size_t slot, int by) noexcept {
    std::uint16_t& now = (*counts_)[slot];
    if (now == full || (by < 0 && now == 0)) return false;
    now = static_cast<std::uint16_t>(now + by);
    return true;
  }

  using counters = std::array<std::uint16_t, std::size_t{1} << slot_bits>;
  std::unique_ptr<counters> counts_ = std::make_unique<counters>();
  std::vector<std::pair<std::size_t, std::int8_t>> undo_;
};

}  // namespace sluice::jobs::detail
