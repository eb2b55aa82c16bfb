#include "sluice/actor/detail/json_text.hpp"

#include <cstddef>

namespace sluice::detail {
namespace {

constexpr bool continues(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

// How many bytes the character that begins here has; 0: it is none.
std::size_t character_bytes(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xc2 && first < 0xe0   ? 2
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xf0 && first < 0xf5 ? 4
                                                            : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text[i])) return 0;
  }
  // Too long a form, a surrogate, or past the last character.
  const auto second = static_cast<unsigned char>(text[1]);
  const bool is_bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return is_bad ? 0 : bytes;
}

void append_ascii(std::string& to, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  switch (c) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(c);
  if (code >= 0x20 && code != 0x7f) {
    to += c;
    return;
  }
  to += "\\u00";
  to += digits[code >> 4U];
  to += digits[code & 0xfU];
}

void append_key(std::string& to, std::string_view key) {
  if (!to.empty() && to.back() != '{') to += ',';
  append_json_string(to, key);
  to += ':';
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) {
      to += "\xef\xbf\xbd";
    } else if (bytes == 1) {
      append_ascii(to, text[0]);
    } else {
      to += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  to += '"';
}

void append_json_field(std::string& to, std::string_view key, std::string_view text) {
  append_key(to, key);
  append_json_string(to, text);
}

void append_json_field(std::string& to, std::string_view key, std::uint64_t number) {
  append_key(to, key);
  to += std::to_string(number);
}

}  // namespace sluice::detail
