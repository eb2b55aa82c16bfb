#pragma once

// Formats rows and columns for people: columns fit their content, numbers are right-aligned.
//
//     table t({{"NAME"}, {"READY", table::align::right}});
//     t.add({"default", "12"});
//     console.print(t.text(console.style()));

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jobs::cli {

// Escape sequences for colours, or none if the output does not support them.
struct text_style {
  bool colours = false;

  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string faint(std::string_view text) const { return wrap("2", text); }
  std::string red(std::string_view text) const { return wrap("31", text); }
  std::string green(std::string_view text) const { return wrap("32", text); }
  std::string yellow(std::string_view text) const { return wrap("33", text); }
  std::string inverse(std::string_view text) const { return wrap("7", text); }

 private:
  std::string wrap(std::string_view code, std::string_view text) const;
};

class table {
 public:
  enum class align : std::uint8_t { left, right };
  struct column {
    std::string title;
    align alignment = align::left;
  };

  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}

  // Must have one cell per column.
  void add(std::vector<std::string> cells);
  bool empty() const noexcept { return rows_.empty(); }

  // Returns a title line and one line per row.
  std::string text(const text_style& style = {}) const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Approximates the width on a terminal: counts code points.
std::size_t width_of(std::string_view text) noexcept;

}  // namespace sluice::jobs::cli
