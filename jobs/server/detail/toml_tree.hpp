#pragma once

// A TOML document as a tree of plain values, each with the position of its key.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

struct toml_value {
  enum class type : std::uint8_t { string, whole, real, boolean, time, array, table };

  type kind = type::table;
  std::string text{};  // of a string; otherwise as written (not for arrays and tables)
  bool boolean = false;
  std::size_t line = 0;  // from 1
  std::size_t column = 0;
  std::vector<toml_value> items{};                            // of an array
  std::vector<std::pair<std::string, toml_value>> members{};  // of a table

  std::string_view type_name() const noexcept;  // "a string"
};

// An error has the position: "NAME:12:3: ...".
result<toml_value> read_toml(std::string_view text, std::string_view name);

// Converts to JSON; a time becomes a string.
std::string to_json(const toml_value& value);

}  // namespace sluice::jobs::detail
