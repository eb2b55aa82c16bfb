#include "sluice/actor/detail/find_cycles.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace sluice::detail {
namespace {

using index = std::size_t;
using node = std::uint64_t;

class cycle_search {
 public:
  explicit cycle_search(const std::vector<wait_arrow>& arrows) : arrows_(arrows) {
    for (index i = 0; i < arrows.size(); ++i) outgoing_[arrows[i].from].push_back(i);
    prune();
  }

  std::vector<std::vector<index>> all() {
    std::vector<std::vector<index>> found;
    for (const auto& [start, out] : outgoing_) {
      if (seen_.contains(start)) continue;
      std::vector<index> cycle = shortest_through(start);
      if (cycle.empty()) continue;
      for (const index i : cycle) seen_.insert(arrows_[i].from);
      // Starts at its smallest node, which is not always where the search found it.
      const auto least =
          std::ranges::min_element(cycle, {}, [this](index i) { return arrows_[i].from; });
      std::ranges::rotate(cycle, least);
      found.push_back(std::move(cycle));
    }
    return found;
  }

 private:
  // Removes the nodes from which no arrow leads on: they are in no cycle. Most waits end at such a
  // node, so little is left to search.
  void prune() {
    std::map<node, std::vector<node>> incoming;
    std::map<node, std::size_t> left;
    std::deque<node> ends;
    for (const wait_arrow& a : arrows_) {
      incoming[a.target].push_back(a.from);
      ++left[a.from];
      if (!outgoing_.contains(a.target)) ends.push_back(a.target);
    }
    std::set<node> pruned;
    while (!ends.empty()) {
      const node end = ends.front();
      ends.pop_front();
      if (!pruned.insert(end).second) continue;
      outgoing_.erase(end);
      for (const node before : incoming[end]) {
        if (--left[before] == 0) ends.push_back(before);
      }
    }
  }

  // Breadth first from a node back to itself. Empty: no path.
  std::vector<index> shortest_through(node start) const {
    std::map<node, index> arrived_by;
    std::deque<node> to_visit{start};
    while (!to_visit.empty()) {
      const node at = to_visit.front();
      to_visit.pop_front();
      const auto out = outgoing_.find(at);
      if (out == outgoing_.end()) continue;
      for (const index i : out->second) {
        const node next = arrows_[i].target;
        if (next == start) return path_to(start, i, arrived_by);
        if (arrived_by.emplace(next, i).second) to_visit.push_back(next);
      }
    }
    return {};
  }

  std::vector<index> path_to(node start, index last,
                             const std::map<node, index>& arrived_by) const {
    std::vector<index> path{last};
    while (arrows_[path.back()].from != start)
      path.push_back(arrived_by.at(arrows_[path.back()].from));
    std::ranges::reverse(path);
    return path;
  }

  const std::vector<wait_arrow>& arrows_;
  std::map<node, std::vector<index>> outgoing_;
  std::set<node> seen_;
};

}  // namespace

std::vector<std::vector<std::size_t>> find_cycles(const std::vector<wait_arrow>& arrows) {
  return cycle_search(arrows).all();
}

}  // namespace sluice::detail
