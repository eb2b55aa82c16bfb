#include "jobs/json/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "jobs/json/base64.hpp"
#include "jobs/json/detail/utf8.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::json {
namespace {

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_escape(std::string& out, char c) {
  static constexpr std::string_view hex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  out += "\\u00";
  out += hex[static_cast<unsigned char>(c) >> 4U];
  out += hex[static_cast<unsigned char>(c) & 15U];
}

bool is_plain(char c) {
  return c >= 0x20 && c != '"' && c != '\\' && c != 0x7F;
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t from = i;
    while (i < text.size() && is_plain(text[i])) ++i;
    out += text.substr(from, i - from);
    if (i == text.size()) break;
    const std::size_t length = detail::utf8_length(text, i);
    if (length > 1) {
      out += text.substr(i, length);
    } else if (length == 1) {
      append_escape(out, text[i]);
    } else {
      out += "\xEF\xBF\xBD";
    }
    i += length == 0 ? 1 : length;
  }
  out += '"';
}

}  // namespace

json_writer& json_writer::begin(char bracket) {
  separate();
  out_ += bracket;
  comma_ = false;
  return *this;
}

json_writer& json_writer::end(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

json_writer& json_writer::key(std::string_view name) {
  separate();
  out_ += '"';
  out_ += name;
  out_ += "\":";
  comma_ = false;
  return *this;
}

json_writer& json_writer::value(std::string_view text) {
  separate();
  append_string(out_, text);
  return *this;
}

json_writer& json_writer::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  append_number(out_, number);
  return *this;
}

json_writer& json_writer::value(milliseconds duration) {
  return value(format_duration(duration));
}

json_writer& json_writer::value(unix_time time) {
  return value(format_time(time));
}

json_writer& json_writer::base64(std::string_view bytes) {
  separate();
  out_ += '"';
  append_base64(out_, bytes);
  out_ += '"';
  return *this;
}

json_writer& json_writer::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

json_writer& json_writer::signed_number(std::int64_t number) {
  separate();
  append_number(out_, number);
  return *this;
}

json_writer& json_writer::unsigned_number(std::uint64_t number) {
  separate();
  append_number(out_, number);
  return *this;
}

}  // namespace sluice::jobs::json
