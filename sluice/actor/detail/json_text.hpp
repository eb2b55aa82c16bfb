#pragma once

// Writes JSON for programs that read what actors did. Names are user input, so they are escaped.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::detail {

// Appends `text` in quotes. Invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// Appends "key":"text" or "key":number, preceded by a comma unless it is the first field.
void append_json_field(std::string& out, std::string_view key, std::string_view text);
void append_json_field(std::string& out, std::string_view key, std::uint64_t number);

}  // namespace sluice::detail
