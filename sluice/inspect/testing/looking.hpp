#pragma once

// Finds the waits of a test in the list of all waits, and blocks until they are listed.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/inspect/inspect.hpp"

namespace sluice::testing {

// Returns the waits for this object, also those of a select that includes it.
inline std::vector<inspect::wait_info> waits_on(const void* object) {
  auto all = inspect::waits();
  std::erase_if(all, [&](const inspect::wait_info& w) {
    return std::ranges::none_of(w.on, [&](const auto& o) { return o.address == object; });
  });
  return all;
}

// Blocks until exactly one wait for this object is listed, and returns it.
inline inspect::wait_info the_wait_on(const void* object) {
  std::vector<inspect::wait_info> found;
  eventually([&] { return (found = waits_on(object)).size() == 1; }, "one wait for the object");
  return found.front();
}

inline void until_waited_for(const void* object, std::size_t count = 1) {
  eventually([&] { return waits_on(object).size() == count; }, "the waits for the object");
}

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.ends_with(end);
}

}  // namespace sluice::testing
