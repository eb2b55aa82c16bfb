#pragma once

// Groups: adds that are all done or none, and their conflicts. Shared by all stores.
//
// A group is a run of adjacent adds with the same number, optionally preceded by the add_batch of
// its jobs; an add without a number is a group of its own. A group is rejected if a unique key is
// held by a stored job or used twice within the group, or if gates::refusal_of has a reason.

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

// Returns the end of the group that begins at `first`.
inline std::size_t end_of_group(const transaction& t, std::size_t first) {
  const auto group = t.changes[first].group;
  std::size_t end = first + 1;
  while (group != 0 && end < t.changes.size() && t.changes[end].type == change::op::add &&
         t.changes[end].group == group) {
    ++end;
  }
  return end;
}

// Returns the ids of a group, sorted; empty for a single add, which cannot refer to its own group.
inline std::vector<job_id> ids_of_group(const transaction& t, std::size_t first, std::size_t end) {
  std::vector<job_id> own;
  if (end - first == 1) return own;
  for (std::size_t i = first; i < end; ++i) {
    const change& c = t.changes[i];
    own.push_back(c.type == change::op::add_batch ? c.batch->id : c.job->id);
  }
  std::ranges::sort(own);
  return own;
}

// Returns a conflict for each change of the group, its batch included, or an empty list if the
// group can be added; none if the store could not be read. `holder_of(change)` returns the holder
// of the unique key of an add, zero if the key is free, or none if the store could not be read.
// `refusal_of` is gates::refusal_of.
template <class HolderOf, class RefusalOf>
std::optional<std::vector<conflict>> conflicts_of_group(const transaction& t, std::size_t first,
                                                        std::size_t end, HolderOf holder_of,
                                                        RefusalOf refusal_of) {
  std::map<std::pair<queue_number, std::string_view>, job_id> wanted;  // keys it would take
  std::optional<std::vector<job_id>> own;
  std::vector<conflict> found;
  bool is_free = true;
  for (std::size_t i = first; i < end; ++i) {
    const change& c = t.changes[i];
    conflict& now = found.emplace_back(conflict{i, 0, conflict::reason::other_of_group});
    if (c.type == change::op::add_batch) continue;
    if (const std::string& key = c.job->spec.unique.key; !key.empty()) {
      const std::optional<job_id> held = holder_of(c);
      if (!held) return std::nullopt;
      const auto [at, is_first] = wanted.try_emplace({c.queue, key}, c.job->id);
      now.holder = *held == 0 && !is_first ? at->second : *held;
    }
    if (now.holder != 0) now.cause = conflict::reason::duplicate;
    std::optional<conflict::reason> refusal;
    if (now.holder == 0 && gates::concern(c.job->spec)) {
      if (!own) own = ids_of_group(t, first, end);
      if (!refusal_of(c.job->spec, *own, refusal)) return std::nullopt;
    }
    if (refusal) now.cause = *refusal;
    is_free = is_free && now.holder == 0 && !refusal;
  }
  if (is_free) found.clear();
  return found;
}

}  // namespace sluice::jobs
