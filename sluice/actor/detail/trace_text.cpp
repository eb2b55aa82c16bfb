#include "sluice/actor/detail/trace_text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include "sluice/actor/detail/json_text.hpp"

namespace sluice::detail {
namespace {

using kind = trace_event::kind;

// Escapes the characters that have a meaning for Mermaid inside a text.
std::string mermaid_text(std::string_view text) {
  std::string s;
  for (const char c : text) {
    if (c == '#' || c == ';' || c == '<' || c == '>') {
      s += "#" + std::to_string(static_cast<int>(c)) + ";";
    } else {
      s += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return s;
}

class mermaid_writer {
 public:
  mermaid_writer(const std::vector<trace_event>& events, const actor_names& names,
                 const mermaid_options& o)
      : names_(names), options_(o) {
    for (const trace_event& e : events) {
      if (e.event == kind::lost) lost_[e.message] = &e;
    }
  }

  void add(const trace_event& e) {
    if (options_.trace != 0 && e.trace != options_.trace) return;
    switch (e.event) {
      case kind::sent:
        return arrow(e);
      case kind::begun:
      case kind::resumed:
        if (options_.activations && busy_.insert(e.receiver).second) {
          body_ += "  activate " + alias(e.receiver) + "\n";
        }
        return;
      case kind::handled:
        return deactivate(e.receiver);
      case kind::failed:
        body_ += "  Note over " + alias(e.receiver) + ": failed: " + mermaid_text(e.text) + "\n";
        return;
      case kind::lost:
        return;  // shown where it was sent
    }
  }

  std::string text(std::uint64_t lost) {
    const std::set<actor_id> still_busy = busy_;
    for (const actor_id id : still_busy) deactivate(id);
    std::string s = "sequenceDiagram\n";
    if (lost > 0) s += "  %% " + std::to_string(lost) + " older events are lost\n";
    for (const actor_id id : order_) {
      s += "  participant " + alias(id) + " as " + mermaid_text(names_.of(id)) + "\n";
    }
    s += body_;
    if (arrows_ > options_.arrows_max) {
      s += "  %% and " + std::to_string(arrows_ - options_.arrows_max) + " more messages\n";
    }
    return s;
  }

 private:
  std::string alias(actor_id id) {
    if (std::ranges::find(order_, id) == order_.end()) order_.push_back(id);
    return "a" + std::to_string(id);
  }
  void arrow(const trace_event& e) {
    if (++arrows_ > options_.arrows_max) return;
    const auto lost = lost_.find(e.number);
    body_ += "  " + alias(e.from);
    body_ += lost == lost_.end() ? "->>" : "-x";
    body_ += alias(e.receiver) + ": " + mermaid_text(short_type(e.type));
    if (lost != lost_.end()) body_ += " (" + mermaid_text(lost->second->text) + ")";
    body_ += "\n";
  }
  void deactivate(actor_id id) {
    if (busy_.erase(id) > 0) body_ += "  deactivate " + alias(id) + "\n";
  }

  const actor_names& names_;
  const mermaid_options& options_;
  std::map<std::uint64_t, const trace_event*> lost_;  // by the number of the message
  std::vector<actor_id> order_;
  std::set<actor_id> busy_;
  std::size_t arrows_ = 0;
  std::string body_;
};

// Writes events in Chrome's trace format. Times are microseconds since the first event.
class chrome_writer {
 public:
  chrome_writer(const actor_names& names, time_point start) : names_(names), start_(start) {}

  void row(actor_id id) {
    open("M", "thread_name", id);
    text_ += ",\"args\":{";
    append_json_field(text_, "name", names_.of(id));
    text_ += "}}";
  }
  void slice(const trace_event& from, time_point until) {
    open("X", short_type(from.type), from.receiver);
    time("ts", from.when - start_);
    time("dur", until - from.when);
    append_args(from);
  }
  void arrow_begin(const trace_event& e) { arrow("s", e, e.from, e.number); }
  void arrow_end(const trace_event& e) {
    arrow("f", e, e.receiver, e.message);
    text_.insert(text_.size() - 1, ",\"bp\":\"e\"");
  }
  void mark(std::string_view name, const trace_event& e) {
    open("i", name, e.receiver);
    time("ts", e.when - start_);
    append_json_field(text_, "s", "t");
    append_args(e);
  }

  std::string text(std::uint64_t lost) const {
    std::string s = "{\"displayTimeUnit\":\"ns\",\"otherData\":{";
    append_json_field(s, "lost_events", lost);
    return s + "},\"traceEvents\":[" + text_ + "\n]}\n";
  }

 private:
  void open(std::string_view phase, std::string_view name, actor_id row) {
    text_ += text_.empty() ? "\n{" : ",\n{";
    append_json_field(text_, "ph", phase);
    append_json_field(text_, "name", name);
    append_json_field(text_, "pid", std::uint64_t{1});
    append_json_field(text_, "tid", row);
  }
  void time(std::string_view key, std::chrono::nanoseconds t) {
    char micros[40];
    std::snprintf(micros, sizeof micros, "%lld.%03lld", static_cast<long long>(t.count() / 1000),
                  static_cast<long long>(t.count() % 1000));
    text_ += ",";
    append_json_string(text_, key);
    text_ += ":";
    text_ += micros;
  }
  void append_args(const trace_event& e) {
    text_ += ",\"args\":{";
    append_json_field(text_, "trace", e.trace);
    append_json_field(text_, "message", short_type(e.type));
    append_json_field(text_, "from", names_.of(e.from));
    if (!e.text.empty()) append_json_field(text_, "why", e.text);
    text_ += "}}";
  }
  void arrow(std::string_view phase, const trace_event& e, actor_id row, std::uint64_t id) {
    open(phase, short_type(e.type), row);
    append_json_field(text_, "cat", "message");
    append_json_field(text_, "id", id);
    time("ts", e.when - start_);
    text_ += "}";
  }

  const actor_names& names_;
  const time_point start_;
  std::string text_;
};

}  // namespace

std::string mermaid_of(const std::vector<trace_event>& events, const actor_names& names,
                       const mermaid_options& o, std::uint64_t lost) {
  mermaid_writer writer(events, names, o);
  for (const trace_event& e : events) writer.add(e);
  return writer.text(lost);
}

std::string chrome_json_of(const std::vector<trace_event>& events, const actor_names& names,
                           std::uint64_t lost) {
  time_point first = time_point::max();
  time_point last = time_point::min();
  std::set<actor_id> rows;
  for (const trace_event& e : events) {
    first = std::min(first, e.when);
    last = std::max(last, e.when);
    rows.insert({e.from, e.receiver});
  }
  chrome_writer writer(names, first);
  for (const actor_id id : rows) writer.row(id);
  std::map<actor_id, const trace_event*> open;  // the message each actor is handling
  for (const trace_event& e : events) {
    switch (e.event) {
      case kind::sent:
        writer.arrow_begin(e);
        break;
      case kind::begun:
        if (e.message != 0) writer.arrow_end(e);
        open[e.receiver] = &e;
        break;
      case kind::resumed:
        open[e.receiver] = &e;
        break;
      case kind::handled:
        if (const auto at = open.find(e.receiver); at != open.end()) {
          writer.slice(*at->second, e.when);
          open.erase(at);
        }
        break;
      case kind::failed:
        writer.mark("failed", e);
        break;
      case kind::lost:
        writer.mark("lost", e);
        break;
    }
  }
  for (const auto& [id, event] : open) writer.slice(*event, last);  // not finished
  return writer.text(lost);
}

}  // namespace sluice::detail
