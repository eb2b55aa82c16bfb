#pragma once

// Adds that are done all or none, and what stands in their way: the rule that every store follows.
//
// A group is a run of adds with the same number, before which the batch of those jobs may stand; an
// add without one is a group by itself. It is refused when a unique key is held by a job that is
// there, or is wanted twice within the group, and for what gates::refusal_of says.

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/store/gates.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs {

// Where the group that begins at `first` ends.
inline std::size_t end_of_group(const batch& b, std::size_t first) {
  const auto group = b.changes[first].group;
  std::size_t end = first + 1;
  while (group != 0 && end < b.changes.size() && b.changes[end].what == change::op::add &&
         b.changes[end].group == group) {
    ++end;
  }
  return end;
}

// The ids that a group gives out, sorted; none when nothing in it can ask for one.
inline std::vector<job_id> ids_of_group(const batch& b, std::size_t first, std::size_t end) {
  std::vector<job_id> own;
  if (end - first == 1) return own;
  for (std::size_t i = first; i < end; ++i) {
    const change& c = b.changes[i];
    own.push_back(c.what == change::op::add_batch ? c.batch->id : c.it->id);
  }
  std::ranges::sort(own);
  return own;
}

// A conflict for each change of the group, its batch included, or none if all of it can be added.
// `holder_of(change)` tells who has the unique key of an add now, zero: nobody; none at all when
// the store could not say, and then the answer is none too.
// `refusal_of` is gates::refusal_of.
template <class HolderOf, class RefusalOf>
std::optional<std::vector<conflict>> conflicts_of_group(const batch& b, std::size_t first,
                                                        std::size_t end, HolderOf holder_of,
                                                        RefusalOf refusal_of) {
  std::map<std::pair<queue_number, std::string_view>, job_id> wanted;  // keys it would take
  std::optional<std::vector<job_id>> own;
  std::vector<conflict> found;
  bool is_free = true;
  for (std::size_t i = first; i < end; ++i) {
    const change& c = b.changes[i];
    conflict& now = found.emplace_back(conflict{i, 0, conflict::reason::other_of_group});
    if (c.what == change::op::add_batch) continue;
    if (const std::string& key = c.it->spec.unique.key; !key.empty()) {
      const std::optional<job_id> held = holder_of(c);
      if (!held) return std::nullopt;
      const auto [at, is_first] = wanted.try_emplace({c.queue, key}, c.it->id);
      now.holder = *held == 0 && !is_first ? at->second : *held;
    }
    if (now.holder != 0) now.why = conflict::reason::duplicate;
    std::optional<conflict::reason> refusal;
    if (now.holder == 0 && gates::concern(c.it->spec)) {
      if (!own) own = ids_of_group(b, first, end);
      if (!refusal_of(c.it->spec, *own, refusal)) return std::nullopt;
    }
    if (refusal) now.why = *refusal;
    is_free = is_free && now.holder == 0 && !refusal;
  }
  if (is_free) found.clear();
  return found;
}

}  // namespace sluice::jobs
