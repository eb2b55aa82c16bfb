#include "jobs/json/json_reader.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "jobs/json/base64.hpp"
#include "jobs/json/detail/utf8.hpp"
#include "jobs/json/text.hpp"
#include "jobs/model/digit.hpp"

namespace sluice::jobs::json {
namespace {

constexpr std::size_t not_yet = static_cast<std::size_t>(-1);
constexpr std::size_t excerpt_bytes_max = 64;

// Returns the position, from `at` on, of the first byte that is not plain: a quote, a backslash, a
// control character or a byte of a multi-byte character. Tests eight bytes at a time: most of a
// text is inside of strings.
std::size_t skip_plain(std::string_view text, std::size_t at) {
  constexpr std::uint64_t each = 0x0101010101010101U;
  for (; text.size() - at >= 8; at += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + at, 8);
    const std::uint64_t special = ((eight - each * 0x20) | ((eight ^ each * '"') - each) |
                                   ((eight ^ each * '\\') - each) | eight) &
                                  each * 0x80;
    if (special == 0) continue;
    if constexpr (std::endian::native == std::endian::little) {
      return at + static_cast<std::size_t>(std::countr_zero(special)) / 8;
    }
    break;
  }
  while (at < text.size() && text[at] >= 0x20 && text[at] != '"' && text[at] != '\\') ++at;
  return at;
}

// Parses four hexadecimal digits; -1 if they are not.
int hex4(std::string_view text, std::size_t at) {
  int value = 0;
  if (text.size() - at < 4) return -1;
  const auto [end, failed] = std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
  return failed == std::errc{} && end == text.data() + at + 4 && text[at] != '-' ? value : -1;
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0U | code >> 6U);
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12U);
    put(0x80U | (code >> 6U & 0x3FU));
  } else {
    put(0xF0U | code >> 18U);
    put(0x80U | (code >> 12U & 0x3FU));
    put(0x80U | (code >> 6U & 0x3FU));
  }
  put(0x80U | (code & 0x3FU));
}

