#include "jobs/cli/top_view.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "jobs/cli/words.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

std::optional<double> rate(std::uint64_t now, std::uint64_t before, double seconds) {
  if (now < before || seconds <= 0) return std::nullopt;
  return static_cast<double>(now - before) / seconds;
}

std::string per_second(const std::optional<double>& rate) {
  return rate ? grouped(static_cast<std::uint64_t>(std::llround(*rate))) + "/s" : "-";
}

std::string net_text(const top_model::queue_row& q) {
  if (q.info.options.paused) return "paused";
  if (!q.net_per_second) return "-";
  const auto net = std::llround(*q.net_per_second);
  if (net == 0) return "0";
  return (net > 0 ? "+" : "-") + compact(static_cast<std::uint64_t>(std::llabs(net)));
}

std::string clock_of(unix_time t) {
  return format_time(t).substr(11, 8) + "Z";
}

std::string padded(std::string text, std::size_t columns,
                   table::align alignment = table::align::left) {
  const std::size_t width = width_of(text);
  if (width >= columns) return shortened(text, columns);
  const std::string padding(columns - width, ' ');
  return alignment == table::align::right ? padding + text : text + padding;
}

constexpr std::size_t number_columns = 6;
constexpr std::size_t net_columns = 7;
constexpr std::size_t name_columns_min = 10;
constexpr std::size_t name_columns_max = 40;

struct number_column {
  const char* title;
  job_state state;
};
constexpr std::array<number_column, 6> number_columns_all = {{{"READY", job_state::ready},
                                                              {"RUN", job_state::running},
                                                              {"DEAD", job_state::dead},
                                                              {"RETRY", job_state::retrying},
                                                              {"SCHED", job_state::scheduled},
                                                              {"HELD", job_state::held}}};

// The columns that fit, and their widths.
struct layout {
  std::size_t name = name_columns_min;
  std::size_t numbers = 0;  // leading entries of number_columns_all
  bool net = false;
  std::size_t spark = 0;

  explicit layout(std::size_t columns) {
    std::size_t used = 2 + name;  // with the selection mark before the name
    while (numbers < number_columns_all.size() && used + 1 + number_columns <= columns) {
      used += 1 + number_columns;
      ++numbers;
    }
    if (used + 1 + net_columns <= columns) {
      net = true;
      used += 1 + net_columns;
    }
    std::size_t left = columns > used ? columns - used : 0;
    constexpr std::size_t spark_min = 8;
    if (left > spark_min) {
      // Two thirds for the depth chart, the rest for the names.
      const std::size_t for_names = std::min((left - 1 - spark_min) / 2, name_columns_max - name);
      name += for_names;
      left -= for_names;
      spark = std::min(left - 1, top_model::history_max);
    } else {
      name = std::min(name + left, name_columns_max);
    }
  }
};

class frame {
 public:
  frame(const top_model& seen, const top_choice& choice, const top_looks& looks)
      : seen_(seen), choice_(choice), looks_(looks), layout_(looks.size.columns) {}

  std::string text() {
    const std::size_t rows = std::max<std::size_t>(looks_.size.rows, 1);
    add_header();
    if (choice_.now == top_choice::mode::helping) {
      add_help();
    } else {
      add_queues(rows);
    }
    lines_.resize(rows - 1);
    lines_.push_back(footer());
    std::string all;
    for (std::size_t i = 0; i < lines_.size(); ++i) all += (i == 0 ? "" : "\n") + lines_[i];
    return all;
  }

 private:
  // Shortens before colouring: escape sequences have no width.
  std::string cut(const std::string& text) const { return shortened(text, looks_.size.columns); }

  void add_header() {
    const text_style& style = looks_.style;
    std::string title = "sluice top  " + looks_.url + "  every " + format_duration(looks_.every);
    if (!seen_.has_seen()) {
      lines_.push_back(style.bold(cut(title)));
      lines_.push_back(seen_.problem().empty() ? "connecting ..."
                                               : style.red(cut(seen_.problem())));
      return;
    }
    const top_snapshot& now = seen_.now();
    lines_.push_back(style.bold(cut(title + "  " + clock_of(now.wall))));
    lines_.push_back(health_line(now));
    const engine_stats& s = now.stats;
    const top_model::rates& r = seen_.per_second();
    lines_.push_back(cut("pushed " + per_second(r.pushed) + "  done " + per_second(r.done) +
                         "  failed " + per_second(r.failed) + "  running " + grouped(s.running) +
                         "  waiting " + counted(s.waiting_leases, "worker", "workers") + ", " +
                         counted(s.waiting_pushes, "push", "pushes")));
    lines_.push_back(cut("commits " + per_second(r.commits) + "  p50 " + grouped(s.commit_p50_us) +
                         " us  p99 " + grouped(s.commit_p99_us) + " us  failed " +
                         grouped(s.commit_errors) + "  in memory " + byte_size(s.window_bytes)));
  }

