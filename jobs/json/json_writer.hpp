#pragma once

// Appends JSON to a string, without a tree.
//
// Guarantees: the output is valid JSON if every key is followed by one value, every begin has its
// end, and the argument of `raw` is JSON. Strings may have any bytes: bytes that are not UTF-8 (the
// end of a program's standard error, cut anywhere) are written as U+FFFD. Compact, no white space.
// Cost: appends; the only allocation is the growth of the string.
//
//     json_writer(out).begin_object().key("id").value(42).key("state").value("ready").end_object();

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "jobs/model/time.hpp"

namespace sluice::jobs::json {

class json_writer {
 public:
  explicit json_writer(std::string& out) noexcept : out_(out) {}

  json_writer& begin_object() { return begin('{'); }
  json_writer& end_object() { return end('}'); }
  json_writer& begin_array() { return begin('['); }
  json_writer& end_array() { return end(']'); }
  json_writer& key(std::string_view name);  // not escaped: plain letters only

  json_writer& value(std::string_view text);
  json_writer& value(const char* text) { return value(std::string_view(text)); }
  json_writer& value(std::same_as<bool> auto yes) { return raw(yes ? "true" : "false"); }
  json_writer& value(std::integral auto number) requires(!std::same_as<decltype(number), bool>) {
    if constexpr (std::signed_integral<decltype(number)>) {
      return signed_number(number);
    } else {
      return unsigned_number(number);
    }
  }
  json_writer& value(double number);  // null for NaN and infinity
  json_writer& value(milliseconds duration);
  json_writer& value(unix_time time);
  json_writer& base64(std::string_view bytes);
  json_writer& null() { return raw("null"); }
  json_writer& raw(std::string_view json);

 private:
  json_writer& begin(char bracket);
  json_writer& end(char bracket);
  json_writer& signed_number(std::int64_t number);
  json_writer& unsigned_number(std::uint64_t number);
  void separate() {
    if (comma_) out_ += ',';
    comma_ = true;
  }

  std::string& out_;
  bool comma_ = false;  // the next value needs a comma before it
};

}  // namespace sluice::jobs::json
