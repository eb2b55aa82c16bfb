#include "sluice/sim/detail/report.hpp"

#include <algorithm>

namespace sluice::sim::detail {
namespace {

constexpr std::size_t width = 32;

std::string padded(std::string text, std::size_t length) {
  if (text.size() < length) text.append(length - text.size(), ' ');
  return text;
}

}  // namespace

std::string place(const std::source_location& where) {
  if (where.line() == 0) return {};
  std::string file = where.file_name();
  if (const auto cut = file.rfind('/'); cut != std::string::npos) file.erase(0, cut + 1);
  return file + ":" + std::to_string(where.line());
}

std::string in_columns(const written_steps& steps, const std::vector<std::string>& names) {
  const auto& lines = steps.lines;
  // Only threads with a shown step have a column.
  std::vector<std::size_t> column(names.size(), names.size());
  std::vector<std::size_t> shown;
  const auto first =
      lines.size() > written_steps::lines_max ? lines.size() - written_steps::lines_max : 0;
  for (auto i = first; i < lines.size(); ++i) {
    auto& entry = column[lines[i].thread];
    if (entry != names.size()) continue;
    entry = 0;
    shown.push_back(lines[i].thread);
  }
  std::ranges::sort(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) column[shown[i]] = i;

  std::vector<const call_stack*> unresolved;
  for (auto i = first; i < lines.size(); ++i) {
    if (lines[i].where.line() == 0) unresolved.push_back(&lines[i].calls);
  }
  find_lines(unresolved);

  std::string text = padded("step", 7);
  for (const auto thread : shown) text += padded(names[thread], width);
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  const auto before = steps.before + first;
  if (before > 0) text += "       (" + std::to_string(before) + " lines before these)\n";
  for (auto i = first; i < lines.size(); ++i) {
    const auto& line = lines[i];
    std::string row = padded(std::to_string(line.step), 7);
    row.append(column[line.thread] * width, ' ');
    row += line.text;
    const auto where = line.where.line() != 0 ? place(line.where) : caller_line(line.calls);
    if (!where.empty()) row = padded(row, 7 + shown.size() * width) + "  " + where;
    text += row + "\n";
  }
  return text;
}

}  // namespace sluice::sim::detail
