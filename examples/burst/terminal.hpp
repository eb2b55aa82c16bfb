#pragma once

// Properties of standard output: whether it is a terminal, its size and its characters.

#include <cstddef>
#include <string>
#include <string_view>

namespace burst {

struct size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

class terminal {
 public:
  enum class colour { none, dim, bold, green, yellow, red, cyan };

  explicit terminal(bool ascii);

  // True for a terminal on which lines can be redrawn.
  bool is_live() const noexcept { return is_live_; }
  bool is_unicode() const noexcept { return is_unicode_; }
  burst::size size() const noexcept;

  // Returns the text in a colour, if colours are enabled.
  std::string paint(std::string_view text, colour c) const;

 private:
  bool is_live_;
  bool is_unicode_;
  bool has_colours_;
};

// Left to right from empty to full, in eighths of a character.
std::string bar(double share, std::size_t columns, bool unicode);
// One character for each value between 0 and 1.
std::string_view level(double share, bool unicode);

// Returns the width in columns: escape codes and UTF-8 continuation bytes have none.
std::size_t columns_of(std::string_view text);
// Returns the text, cut after that many columns.
std::string clip(std::string_view text, std::size_t columns);
std::string pad_left(std::string_view text, std::size_t columns);
std::string pad_right(std::string_view text, std::size_t columns);

}  // namespace burst
