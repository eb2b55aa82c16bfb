#pragma once

// Rows and columns for people: columns as wide as what is in them, numbers to the right.
//
//     table t({{"NAME"}, {"READY", table::align::right}});
//     t.add({"default", "12"});
//     console.print(t.text(console.style()));

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jobs::cli {

// Escape sequences, or none where they would be seen as such.
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
    align to = align::left;
  };

  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns.
  void add(std::vector<std::string> cells);
  bool empty() const noexcept { return rows_.empty(); }

  // A line for the titles and one for each row.
  std::string text(const text_style& style = {}) const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Characters as a terminal counts them, near enough: bytes that begin one.
std::size_t width_of(std::string_view text) noexcept;

}  // namespace sluice::jobs::cli
