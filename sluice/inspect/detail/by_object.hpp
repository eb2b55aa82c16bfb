#pragma once

// Groups records by object: sorted once, so that describing many waits does not search all records
// for each of them.

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inspect::detail {

// Entry has `const void* object`. Entries of one object keep their order.
template <class Entry>
class by_object {
 public:
  explicit by_object(std::vector<Entry> all) : all_(std::move(all)) {
    std::ranges::stable_sort(all_, std::less<>(), &Entry::object);
  }

  std::span<const Entry> of(const void* object) const {
    const auto found = std::ranges::equal_range(all_, object, std::less<>(), &Entry::object);
    return {found.begin(), found.end()};
  }

 private:
  std::vector<Entry> all_;
};

}  // namespace sluice::inspect::detail
