#include "jobs/http/detail/graph.hpp"

#include <array>
#include <map>
#include <set>
#include <unordered_map>

namespace sluice::jobs::http {
namespace {

struct look {
  job_state state;
  std::string_view fill;
  std::string_view stroke;
};
constexpr std::array<look, 8> looks = {{
    {job_state::scheduled, "#e8eaf6", "#5c6bc0"},
    {job_state::held, "#eceff1", "#90a4ae"},
    {job_state::ready, "#e3f2fd", "#1e88e5"},
    {job_state::running, "#fff8e1", "#ffb300"},
    {job_state::retrying, "#fff3e0", "#fb8c00"},
    {job_state::done, "#e8f5e9", "#43a047"},
    {job_state::dead, "#ffebee", "#e53935"},
    {job_state::cancelled, "#fafafa", "#9e9e9e"},
}};

// A dependency, with the names of steps resolved to ids.
struct edge {
  job_id from;
  job_id dependent;
  after_when when;
};

struct drawn {
  std::vector<edge> edges;
  std::set<job_id> external;  // dependencies that are not among the jobs
};

drawn follow(const std::vector<job>& jobs) {
  std::unordered_map<std::string_view, job_id> steps;
  std::set<job_id> here;
  for (const job& j : jobs) {
    here.insert(j.id);
    if (!j.spec.step.empty()) steps.emplace(j.spec.step, j.id);
  }
  drawn found;
  for (const job& j : jobs) {
    for (const dependency& d : j.spec.after) {
      job_id from = d.on;
      if (from == 0) {
        const auto step = steps.find(d.step);
        if (step == steps.end()) continue;
        from = step->second;
      }
      if (!here.contains(from)) found.external.insert(from);
      found.edges.push_back({from, j.id, d.when});
    }
  }
  return found;
}

// Escapes text of producers for a label of either language: quotes, brackets and line ends would
// end the label.
std::string plain(std::string_view text, graph_format format) {
  std::string out;
  for (const char c : text.substr(0, 80)) {
    const bool is_mark = c == '"' || c == '\\' || c == '<' || c == '>' || c == '#' || c == ';' ||
                         c == '&' || static_cast<unsigned char>(c) < 0x20;
    if (!is_mark) {
      out += c;
    } else if (format == graph_format::mermaid && c == '"') {
      out += "#quot;";
    } else {
      out += '_';
    }
  }
  return out;
}

std::string label_of(const job& j, graph_format format) {
  const std::string_view line = format == graph_format::mermaid ? "<br/>" : "\\n";
  std::string text = plain(j.spec.step.empty() ? j.spec.kind : j.spec.step, format);
  text += line;
  if (!j.spec.step.empty()) text += plain(j.spec.kind, format) + " ";
  text += std::to_string(j.id);
  text += line;
  text += to_string(j.state);
  return text;
}

std::string title_of(const batch_info& b, graph_format format) {
  std::string text = "batch " + std::to_string(b.id);
  if (!b.name.empty()) text += " " + plain(b.name, format);
  return text + ": " + std::string(to_string(b.state())) + ", " + std::to_string(b.pending) +
         " of " + std::to_string(b.total) + " to go";
}

void draw_mermaid(std::string& out, const std::vector<job>& jobs, const drawn& all) {
  out += "flowchart TD\n";
  for (const job& j : jobs) {
    out += "  j" + std::to_string(j.id) + "[\"" + label_of(j, graph_format::mermaid) +
           "\"]:::" + std::string(to_string(j.state)) + "\n";
  }
  for (const job_id id : all.external) {
    out += "  j" + std::to_string(id) + "([\"" + std::to_string(id) + "\"]):::external\n";
  }
  for (const edge& e : all.edges) {
    out += "  j" + std::to_string(e.from);
    if (e.when == after_when::success) {
      out += " --> ";
    } else {
      out +=
          " -. " + std::string(e.when == after_when::end ? "at its end" : "on failure") + " .-> ";
    }
    out += "j" + std::to_string(e.dependent) + "\n";
  }
  for (const look& l : looks) {
    out += "  classDef " + std::string(to_string(l.state)) + " fill:" + std::string(l.fill) +
           ",stroke:" + std::string(l.stroke) + ",color:#212121\n";
  }
  out += "  classDef external fill:#ffffff,stroke:#bdbdbd,color:#757575,stroke-dasharray:4\n";
}

void draw_dot(std::string& out, const std::vector<job>& jobs, const drawn& all,
              const std::string& title) {
  out += "digraph batch {\n  label=\"" + title + "\";\n  rankdir=TB;\n";
  out += "  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n";
  for (const job& j : jobs) {
    const look& l = looks[static_cast<std::size_t>(j.state)];
    out += "  j" + std::to_string(j.id) + " [label=\"" + label_of(j, graph_format::dot) +
           "\", fillcolor=\"" + std::string(l.fill) + "\", color=\"" + std::string(l.stroke) +
           "\"];\n";
  }
  for (const job_id id : all.external) {
    out += "  j" + std::to_string(id) + " [label=\"" + std::to_string(id) +
           "\", style=dashed, color=\"#bdbdbd\"];\n";
  }
  for (const edge& e : all.edges) {
    out += "  j" + std::to_string(e.from) + " -> j" + std::to_string(e.dependent);
    if (e.when != after_when::success) {
      out += std::string(" [style=dashed, label=\"") +
             (e.when == after_when::end ? "at its end" : "on failure") + "\"]";
    }
    out += ";\n";
  }
  out += "}\n";
}

}  // namespace

std::optional<graph_format> graph_format_from(std::string_view word) noexcept {
  if (word == "mermaid") return graph_format::mermaid;
  if (word == "dot") return graph_format::dot;
  return std::nullopt;
}

std::string_view type_of(graph_format format) noexcept {
  return format == graph_format::mermaid ? "text/plain; charset=utf-8"
                                         : "text/vnd.graphviz; charset=utf-8";
}

void draw_graph(std::string& out, graph_format format, const batch_info& batch,
                const std::vector<job>& jobs, graph_part part) {
  std::string title = title_of(batch, format);
  if (part == graph_part::first) {
    title += " (the first " + std::to_string(jobs.size()) + " jobs)";
  }
  const drawn all = follow(jobs);
  if (format == graph_format::dot) return draw_dot(out, jobs, all, title);
  out += "%% " + title + "\n";
  draw_mermaid(out, jobs, all);
}

}  // namespace sluice::jobs::http
