#pragma once

// Adds that are done all or none, and the unique keys that stand in their way: the rule that every
// store follows.
//
// A group is a run of adds with the same number; an add without one is a group by itself. It is
// refused when a key is held by a job that is there, or is wanted twice within the group.

#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/store/store.hpp"

namespace sluice::jobs {

// Where the group of adds that begins at `first` ends.
inline std::size_t end_of_group(const batch& b, std::size_t first) {
  const auto group = b.changes[first].group;
  std::size_t end = first + 1;
  while (group != 0 && end < b.changes.size() && b.changes[end].what == change::op::add &&
         b.changes[end].group == group) {
    ++end;
  }
  return end;
}

// A conflict for each add of the group, or none if all of it can be added. `holder_of(change)`
// tells who has the key of an add now, zero: nobody; none at all when the store could not say, and
// then the answer is none too.
template <class HolderOf>
std::optional<std::vector<conflict>> conflicts_of_group(const batch& b, std::size_t first,
                                                        std::size_t end, HolderOf holder_of) {
  std::map<std::pair<queue_number, std::string_view>, job_id> own;  // keys this group would take
  std::vector<conflict> found;
  bool is_free = true;
  for (std::size_t i = first; i < end; ++i) {
    const change& c = b.changes[i];
    job_id holder = 0;
    if (const std::string& key = c.it->spec.unique.key; !key.empty()) {
      const std::optional<job_id> held = holder_of(c);
      if (!held) return std::nullopt;
      const auto [at, is_first] = own.try_emplace({c.queue, key}, c.it->id);
      holder = *held == 0 && !is_first ? at->second : *held;
    }
    is_free = is_free && holder == 0;
    found.push_back({i, holder});
  }
  if (is_free) found.clear();
  return found;
}

}  // namespace sluice::jobs
