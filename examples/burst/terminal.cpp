#include "examples/burst/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace burst {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// True unless the locale names another character set. A locale without a character set, as in a
// container, does not describe the terminal outside.
bool locale_allows_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto value = environment(name);
    if (value.empty()) continue;
    const auto dot = value.find('.');
    if (dot == std::string_view::npos) return true;
    const auto charset = value.substr(dot + 1);
    return charset.starts_with("UTF") || charset.starts_with("utf");
  }
  return true;
}

// Advances over one character or one escape code. Returns the columns it takes.
std::size_t step(std::string_view text, std::size_t& at) {
  if (text[at] == '\x1b') {
    while (at < text.size() && text[at] != 'm') ++at;
    if (at < text.size()) ++at;
    return 0;
  }
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
  return 1;
}

}  // namespace

terminal::terminal(bool ascii)
    : is_live_(isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb"),
      is_unicode_(!ascii && is_live_ && locale_allows_unicode()),
      has_colours_(is_live_ && environment("NO_COLOR").empty()) {}

size terminal::size() const noexcept {
  winsize window{};
  if (!is_live_ || ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return {};
  return {window.ws_col, window.ws_row};
}

std::string terminal::paint(std::string_view text, colour c) const {
  static constexpr std::array<std::string_view, 7> codes = {
      "", "\x1b[2m", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[36m"};
  if (!has_colours_ || c == colour::none) return std::string(text);
  return std::string(codes[static_cast<std::size_t>(c)]) + std::string(text) + "\x1b[0m";
}

std::string bar(double share, std::size_t columns, bool unicode) {
  static constexpr std::array<std::string_view, 8> parts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const std::size_t steps = unicode ? parts.size() : 1;
  const auto whole = static_cast<double>(columns * steps);
  const auto filled = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * whole));
  std::string drawn;
  for (std::size_t i = 0; i < filled / steps; ++i) drawn += unicode ? "█" : "#";
  drawn += parts[filled % steps];
  for (std::size_t used = columns_of(drawn); used < columns; ++used) drawn += unicode ? "░" : ".";
  return drawn;
}

std::string_view level(double share, bool unicode) {
  static constexpr std::array<std::string_view, 9> blocks = {" ", "▁", "▂", "▃", "▄",
                                                             "▅", "▆", "▇", "█"};
  static constexpr std::array<std::string_view, 9> letters = {" ", ".", ":", "-", "=",
                                                              "+", "*", "%", "#"};
  // Rounded up, so that a small value is visible.
  const auto at = static_cast<std::size_t>(std::ceil(std::clamp(share, 0.0, 1.0) * 8));
  return unicode ? blocks[at] : letters[at];
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) columns += step(text, at);
  return columns;
}

std::string clip(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    used += step(text, at);
    if (used > columns) {
      const bool coloured = text.find('\x1b') < start;
      return std::string(text.substr(0, start)) + (coloured ? "\x1b[0m" : "");
    }
  }
  return std::string(text);
}

std::string pad_left(std::string_view text, std::size_t columns) {
  const auto used = columns_of(text);
  return std::string(columns > used ? columns - used : 0, ' ') + std::string(text);
}

std::string pad_right(std::string_view text, std::size_t columns) {
  const auto used = columns_of(text);
  return std::string(text) + std::string(columns > used ? columns - used : 0, ' ');
}

}  // namespace burst
