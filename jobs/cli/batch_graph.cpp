#include "jobs/cli/batch_graph.hpp"

#include <algorithm>
#include <map>

#include "jobs/cli/words.hpp"

namespace sluice::jobs::cli {
namespace {

struct node {
  const job* item = nullptr;
  std::size_t depth = 0;
  std::vector<job_id> below;  // drawn under this job
  bool is_placed = false;
};

std::string name_of(const job& j) {
  return j.spec.step.empty() ? j.spec.kind : j.spec.step;
}

class drawing {
 public:
  explicit drawing(const std::vector<job>& jobs) {
    for (const job& j : jobs) nodes_[j.id].item = &j;
    place();
  }

  std::string text(const text_style& style) {
    for (const auto& [id, n] : nodes_) {
      if (n.depth == 0) draw(id, 0);
    }
    std::size_t width = 0;
    for (const row& r : rows_) width = std::max(width, width_of(r.title));
    std::string text;
    for (const row& r : rows_) {
      std::string line = r.title + std::string(width - width_of(r.title) + 2, ' ');
      line += coloured(r.item->state, style);
      if (!r.waits_for.empty()) {
        line += std::string(11 - std::min<std::size_t>(10, to_string(r.item->state).size()), ' ');
        line += style.faint("after " + r.waits_for);
      }
      text += line + "\n";
    }
    return text;
  }

 private:
  struct row {
    std::string title;
    std::string waits_for;
    const job* item = nullptr;
  };

  // Places jobs round by round, after all their dependencies. A cycle, which no server accepts, is
  // placed at the top.
  void place() {
    std::size_t left = nodes_.size();
    while (left > 0) {
      std::size_t placed = 0;
      for (auto& [id, n] : nodes_) {
        if (n.is_placed || !are_placed(*n.item)) continue;
        set_place(id, n);
        ++placed;
      }
      if (placed == 0) {
        for (auto& [id, n] : nodes_) n.is_placed = true;
        return;
      }
      left -= placed;
    }
  }

  bool are_placed(const job& j) const {
    return std::ranges::all_of(j.spec.after, [&](const dependency& d) {
      const auto found = nodes_.find(d.on);
      return found == nodes_.end() || found->second.is_placed;
    });
  }

  void set_place(job_id id, node& n) {
    node* last = nullptr;
    for (const dependency& d : n.item->spec.after) {
      const auto found = nodes_.find(d.on);
      if (found == nodes_.end()) continue;
      if (last == nullptr || found->second.depth >= last->depth) last = &found->second;
    }
    n.is_placed = true;
    if (last == nullptr) return;
    n.depth = last->depth + 1;
    last->below.push_back(id);
  }

  void draw(job_id id, std::size_t indent) {
    const node& n = nodes_.at(id);
    std::string title;
    if (indent > 0) title = std::string((indent - 1) * 3 + 2, ' ') + "`- ";
    title += std::to_string(id) + " " + shortened(name_of(*n.item), 40);
    rows_.push_back({std::move(title), waits_for(*n.item), n.item});
    for (const job_id under : n.below) draw(under, indent + 1);
  }

  std::string waits_for(const job& j) const {
    std::string text;
    constexpr std::size_t names_max = 5;
    std::size_t named = 0;
    for (const dependency& d : j.spec.after) {
      if (++named > names_max) break;
      const auto found = nodes_.find(d.on);
      text += text.empty() ? "" : ", ";
      text += found == nodes_.end() ? std::to_string(d.on) : name_of(*found->second.item);
      if (d.when != after_when::success) text += ":" + std::string(to_string(d.when));
    }
    if (j.spec.after.size() > names_max) {
      text += " and " + std::to_string(j.spec.after.size() - names_max) + " more";
    }
    return text;
  }

  std::map<job_id, node> nodes_;
  std::vector<row> rows_;
};

}  // namespace

std::string batch_graph(const std::vector<job>& jobs, const text_style& style) {
  return drawing(jobs).text(style);
}

}  // namespace sluice::jobs::cli
