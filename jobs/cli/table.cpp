#include "jobs/cli/table.hpp"

#include <algorithm>

#include "sluice/base/check.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr std::string_view gap = "  ";

}  // namespace

std::string text_style::wrap(std::string_view code, std::string_view text) const {
  if (!colours) return std::string(text);
  return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

std::size_t width_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void table::add(std::vector<std::string> cells) {
  check(cells.size() == columns_.size(), "sluice::jobs::cli::table", "one cell per column");
  rows_.push_back(std::move(cells));
}

std::string table::text(const text_style& style) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& cell = cell_of(c);
      const std::string padding(widths[c] - width_of(cell), ' ');
      if (c > 0) line += gap;
      line += columns_[c].alignment == align::right ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  text +=
      style.bold(add_line([&](std::size_t c) -> const std::string& { return columns_[c].title; }));
  text += '\n';
  for (const auto& row : rows_) {
    text += add_line([&](std::size_t c) -> const std::string& { return row[c]; });
    text += '\n';
  }
  return text;
}

}  // namespace sluice::jobs::cli
