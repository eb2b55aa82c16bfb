// The only source that uses toml++.
// Compiled here, and not linked: the library of the system is built with exceptions.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 1
#define TOML_MAX_NESTED_VALUES 32
// toml++ asserts, and without assertions assumes, that a table's name begins as a key does, before
// checking it. The input may be any text.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include "jobs/server/detail/toml_tree.hpp"

#include <toml++/impl/forward_declarations.h>
// toml++'s table of spaces beyond ASCII declares every letter from U+00A1 to U+0499 impossible,
// which is undefined behaviour. They are no spaces.
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>

#include <sstream>

#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::detail {
namespace {

using type = toml_value::type;

toml_value value_of(const toml::node& from, const toml::source_region& where);

template <class T>
std::string as_written(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

void fill_table(toml_value& into, const toml::table& from) {
  into.kind = type::table;
  for (const auto& [key, value] : from) {
    // The position of a table is its header, that of a value its key.
    into.members.emplace_back(std::string(key.str()), value_of(value, key.source()));
  }
}

toml_value value_of(const toml::node& from, const toml::source_region& where) {
  toml_value v;
  v.line = where.begin.line;
  v.column = where.begin.column;
  if (const auto* table = from.as_table()) {
    fill_table(v, *table);
  } else if (const auto* array = from.as_array()) {
    v.kind = type::array;
    for (const auto& item : *array) v.items.push_back(value_of(item, item.source()));
  } else if (const auto* text = from.as_string()) {
    v.kind = type::string;
    v.text = text->get();
  } else if (const auto* whole = from.as_integer()) {
    v.kind = type::whole;
    v.text = std::to_string(whole->get());
  } else if (const auto* real = from.as_floating_point()) {
    v.kind = type::real;
    v.text = as_written(*real);
  } else if (const auto* boolean = from.as_boolean()) {
    v.kind = type::boolean;
    v.boolean = boolean->get();
    v.text = v.boolean ? "true" : "false";
  } else {
    v.kind = type::time;
    if (const auto* date = from.as_date()) v.text = as_written(date->get());
    if (const auto* time = from.as_time()) v.text = as_written(time->get());
    if (const auto* both = from.as_date_time()) v.text = as_written(both->get());
  }
  return v;
}

void write_json(json::json_writer& w, const toml_value& v) {
  switch (v.kind) {
    case type::string:
    case type::time:
      w.value(v.text);
      return;
    case type::whole:
    case type::boolean:
      w.raw(v.text);
      return;
    case type::real:
      // JSON has no inf and nan.
      w.raw(v.text.find_first_of("in") == std::string::npos ? v.text : "null");
      return;
    case type::array:
      w.begin_array();
      for (const toml_value& item : v.items) write_json(w, item);
      w.end_array();
      return;
    case type::table:
      w.begin_object();
      for (const auto& [name, value] : v.members) {
        std::string quoted;
        json::json_writer(quoted).value(name);
        w.key(std::string_view(quoted).substr(1, quoted.size() - 2));
        write_json(w, value);
      }
      w.end_object();
  }
}

}  // namespace

std::string_view toml_value::type_name() const noexcept {
  switch (kind) {
    case type::string:
      return "a string";
    case type::whole:
      return "a whole number";
    case type::real:
      return "a number";
    case type::boolean:
      return "true or false";
    case type::time:
      return "a date or a time";
    case type::array:
      return "an array";
    case type::table:
      break;
  }
  return "a table";
}

result<toml_value> read_toml(std::string_view text, std::string_view name) {
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const auto& at = parsed.error().source().begin;
    return error{error_code::invalid, std::string(name) + ":" + std::to_string(at.line) + ":" +
                                          std::to_string(at.column) + ": " +
                                          std::string(parsed.error().description())};
  }
  toml_value root;
  fill_table(root, parsed.table());
  return root;
}

std::string to_json(const toml_value& value) {
  std::string out;
  json::json_writer w(out);
  write_json(w, value);
  return out;
}

}  // namespace sluice::jobs::detail
