#pragma once

// How tests of inspect find, in the list of all waits, those they have made, and wait for them to
// be there.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/inspect/inspect.hpp"

namespace sluice::testing {

// Those that wait for this object, or for one of the objects of a select.
inline std::vector<inspect::wait_info> waits_on(const void* object) {
  auto all = inspect::waits();
  std::erase_if(all, [&](const inspect::wait_info& w) {
    return std::ranges::none_of(w.on, [&](const auto& o) { return o.address == object; });
  });
  return all;
}

// The only wait for this object, once it is there.
inline inspect::wait_info the_wait_on(const void* object) {
  std::vector<inspect::wait_info> found;
  eventually([&] { return (found = waits_on(object)).size() == 1; }, "one wait for the object");
  return found.front();
}

inline void until_waited_for(const void* object, std::size_t count = 1) {
  eventually([&] { return waits_on(object).size() == count; }, "so many waits for the object");
}

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.ends_with(end);
}

}  // namespace sluice::testing
