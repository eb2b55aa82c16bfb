#include "sluice/inspect/format.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include "sluice/inspect/detail/address_text.hpp"

namespace sluice::inspect {
namespace {

using detail::address_text;

std::string limits_text(const wait_info& w) {
  std::string all;
  const auto add = [&](bool is_so, const char* limit) {
    if (is_so) all += (all.empty() ? "" : ", ") + std::string(limit);
  };
  add(w.has_deadline, "deadline");
  add(w.can_be_stopped, "stop");
  add(w.ends_by_itself, "ends by itself");
  return all;
}

std::string wants_text(const object_info& o) {
  std::string text = o.wants + ' ' + o.text();
  if (o.capacity) text += " (capacity " + std::to_string(*o.capacity) + ")";
  return text;
}

std::string servers_text(const wait_info& w) {
  std::string all;
  for (const auto& o : w.on) {
    for (const auto& s : o.servers) {
      if (!all.empty()) all += "; ";
      all += s.party.text() + ' ' + s.role;
      if (s.held) all += " for " + to_text(*s.held);
      if (s.at) all += " at " + to_string(*s.at);
    }
  }
  return all.empty() ? "-" : all;
}

// Rows of cells, each column as wide as its widest cell.
class table {
 public:
  explicit table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string all;
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        all += row[i];
        if (i + 1 < row.size()) all.append(widths[i] - row[i].size() + 2, ' ');
      }
      all += '\n';
    }
    return all;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

// ---- JSON

std::string quoted(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        all += "\\\"";
        break;
      case '\\':
        all += "\\\\";
        break;
      case '\n':
        all += "\\n";
        break;
      case '\t':
        all += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          std::array<char, 8> code{};
          std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(c));
          all += code.data();
        } else {
          all += c;
        }
    }
  }
  return all + '"';
}

std::string member(std::string_view name, std::string_view value) {
  return quoted(name) + ':' + std::string(value);
}

std::string_view kind_text(wait_report::party::kind kind) {
  switch (kind) {
    case wait_report::party::kind::none:
      return "nobody";
    case wait_report::party::kind::thread:
      return "thread";
    case wait_report::party::kind::coroutine:
      return "coroutine";
    case wait_report::party::kind::actor:
      return "actor";
    case wait_report::party::kind::callback:
      return "callback";
    case wait_report::party::kind::executor:
      return "executor";
  }
  return "nobody";
}

std::string party_json(const party_info& p) {
  std::string all = '{' + member("kind", quoted(kind_text(p.id.type())));
  if (p.id.type() == wait_report::party::kind::thread) {
    all += ',' + member("number", std::to_string(p.id.thread_number())) + ',' +
           member("tid", std::to_string(p.id.kernel_thread()));
  } else if (p.id.type() == wait_report::party::kind::actor) {
    // Two members: as one number they exceed the integers that a double represents exactly.
    all += ',' + member("number", std::to_string(p.id.actor_number())) + ',' +
           member("system", std::to_string(p.id.id() / wait_report::party::actor(0, 1).id()));
  } else {
    all += ',' + member("id", std::to_string(p.id.id()));
  }
  return all + ',' + member("name", quoted(p.name)) + '}';
}

// Returns "" for a wait that blocks no other party.
std::string also_blocked_json(const wait_info& w) {
  if (w.also_blocked.empty()) return "";
  std::string all;
  for (const auto& p : w.also_blocked) all += (all.empty() ? "" : ",") + party_json(p);
  return ',' + quoted("holds_up") + ":[" + all + ']';
}

std::string object_json(const object_info& o) {
  std::string all = '{' + member("type", quoted(o.type)) + ',' + member("name", quoted(o.name)) +
                    ',' + member("address", quoted(address_text(o.address))) + ',' +
                    member("wants", quoted(o.wants));
  if (o.capacity) all += ',' + member("capacity", std::to_string(*o.capacity));
  all += ',' + quoted("could_be_ended_by") + ":[";
  for (const auto& s : o.servers) {
    if (&s != &o.servers.front()) all += ',';
    all += '{' + member("who", party_json(s.party)) + ',' + member("how", quoted(s.role));
    if (s.held) all += ',' + member("held_ns", std::to_string(s.held->count()));
    if (s.at) all += ',' + member("at", quoted(to_string(*s.at)));
    all += '}';
  }
  return all + "]}";
}

// ---- graphs: one traversal for both languages

struct graph {
  struct node {
    std::string label{};
    bool is_party = false;
  };
  struct arrow {
    std::string source{};
    std::string target{};
    std::string label{};
    auto operator<=>(const arrow&) const = default;
  };
  std::vector<std::pair<std::string, node>> nodes{};  // in the order of their first appearance
  std::set<arrow> arrows{};

  // One node per party or object, also if several have the same name.
  std::string party(const party_info& p) { return id('p', word(p), p.text()); }
  std::string object(const object_info& o) {
    if (o.address != nullptr) return id('o', address_text(o.address), o.text());
    // Without an address: identified by its name and its servers.
    std::string key = o.text();
    for (const auto& s : o.servers) key += ' ' + word(s.party);
    return id('n', key, o.text());
  }

