#pragma once

// Describes the fields of a JSON object: tables of names, each with the function that reads its
// value.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/json/json_reader.hpp"

namespace sluice::jobs::json::detail {

enum class field_rule : std::uint8_t {
  optional,  // may be missing; null counts as missing
  required,
  as_written,  // optional, and null is an ordinary value
};

template <class T>
struct field {
  std::string_view name;
  void (*read)(json_reader& in, T& into);
  field_rule rule = field_rule::optional;
};

template <class Fields>
void append_names(std::vector<std::string_view>& names, const Fields& fields) {
  for (const auto& f : fields) names.push_back(f.name);
}

// Reads the member `key` if a field has that name; returns false otherwise. `base` is the number of
// the first field of this table among all fields of the object; `seen` has one bit per field.
template <class T, class Fields>
bool read_member(json_reader& in, T& into, std::string_view key, std::uint64_t& seen,
                 const Fields& fields, unsigned base) {
  for (unsigned i = 0; i < std::size(fields); ++i) {
    const auto& f = fields[i];
    if (f.name != key) continue;
    const std::uint64_t bit = std::uint64_t{1} << (base + i);
    in.name_member(f.name);
    if ((seen & bit) != 0) {
      in.refuse("duplicate field");
      return true;
    }
    seen |= bit;
    if (f.rule == field_rule::as_written || !in.skip_null()) f.read(in, into);
    return true;
  }
  return false;
}

template <class Fields>
void check_required(json_reader& in, std::uint64_t seen, const Fields& fields, unsigned base) {
  for (unsigned i = 0; i < std::size(fields); ++i) {
    if (fields[i].rule != field_rule::required || (seen >> (base + i) & 1U) != 0) continue;
    in.refuse_object("the field \"" + std::string(fields[i].name) + "\" is missing");
  }
}

// Reads the remaining members of an open object, up to its end. `first` is the name of the first
// member if the caller has read it already. At most 64 fields.
template <class T, class... Tables>
void read_members(json_reader& in, T& into, std::optional<std::string_view> first,
                  const Tables&... tables) {
  static_assert((std::size_t{0} + ... + std::tuple_size_v<Tables>) <= 64);
  std::uint64_t seen = 0;
  std::string_view key = first.value_or("");
  bool more = first || in.next_key(key);
  while (more) {
    unsigned base = 0;
    const bool known = (([&] {
                          const unsigned here = base;
                          base += static_cast<unsigned>(std::size(tables));
                          return read_member(in, into, key, seen, tables, here);
                        }()) ||
                        ...);
    if (!known && in.policy() == json_reader::unknown_fields::skipped) {
      in.skip();
    } else if (!known) {
      std::vector<std::string_view> names;
      (append_names(names, tables), ...);
      in.refuse_key(key, names);
    }
    more = in.next_key(key);
  }
  if (!in.ok()) return;
  unsigned base = 0;
  (([&] {
     check_required(in, seen, tables, base);
     base += static_cast<unsigned>(std::size(tables));
   }()),
   ...);
}

template <class T, class... Tables>
void read_object(json_reader& in, T& into, const Tables&... tables) {
  in.begin_object();
  read_members(in, into, std::nullopt, tables...);
}

}  // namespace sluice::jobs::json::detail