  std::string health_line(const top_snapshot& now) const {
    const text_style& style = looks_.style;
    if (!seen_.problem().empty()) return style.red(cut("no reply: " + seen_.problem()));
    if (!now.health.takes_pushes) return style.red(cut("rejects pushes: " + now.health.reason));
    const queue_counts n = seen_.totals();
    return style.green("healthy") +
           cut_after("  " + grouped(n.ready) + " ready, " + grouped(n.scheduled) + " scheduled, " +
                         grouped(n.held) + " held, " + grouped(n.retrying) + " retrying, " +
                         grouped(n.dead) + " dead",
                     7);
  }

  std::string cut_after(const std::string& text, std::size_t used) const {
    return used >= looks_.size.columns ? "" : shortened(text, looks_.size.columns - used);
  }

  void add_queues(std::size_t rows) {
    if (!seen_.has_seen()) return;
    lines_.emplace_back();
    lines_.push_back(looks_.style.bold(titles()));
    const auto shown = shown_queues(seen_, choice_);
    if (shown.empty()) {
      lines_.push_back(cut(seen_.queues().empty()
                               ? "  no queues yet: the first push creates one"
                               : "  no queue name contains '" + choice_.filter + "'"));
      return;
    }
    const std::size_t visible = rows > lines_.size() + 1 ? rows - lines_.size() - 1 : 0;
    const std::size_t selected = selected_place(shown, choice_);
    // Scrolls so that the selected queue is visible.
    std::size_t first = visible > 0 && selected >= visible ? selected - visible + 1 : 0;
    for (std::size_t i = first; i < shown.size() && i < first + visible; ++i) {
      lines_.push_back(row(*shown[i], i == selected));
    }
  }

  std::string titles() const {
    std::string line = "  " + padded("QUEUE", layout_.name);
    for (std::size_t i = 0; i < layout_.numbers; ++i) {
      line += " " + padded(number_columns_all[i].title, number_columns, table::align::right);
    }
    if (layout_.net) line += " " + padded("NET/S", net_columns, table::align::right);
    if (layout_.spark > 0) line += " " + padded("DEPTH", layout_.spark);
    return cut(line);
  }

  std::string row(const top_model::queue_row& q, bool is_selected) const {
    std::string line = (is_selected ? "> " : "  ") + padded(q.info.name, layout_.name);
    for (std::size_t i = 0; i < layout_.numbers; ++i) {
      line += " " + padded(compact(q.info.counts.of(number_columns_all[i].state)), number_columns,
                           table::align::right);
    }
    if (layout_.net) line += " " + padded(net_text(q), net_columns, table::align::right);
    if (layout_.spark > 0) {
      line += " " + padded(sparkline(q.depth, layout_.spark, looks_.unicode), layout_.spark);
    }
    line = cut(line);
    if (is_selected) return looks_.style.inverse(line);
    return q.info.options.paused ? looks_.style.yellow(line) : line;
  }

  void add_help() {
    lines_.emplace_back();
    for (const char* line :
         {"  up, down, k, j     select a queue", "  page up, page down  move by ten",
          "  p                  pause or resume the selected queue",
          "  s                  sort by name, depth, ready, running or dead",
          "  /                  filter the queues by a text in their names",
          "  q, Ctrl-C          quit", "",
          "  NET/S is the growth of the jobs that have not ended; DEPTH shows their",
          "  number in the last samples.", "", "  any key returns"}) {
      lines_.push_back(cut(line));
    }
  }

  std::string footer() const {
    using mode = top_choice::mode;
    if (choice_.now == mode::filtering) return cut("filter: " + choice_.filter + "_");
    if (choice_.now == mode::asking) {
      const auto shown = shown_queues(seen_, choice_);
      if (shown.empty()) return "";
      const queue_info& q = shown[selected_place(shown, choice_)]->info;
      return looks_.style.bold(
          cut((q.options.paused ? "resume " : "pause ") + q.name + "? y: yes, any other key: no"));
    }
    if (!choice_.note.empty()) return cut(choice_.note);
    std::string text =
        "q quit  p pause/resume  s sort: " + std::string(to_string(choice_.order)) + "  / filter";
    if (!choice_.filter.empty()) text += ": " + choice_.filter;
    return looks_.style.faint(cut(text + "  ? help"));
  }

  const top_model& seen_;
  const top_choice& choice_;
  const top_looks& looks_;
  const layout layout_;
  std::vector<std::string> lines_;
};

}  // namespace

void top_model::add(top_snapshot now) {
  problem_.clear();
  const double seconds = now_ ? std::chrono::duration<double>(now.at - now_->at).count() : 0.0;
  rates_ = {};
  if (now_) {
    const engine_stats& a = now_->stats;
    const engine_stats& b = now.stats;
    rates_ = {rate(b.pushed, a.pushed, seconds), rate(b.acked, a.acked, seconds),
              rate(b.failed, a.failed, seconds), rate(b.commits, a.commits, seconds)};
  }
  std::map<std::string, queue_row, std::less<>> rows;
  for (const queue_info& q : now.queues) {
    queue_row& row = rows[q.name];
    if (const auto known = rows_.find(q.name); known != rows_.end()) {
      row.depth = std::move(known->second.depth);
    }
    const std::uint64_t depth = q.counts.unfinished();
    if (!row.depth.empty() && seconds > 0) {
      row.net_per_second =
          (static_cast<double>(depth) - static_cast<double>(row.depth.back())) / seconds;
    }
    row.depth.push_back(depth);
    if (row.depth.size() > history_max) row.depth.pop_front();
    row.info = q;
  }
  rows_ = std::move(rows);
  now_ = std::move(now);
}