 private:
  static std::string word(const party_info& p) { return std::to_string(p.id.word()); }
  std::string id(char kind, const std::string& key, const std::string& label) {
    auto& known = ids_[kind + key];
    if (known.empty()) {
      const bool is_party = kind == 'p';
      known = (is_party ? 'p' : 'o') + std::to_string(nodes.size());
      nodes.push_back({known, {label, is_party}});
    }
    return known;
  }
  std::map<std::string, std::string> ids_;
};

graph graph_of(const std::vector<wait_info>& waits) {
  graph g;
  for (const auto& w : waits) {
    const auto party = g.party(w.party);
    for (const auto& p : w.also_blocked) g.arrows.insert({g.party(p), party, "is in its turn"});
    for (const auto& o : w.on) {
      const auto on = g.object(o);
      g.arrows.insert({party, on, o.wants + " " + to_text(w.time)});
      for (const auto& s : o.servers) g.arrows.insert({on, g.party(s.party), s.role});
    }
  }
  return g;
}

// Quotes a label for both languages: without quotes and line ends inside.
std::string label(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"') {
      all += '\'';
    } else {
      all += c == '\n' || c == '\\' ? ' ' : c;
    }
  }
  return all + '"';
}

}  // namespace

std::string to_text(std::chrono::nanoseconds time) {
  const auto ns = static_cast<double>(time.count());
  std::array<char, 32> text{};
  if (time < std::chrono::microseconds(1)) {
    std::snprintf(text.data(), text.size(), "%.0f ns", ns);
  } else if (time < std::chrono::milliseconds(1)) {
    std::snprintf(text.data(), text.size(), "%.1f us", ns / 1e3);
  } else if (time < std::chrono::seconds(1)) {
    std::snprintf(text.data(), text.size(), "%.1f ms", ns / 1e6);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f s", ns / 1e9);
  }
  return text.data();
}

std::string to_text(const std::vector<wait_info>& waits) {
  table rows({"party", "waits to", "for", "limits", "at", "could be ended by"});
  for (const auto& w : waits) {
    std::string on;
    for (const auto& o : w.on) on += (on.empty() ? "" : " or ") + wants_text(o);
    rows.add({w.party.text(), on, to_text(w.time), limits_text(w), w.at ? to_string(*w.at) : "-",
              servers_text(w)});
  }
  return rows.text();
}

std::string to_text(const std::vector<contention_info>& contention) {
  table rows({"object", "waits", "futile", "waited", "longest", "waiting", "max"});
  for (const auto& c : contention) {
    const object_info o{.address = c.address, .type = c.type, .name = c.name};
    rows.add({o.text(), std::to_string(c.waits), std::to_string(c.futile_wakes), to_text(c.waited),
              to_text(c.longest), std::to_string(c.waiting), std::to_string(c.waiting_max)});
  }
  return rows.text();
}

std::string to_json(const std::vector<wait_info>& waits) {
  std::string all = "[";
  for (const auto& w : waits) {
    if (&w != &waits.front()) all += ",\n";
    all += '{' + member("number", std::to_string(w.number)) + ',' +
           member("who", party_json(w.party)) + ',' +
           member("waited_ns", std::to_string(w.time.count())) + ',' +
           member("has_deadline", w.has_deadline ? "true" : "false") + ',' +
           member("can_be_stopped", w.can_be_stopped ? "true" : "false") + ',' +
           member("ends_by_itself", w.ends_by_itself ? "true" : "false");
    if (w.at) all += ',' + member("at", quoted(to_string(*w.at)));
    all += ',' + quoted("on") + ":[";
    for (const auto& o : w.on) all += (&o == &w.on.front() ? "" : ",") + object_json(o);
    all += ']' + also_blocked_json(w) + '}';
  }
  return all + "]\n";
}

std::string to_dot(const std::vector<wait_info>& waits) {
  const auto g = graph_of(waits);
  std::string all = "digraph waits {\n  rankdir=LR;\n";
  for (const auto& [id, n] : g.nodes) {
    all += "  " + id + " [label=" + label(n.label) +
           (n.is_party ? ", shape=box];\n" : ", shape=box, style=rounded];\n");
  }
  for (const auto& a : g.arrows) {
    all += "  " + a.source + " -> " + a.target + " [label=" + label(a.label) + "];\n";
  }
  return all + "}\n";
}

std::string to_mermaid(const std::vector<wait_info>& waits) {
  const auto g = graph_of(waits);
  std::string all = "flowchart LR\n";
  for (const auto& [id, n] : g.nodes) {
    all += "  " + id + (n.is_party ? "[" : "(") + label(n.label) + (n.is_party ? "]\n" : ")\n");
  }
  for (const auto& a : g.arrows) {
    all += "  " + a.source + " -->|" + label(a.label) + "| " + a.target + "\n";
  }
  return all;
}

}  // namespace sluice::inspect
