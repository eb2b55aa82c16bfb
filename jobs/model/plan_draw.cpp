// Draws the depth of a planned queue over time for a terminal.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "jobs/model/detail/plan_words.hpp"
#include "jobs/model/plan.hpp"

namespace sluice::jobs {
namespace detail {

std::string short_number(double value) {
  static constexpr std::array<const char*, 5> units = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  // Three digits, without trailing zeros.
  std::snprintf(text.data(), text.size(), "%.*f",
                value >= 99.95   ? 0
                : value >= 9.995 ? 1
                                 : 2,
                value);
  std::string out = text.data();
  if (out.find('.') != std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
  }
  return out + units[unit];
}

std::string short_duration(plan_seconds d) {
  const double s = d.count();
  if (s <= 0) return "0s";
  if (s < 0.9995) return short_number(s * 1000) + "ms";
  if (s < 59.95) return short_number(s) + "s";
  const auto pair = [](long long large, const char* one, long long small, const char* two) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%lld%s%02lld%s", large, one, small, two);
    return small == 0 ? std::to_string(large) + one : std::string(text.data());
  };
  const auto whole = std::llround(s);
  if (whole < 3600) return pair(whole / 60, "m", whole % 60, "s");
  const auto minutes = std::llround(s / 60);
  if (minutes < 2880) return pair(minutes / 60, "h", minutes % 60, "m");
  const auto hours = std::llround(s / 3600);
  return pair(hours / 24, "d", hours % 24, "h");
}

}  // namespace detail

namespace {

using detail::short_duration;
using detail::short_number;

constexpr std::size_t label_columns = 8;  // before the bars: a number, a space, the axis

std::string right_aligned(const std::string& text, std::size_t columns) {
  return text.size() >= columns ? text : std::string(columns - text.size(), ' ') + text;
}

// Each bar shows the maximum of its interval, so that the peak is visible however narrow it is.
std::vector<double> bars_of(const plan& p, std::size_t columns) {
  std::vector<double> bars(columns);
  const plan_seconds width = p.span() / static_cast<double>(columns);
  for (std::size_t i = 0; i < columns; ++i) {
    const plan_seconds from = width * static_cast<double>(i);
    bars[i] = std::max(p.depth_at(from), p.depth_at(from + width));
    if (p.peak_at >= from && p.peak_at <= from + width) bars[i] = std::max(bars[i], p.peak);
  }
  return bars;
}

std::string row_of(const std::vector<double>& bars, double top, std::size_t row, std::size_t rows) {
  static constexpr std::array<const char*, 9> blocks = {" ", "▁", "▂", "▃", "▄",
                                                        "▅", "▆", "▇", "█"};
  std::string out;
  for (const double bar : bars) {
    const double filled = bar / top * static_cast<double>(rows) - static_cast<double>(row);
    long eighths = std::lround(std::clamp(filled, 0.0, 1.0) * 8);
    if (row == 0 && bar > 0) eighths = std::max(eighths, 1L);  // a small value stays visible
    out += blocks[static_cast<std::size_t>(eighths)];
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

// The labels of the time axis: the start, the end of the burst, the end.
std::string time_labels(const plan& p, std::size_t columns) {
  std::string line(columns + label_columns, ' ');
  std::size_t taken_to = 0;
  const auto put = [&](const std::string& text, std::size_t at) {
    at = std::min(at, line.size() - text.size());
    if (at < taken_to) return;
    line.replace(at, text.size(), text);
    taken_to = at + text.size() + 1;
  };
  const std::string end = short_duration(p.span());
  const double share = p.asked.burst_for / p.span();
  const std::string burst = short_duration(p.asked.burst_for) + " (burst ends)";
  put("0s", label_columns);
  const auto at =
      label_columns + static_cast<std::size_t>(share * static_cast<double>(columns - 1));
  if (p.asked.burst_for.count() > 0 && at + burst.size() + end.size() + 1 <= line.size()) {
    put(burst, at);
  }
  put(end, line.size() - end.size());
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string draw(const plan& p, const chart_size& size) {
  const std::size_t columns = std::clamp<std::size_t>(size.columns, 30, 400) - label_columns;
  const std::size_t rows = std::clamp<std::size_t>(size.rows, 4, 100) - 2;
  const std::vector<double> bars = bars_of(p, columns);
  const double top = std::max(1.0, *std::ranges::max_element(bars));
  std::string out;
  for (std::size_t row = rows; row-- > 0;) {
    const bool is_top = row + 1 == rows;
    const bool is_middle = row + 1 == (rows + 1) / 2 && rows >= 4;
    std::string label;
    if (is_top) label = short_number(top);
    if (is_middle) {
      label = short_number(top * static_cast<double>(row + 1) / static_cast<double>(rows));
    }
    out += right_aligned(label, label_columns - 2) + (label.empty() ? " │" : " ┤");
    out += row_of(bars, top, row, rows) + "\n";
  }
  out += right_aligned("0", label_columns - 2) + " └";
  for (std::size_t i = 0; i < columns; ++i) out += "─";
  return out + "\n" + time_labels(p, columns) + "\n";
}

}  // namespace sluice::jobs