queue_counts top_model::totals() const {
  queue_counts all;
  for (const auto& [name, row] : rows_) {
    for (int s = 0; s <= static_cast<int>(job_state::cancelled); ++s) {
      const auto state = static_cast<job_state>(s);
      all.of(state) += row.info.counts.of(state);
    }
    all.bytes += row.info.counts.bytes;
  }
  return all;
}

std::string_view to_string(top_order order) noexcept {
  switch (order) {
    case top_order::name:
      return "name";
    case top_order::depth:
      return "depth";
    case top_order::ready:
      return "ready";
    case top_order::running:
      return "running";
    case top_order::dead:
      return "dead";
  }
  return "unknown";
}

std::vector<const top_model::queue_row*> shown_queues(const top_model& seen, const top_choice& c) {
  std::vector<const top_model::queue_row*> shown;
  for (const auto& [name, row] : seen.queues()) {
    if (name.find(c.filter) != std::string::npos) shown.push_back(&row);
  }
  const auto by = [&](auto value) {
    std::ranges::stable_sort(shown, [&](const auto* a, const auto* b) {
      return value(a->info.counts) > value(b->info.counts);
    });
  };
  switch (c.order) {
    case top_order::name:
      break;  // as the map has them
    case top_order::depth:
      by([](const queue_counts& n) { return n.unfinished(); });
      break;
    case top_order::ready:
      by([](const queue_counts& n) { return n.ready; });
      break;
    case top_order::running:
      by([](const queue_counts& n) { return n.running; });
      break;
    case top_order::dead:
      by([](const queue_counts& n) { return n.dead; });
      break;
  }
  return shown;
}

std::size_t selected_place(const std::vector<const top_model::queue_row*>& shown,
                           const top_choice& c) {
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown[i]->info.name == c.selected) return i;
  }
  return 0;
}

std::string render_top(const top_model& seen, const top_choice& choice, const top_looks& looks) {
  return frame(seen, choice, looks).text();
}

std::string top_table(const top_model& seen, const top_looks& looks) {
  if (!seen.has_seen()) return "";
  const top_snapshot& now = seen.now();
  const engine_stats& s = now.stats;
  const top_model::rates& r = seen.per_second();
  std::string text = looks.url + ", " + format_time(now.wall) + ", " +
                     (now.health.takes_pushes ? "healthy" : "rejects pushes: " + now.health.reason);
  text += "\npushed " + per_second(r.pushed) + ", done " + per_second(r.done) + ", failed " +
          per_second(r.failed) + ", running " + grouped(s.running) + ", waiting " +
          counted(s.waiting_leases, "worker", "workers") + " and " +
          counted(s.waiting_pushes, "push", "pushes");
  text += "\ncommits " + per_second(r.commits) + ", p50 " + grouped(s.commit_p50_us) + " us, p99 " +
          grouped(s.commit_p99_us) + " us, " + grouped(s.commit_errors) + " failed\n\n";
  constexpr auto right = table::align::right;
  table t({{"QUEUE"},
           {"READY", right},
           {"HELD", right},
           {"SCHEDULED", right},
           {"RUNNING", right},
           {"RETRYING", right},
           {"DEAD", right},
           {"NET/S", right}});
  for (const auto& [name, row] : seen.queues()) {
    const queue_counts& n = row.info.counts;
    t.add({name, grouped(n.ready), grouped(n.held), grouped(n.scheduled), grouped(n.running),
           grouped(n.retrying), grouped(n.dead), net_text(row)});
  }
  return text + t.text(looks.style);
}

std::string compact(std::uint64_t number) {
  if (number < 10'000) return std::to_string(number);
  static constexpr std::array units = {"k", "M", "G", "T", "P", "E"};
  double value = static_cast<double>(number) / 1000;
  std::size_t unit = 0;
  // 999.5 and more would be shown as 1000.
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), value < 99.95 ? "%.1f%s" : "%.0f%s", value, units[unit]);
  return text.data();
}

std::string sparkline(const std::deque<std::uint64_t>& values, std::size_t columns, bool unicode) {
  static constexpr std::array<const char*, 8> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> letters = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const std::size_t from = values.size() > columns ? values.size() - columns : 0;
  std::uint64_t most = 1;
  for (std::size_t i = from; i < values.size(); ++i) most = std::max(most, values[i]);
  std::string text;
  for (std::size_t i = from; i < values.size(); ++i) {
    const double share = static_cast<double>(values[i]) / static_cast<double>(most);
    const auto level = std::min<std::size_t>(7, static_cast<std::size_t>(share * 8));
    text += unicode ? blocks[level] : letters[level];
  }
  return text;
}

}  // namespace sluice::jobs::cli