std::string shown(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

// Shortens input text for a message.
std::string_view excerpt(std::string_view text) {
  if (text.size() <= excerpt_bytes_max) return text;
  std::size_t end = excerpt_bytes_max;
  while (end > 0 && detail::is_continuation(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace

// ---- positions and errors

std::string json_reader::where(std::size_t at) const {
  const std::string_view before = text_.substr(0, at);
  const auto lines = static_cast<std::size_t>(std::ranges::count(before, '\n'));
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto column = std::ranges::count_if(before.substr(begin),
                                            [](char c) { return !detail::is_continuation(c); });
  return "line " + std::to_string(first_line_ + lines) + ", column " + std::to_string(column + 1);
}

std::string json_reader::path() const {
  std::string path;
  for (std::size_t i = 0; i < std::min(depth_, steps_.size()); ++i) {
    if (!steps_[i].name.empty()) {
      if (!path.empty()) path += '.';
      path += steps_[i].name;
    } else if (steps_[i].index != not_yet) {
      path += '[' + std::to_string(steps_[i].index) + ']';
    }
  }
  return path;
}

std::string json_reader::describe(std::size_t at) const {
  if (at >= text_.size()) return "the end of the text";
  const char c = text_[at];
  if (detail::utf8_length(text_, at) == 0) return "bytes that are not UTF-8";
  if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
    return "a control character (byte " + std::to_string(c) + ")";
  }
  return "'" + std::string(text_.substr(at, detail::utf8_length(text_, at))) + "'";
}

std::string_view json_reader::found(std::size_t at) const {
  if (at >= text_.size()) return "nothing";
  switch (text_[at]) {
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return "a string";
    case 't':
      return "true";
    case 'f':
      return "false";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

void json_reader::fail_syntax(std::size_t at, std::string_view sentence) {
  if (error_) return;
  error_ = error{error_code::invalid, where(at) + ": " + std::string(sentence)};
}

void json_reader::fail_at(std::size_t at, std::string_view sentence) {
  if (error_) return;
  const std::string named = path();
  if (named.empty()) return fail_syntax(at, sentence);
  error_ =
      error{error_code::invalid, named + ": " + std::string(sentence) + " (" + where(at) + ")"};
}

void json_reader::refuse(std::string_view sentence) {
  fail_at(value_at_, sentence);
}

void json_reader::refuse_object(std::string_view sentence) {
  fail_at(depth_ < opened_.size() ? opened_[depth_] : value_at_, sentence);
}

void json_reader::refuse_unknown(std::string_view key, std::string_view near,
                                 std::string_view all) {
  std::string sentence = "unknown field \"" + std::string(excerpt(key)) + '"';
  if (!near.empty()) {
    sentence += "; did you mean \"" + std::string(near) + "\"?";
  } else {
    sentence += "; known fields: " + std::string(all);
  }
  refuse(sentence);
}

// The number of letters to insert, remove, replace or swap with a neighbour. A prefix of at least
// three letters has distance 1.
std::size_t json_reader::distance(std::string_view a, std::string_view b) {
  if (a.size() > excerpt_bytes_max) return not_yet;
  if (a.size() >= 3 && b.starts_with(a)) return 1;
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t k = 0; k <= b.size(); ++k) {
      if (i == 0 || k == 0) {
        d[i][k] = i + k;
        continue;
      }
      const std::size_t changed = d[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1);
      d[i][k] = std::min({changed, d[i - 1][k] + 1, d[i][k - 1] + 1});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
        d[i][k] = std::min(d[i][k], d[i - 2][k - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

// ---- tokens

void json_reader::skip_space() noexcept {
  while (!at_end()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++at_;
  }
}

json_reader::kind json_reader::peek() noexcept {
  skip_space();
  if (at_end()) return kind::end;
  switch (text_[at_]) {
    case '{':
      return kind::object;
    case '[':
      return kind::array;
    case '"':
      return kind::string;
    case 't':
    case 'f':
      return kind::boolean;
    case 'n':
      return kind::null;
    default:
      return text_[at_] == '-' || is_digit(text_[at_]) ? kind::number : kind::other;
  }
}

// Moves to the next value; fails if its kind is not `wanted`: as a wrong value, or as invalid JSON
// if it is not a value.
bool json_reader::expect(kind wanted, std::string_view expected) {
  if (error_) return false;
  const kind there = peek();
  value_at_ = at_;
  if (there == wanted) return true;
  if (there == kind::end || there == kind::other) {
    fail_syntax(at_, "expected " + std::string(expected) + ", found " + describe(at_));
  } else {
    fail_at(at_, "expected " + std::string(expected) + ", found " + std::string(found(at_)));
  }
  return false;
}

// Starts at a quote; ends after the closing quote.
json_reader::scanned json_reader::scan_string() {
  const std::size_t begin = ++at_;
  bool escaped = false;
  while (true) {
    at_ = skip_plain(text_, at_);
    if (at_end()) {
      fail_syntax(begin - 1, "this string has no closing quote");
      return {};
    }
    const char c = text_[at_];
    if (c == '"') return {text_.substr(begin, at_++ - begin), escaped};
    if (c == '\\') {
      escaped = true;
      if (!scan_escape()) return {};
      continue;
    }
    const std::size_t length = detail::utf8_length(text_, at_);
    if (length < 2) {
      fail_syntax(at_, length == 0
                           ? "these bytes are not UTF-8"
                           : "a control character in a string must be written as an escape");
      return {};
    }
    at_ += length;
  }
}

bool json_reader::scan_escape() {
  const std::size_t begin = at_++;
  if (!at_end() && std::string_view("\"\\/bfnrt").find(text_[at_]) != std::string_view::npos) {
    ++at_;
    return true;
  }
  if (!at_end() && text_[at_] == 'u' && hex4(text_, at_ + 1) >= 0) {
    at_ += 5;
    return true;
  }
  fail_syntax(begin,
              "a backslash must be followed by one of \" \\ / b f n r t or by u and four "
              "hexadecimal digits");
  return false;
}

std::string_view json_reader::scan_number() {
  const std::size_t begin = at_;
  const auto digits = [&] {
    const std::size_t from = at_;
    while (!at_end() && is_digit(text_[at_])) ++at_;
    return at_ - from;
  };
  if (text_[at_] == '-') ++at_;
  const bool zero = !at_end() && text_[at_] == '0';
  const std::size_t whole = digits();
  bool good = whole > 0 && (!zero || whole == 1);
  if (!at_end() && text_[at_] == '.') {
    ++at_;
    good = digits() > 0 && good;
  }
  if (!at_end() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (!at_end() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    good = digits() > 0 && good;
  }
  if (!good) {
    fail_syntax(begin, "not a valid JSON number");
    return {};
  }
  return text_.substr(begin, at_ - begin);
}

bool json_reader::scan_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) {
    fail_syntax(at_,
                "expected a value: an object, an array, a string, a number, true, false or "
                "null; found " +
                    describe(at_));
    return false;
  }
  at_ += word.size();
  return true;
}

// Decodes escapes. Fails for a surrogate without its pair.
std::string_view json_reader::unescape(scanned s) {
  if (!s.escaped) return s.inside;
  scratch_.clear();
  const std::string_view in = s.inside;
  for (std::size_t i = 0; i < in.size();) {
    if (in[i] != '\\') {
      scratch_ += in[i++];
      continue;
    }
    const char c = in[i + 1];
    if (c != 'u') {
      static constexpr std::string_view escapes = "\"\\/bfnrt", decoded = "\"\\/\b\f\n\r\t";
      scratch_ += decoded[escapes.find(c)];
      i += 2;
      continue;
    }
    auto code = static_cast<unsigned>(hex4(in, i + 2));
    i += 6;
    if (code >= 0xD800 && code < 0xDC00 && in.substr(i).starts_with("\\u")) {
      const auto low = static_cast<unsigned>(hex4(in, i + 2));
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
        i += 6;
      }
    }
    if (code >= 0xD800 && code < 0xE000) {
      fail_at(value_at_, "half of a surrogate pair (\\u" + std::string(in.substr(i - 4, 4)) +
                             ") is not a character");
      return {};
    }
    append_utf8(scratch_, code);
  }
  return scratch_;
}

// ---- objects and arrays

bool json_reader::open(char bracket, std::string_view expected) {
  if (!expect(bracket == '{' ? kind::object : kind::array, expected)) return false;
  if (depth_ == depth_max) {
    fail_syntax(at_, "nested deeper than " + std::to_string(depth_max) + " levels");
    return false;
  }
  if (depth_ < steps_.size()) {
    steps_[depth_] = {{}, not_yet};
    opened_[depth_] = at_;
  }
  levels_[depth_] = {.fresh = true, .is_array = bracket == '['};
  ++depth_;
  ++at_;
  return true;
}

void json_reader::begin_object() {
  open('{', "an object");
}

void json_reader::begin_array() {
  open('[', "an array");
}

// Returns true if a member or element follows, false at the end of the object or array.
bool json_reader::close_or_comma(char bracket, bool& first) {
  skip_space();
  if (!at_end() && text_[at_] == bracket) {
    ++at_;
    --depth_;
    return false;
  }
  if (std::exchange(first, false)) return true;
  if (at_end() || text_[at_] != ',') {
    fail_syntax(at_, std::string("expected ',' or '") + bracket + "', found " + describe(at_));
    return false;
  }
  ++at_;
  return true;
}

bool json_reader::next_key(std::string_view& key) {
  if (error_ || depth_ == 0) return false;
  if (depth_ <= steps_.size()) steps_[depth_ - 1] = {{}, not_yet};
  if (!close_or_comma('}', levels_[depth_ - 1].fresh)) return false;
  skip_space();
  value_at_ = at_;
  if (at_end() || text_[at_] != '"') {
    fail_syntax(at_, "expected the name of a member, in quotes, found " + describe(at_));
    return false;
  }
  key = unescape(scan_string());
  skip_space();
  if (!error_ && (at_end() || text_[at_] != ':')) {
    fail_syntax(at_, "expected ':' after the name of a member, found " + describe(at_));
  }
  if (error_) return false;
  ++at_;
  return true;
}

bool json_reader::next_element() {
  if (error_ || depth_ == 0) return false;
  if (!close_or_comma(']', levels_[depth_ - 1].fresh)) return false;
  if (depth_ <= steps_.size()) ++steps_[depth_ - 1].index;  // not_yet + 1 is 0
  return true;
}

void json_reader::name_member(std::string_view name) noexcept {
  if (depth_ > 0 && depth_ <= steps_.size()) steps_[depth_ - 1].name = name;
}

void_result json_reader::finish() {
  skip_space();
  if (!error_ && !at_end()) {
    fail_syntax(at_, "expected the end of the text after the value, found " + describe(at_));
  }
  if (error_) return *error_;
  return done{};
}

// ---- values

std::string_view json_reader::word() {
  if (!expect(kind::string, "a string")) return {};
  return unescape(scan_string());
}

std::string json_reader::string() {
  return std::string(word());
}

void json_reader::fail_number(std::size_t at, std::string_view expected, const std::string& least,
                              const std::string& most) {
  fail_at(at, "expected " + std::string(expected) + " from " + least + " to " + most + ", found " +
                  std::string(excerpt(text_.substr(at, at_ - at))));
}

std::int64_t json_reader::whole(std::int64_t least, std::int64_t most) {
  const auto range = [&] { return std::to_string(least) + " to " + std::to_string(most); };
  if (error_ ||
      (peek() != kind::number && !expect(kind::number, "a whole number from " + range()))) {
    return 0;
  }
  const std::size_t begin = value_at_ = at_;
  const std::string_view digits = scan_number();
  if (error_) return 0;
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  auto read = std::from_chars(digits.data(), end, value);
  if (read.ec == std::errc{} && read.ptr != end) {  // 5.0 and 1e3 are whole numbers too
    double exact = 0;
    read.ec = std::from_chars(digits.data(), end, exact).ec;
    if (std::trunc(exact) == exact && std::abs(exact) <= 9007199254740992.0) {
      value = static_cast<std::int64_t>(exact);
      read.ptr = end;
    }
  }
  if (read.ec != std::errc{} || read.ptr != end || value < least || value > most) {
    fail_number(begin, "a whole number", std::to_string(least), std::to_string(most));
    return 0;
  }
  return value;
}

std::uint64_t json_reader::natural(std::uint64_t least, std::uint64_t most) {
  constexpr auto signed_most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::uint64_t>(whole(static_cast<std::int64_t>(std::min(least, signed_most)),
                                          static_cast<std::int64_t>(std::min(most, signed_most))));
}

double json_reader::number(double least, double most) {
  if (error_ || (peek() != kind::number &&
                 !expect(kind::number, "a number from " + shown(least) + " to " + shown(most)))) {
    return 0;
  }
  const std::size_t begin = value_at_ = at_;
  const std::string_view digits = scan_number();
  if (error_) return 0;
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc{} || !(value >= least && value <= most)) {
    fail_number(begin, "a number", shown(least), shown(most));
    return 0;
  }
  return value;
}

bool json_reader::boolean() {
  if (!expect(kind::boolean, "true or false")) return false;
  const bool yes = text_[at_] == 't';
  return scan_word(yes ? "true" : "false") && yes;
}

bool json_reader::skip_null() noexcept {
  if (error_ || peek() != kind::null || text_.substr(at_, 4) != "null") return false;
  value_at_ = at_;
  at_ += 4;
  return true;
}

milliseconds json_reader::duration() {
  constexpr double longest = 1e10;
  if (error_) return milliseconds(0);
  skip_space();
  value_at_ = at_;
  auto read = peek() == kind::number ? duration_of_seconds(number(0, longest))
                                     : parse_duration(peek() == kind::string ? word() : "");
  if (!read) refuse(read.error().message);
  return read ? *read : milliseconds(0);
}

unix_time json_reader::time() {
  auto read = parse_time(word());
  if (!read) refuse(read.error().message);
  return read ? *read : unix_time{};
}

std::string json_reader::base64() {
  auto bytes = from_base64(word());
  if (!bytes) refuse("expected bytes as base64");
  return bytes ? std::move(*bytes) : std::string();
}

void json_reader::scan_scalar() {
  switch (peek()) {
    case kind::string:
      scan_string();
      return;
    case kind::number:
      scan_number();
      return;
    case kind::boolean:
      scan_word(text_[at_] == 't' ? "true" : "false");
      return;
    case kind::null:
      scan_word("null");
      return;
    default:
      scan_word("a value");  // fails
  }
}

std::string_view json_reader::raw() {
  if (error_) return {};
  skip_space();
  const std::size_t begin = value_at_ = at_;
  const std::size_t outside = depth_;
  std::string_view key;
  do {
    const kind there = peek();
    if (there == kind::object || there == kind::array) {
      open(text_[at_], "a value");
    } else {
      scan_scalar();
    }
    // Moves to the next value, or out of all objects and arrays that were opened here.
    while (!error_ && depth_ > outside &&
           !(levels_[depth_ - 1].is_array ? next_element() : next_key(key))) {
    }
  } while (!error_ && depth_ > outside);
  value_at_ = begin;
  return error_ ? std::string_view() : text_.substr(begin, at_ - begin);
}

std::string_view json_reader::raw_object() {
  if (!expect(kind::object, "an object")) return {};
  return raw();
}

}  // namespace sluice::jobs::json
