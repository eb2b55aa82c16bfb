#pragma once

// Writes JSON for programs that read what actors did: names come from users, so they are escaped.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::detail {

// In quotes. What is not UTF-8 becomes U+FFFD.
void append_json_string(std::string& to, std::string_view text);

// "key":"text" and "key":number, with a comma in front unless it is the first of its object.
void append_json_field(std::string& to, std::string_view key, std::string_view text);
void append_json_field(std::string& to, std::string_view key, std::uint64_t number);

}  // namespace sluice::detail
