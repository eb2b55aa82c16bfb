#pragma once

// What was seen, by the object that it is of: sorted once, so that a look at many waits does not go
// through all of it for each.

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inspect::detail {

// Entry has `const void* object`. Those of one object stay in their order.
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
