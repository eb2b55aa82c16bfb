#include "sluice/actor/detail/find_cycles.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace sluice::detail {
namespace {

using place = std::size_t;
using node = std::uint64_t;

class cycle_search {
 public:
  explicit cycle_search(const std::vector<wait_arrow>& arrows) : arrows_(arrows) {
    for (place i = 0; i < arrows.size(); ++i) leave_[arrows[i].from].push_back(i);
    prune();
  }

  std::vector<std::vector<place>> all() {
    std::vector<std::vector<place>> found;
    for (const auto& [start, out] : leave_) {
      if (seen_.contains(start)) continue;
      std::vector<place> cycle = shortest_through(start);
      if (cycle.empty()) continue;
      for (const place i : cycle) seen_.insert(arrows_[i].from);
      // It begins at its smallest, which is not always where it was found.
      const auto least =
          std::ranges::min_element(cycle, {}, [this](place i) { return arrows_[i].from; });
      std::ranges::rotate(cycle, least);
      found.push_back(std::move(cycle));
    }
    return found;
  }

 private:
  // A node from which no arrow leads on is in no cycle. Most waits end at such a node: without them
  // little is left to search.
  void prune() {
    std::map<node, std::vector<node>> come_from;
    std::map<node, std::size_t> left;
    std::deque<node> ends;
    for (const wait_arrow& a : arrows_) {
      come_from[a.to].push_back(a.from);
      ++left[a.from];
      if (!leave_.contains(a.to)) ends.push_back(a.to);
    }
    std::set<node> gone;
    while (!ends.empty()) {
      const node end = ends.front();
      ends.pop_front();
      if (!gone.insert(end).second) continue;
      leave_.erase(end);
      for (const node before : come_from[end]) {
        if (--left[before] == 0) ends.push_back(before);
      }
    }
  }

  // Breadth first, from a node back to itself. Empty: there is no way.
  std::vector<place> shortest_through(node start) const {
    std::map<node, place> came_by;
    std::deque<node> to_visit{start};
    while (!to_visit.empty()) {
      const node at = to_visit.front();
      to_visit.pop_front();
      const auto out = leave_.find(at);
      if (out == leave_.end()) continue;
      for (const place i : out->second) {
        const node next = arrows_[i].to;
        if (next == start) return way_to(start, i, came_by);
        if (came_by.emplace(next, i).second) to_visit.push_back(next);
      }
    }
    return {};
  }

  std::vector<place> way_to(node start, place last, const std::map<node, place>& came_by) const {
    std::vector<place> way{last};
    while (arrows_[way.back()].from != start) way.push_back(came_by.at(arrows_[way.back()].from));
    std::ranges::reverse(way);
    return way;
  }

  const std::vector<wait_arrow>& arrows_;
  std::map<node, std::vector<place>> leave_;
  std::set<node> seen_;
};

}  // namespace

std::vector<std::vector<std::size_t>> find_cycles(const std::vector<wait_arrow>& arrows) {
  return cycle_search(arrows).all();
}

}  // namespace sluice::detail
