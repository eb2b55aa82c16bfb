#pragma once

// Parts of objects that several types of codec.hpp share.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/json/codec.hpp"
#include "jobs/json/detail/fields.hpp"
#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::json::detail {

// The largest whole number that a double holds exactly.
inline constexpr std::uint64_t exact_max = std::uint64_t{1} << 53U;

// Reads a request: an unknown field is an error.
template <class T, class Read>
result<T> read_request_with(std::string_view text, read_context context, Read read_it) {
  json_reader in(text, context.line);
  T value{};
  read_it(in, value);
  if (auto read = in.finish(); !read) return std::move(read.error());
  return value;
}
template <class T, class Table>
result<T> read_request(std::string_view text, read_context context, const Table& table) {
  return read_request_with<T>(text, context,
                              [&](json_reader& in, T& value) { read_object(in, value, table); });
}

// Reads a response: unknown fields, which a newer server may have added, are skipped.
template <class T, class Read>
result<T> read_answer_with(std::string_view text, read_context context, Read read_it) {
  json_reader in(text, context.line, json_reader::unknown_fields::skipped);
  T value{};
  read_it(in, value);
  if (auto read = in.finish(); !read) return std::move(read.error());
  return value;
}
template <class T, class Table>
result<T> read_answer(std::string_view text, read_context context, const Table& table) {
  return read_answer_with<T>(text, context,
                             [&](json_reader& in, T& value) { read_object(in, value, table); });
}

template <class T>
using reader_of = void (*)(json_reader& in, T& into);

template <class T, reader_of<T> Read>
void read_each(json_reader& in, std::vector<T>& into) {
  for (in.begin_array(); in.next_element();) Read(in, into.emplace_back());
}
// {"queues": [...]}: every list is a named member, so that members can be added later.
template <class T, reader_of<T> Read>
constexpr std::array<field<std::vector<T>>, 1> list_fields(std::string_view name) {
  return {{{name, read_each<T, Read>, field_rule::required}}};
}

inline void read_cursor(json_reader& in, std::optional<std::uint64_t>& next) {
  next = in.natural(0, exact_max);
}
inline void read_cursor(json_reader& in, std::optional<std::string>& next) {
  next = in.string();
}
// {"jobs": [...], "next": cursor}: a page of a list; `List` is the member with its items.
template <class Page, class T, std::vector<T> Page::*List, reader_of<T> Read>
constexpr std::array<field<Page>, 2> page_fields(std::string_view name) {
  return {{
      {name, [](json_reader& in, Page& page) { read_each<T, Read>(in, page.*List); },
       field_rule::required},
      {"next", [](json_reader& in, Page& page) { read_cursor(in, page.cursor); }},
  }};
}

template <class T>
void write_optional(json_writer& w, std::string_view name, const std::optional<T>& value) {
  if (value) w.key(name).value(*value);
}
// Write a member unless its value is zero or empty.
void write_time(json_writer& w, std::string_view name, unix_time t);
void write_duration(json_writer& w, std::string_view name, milliseconds d);
void write_text(json_writer& w, std::string_view name, std::string_view text);
void write_id(json_writer& w, std::string_view name, job_id id);
// Writes the member "next": the cursor, or null.
void write_cursor(json_writer& w, const std::optional<std::uint64_t>& next);
void write_cursor(json_writer& w, const std::optional<std::string>& next);

// Writes the members of a spec, without braces.
void write_members(json_writer& w, const job_spec& spec);
// Writes `state` in place of the job's own: a leased job is running, but its stored state is ready.
void write_members(json_writer& w, const job& j, job_state state);
void write_result(json_writer& w, const payload& result);
void write_progress(json_writer& w, const progress& p);  // the object
void write_members(json_writer& w, const push_receipt& receipt);
void write_error(json_writer& w, const error& e);  // the object

void read_value(json_reader& in, job_spec& into, unix_time now);
// Reads the rest of a spec after the name of its first member.
void read_rest(json_reader& in, job_spec& into, unix_time now, std::string_view first);
void read_value(json_reader& in, job& into);
void read_value(json_reader& in, leased_job& into);
void read_value(json_reader& in, progress& into);
void read_value(json_reader& in, error& into);

// Read "result" or "result_base64" into one value; having both is an error.
void read_json_payload(json_reader& in, std::optional<payload>& into);
void read_base64_payload(json_reader& in, std::optional<payload>& into);

// Reads a word of a fixed set; `expected` is the message that lists the set.
template <class Parse>
auto read_word(json_reader& in, Parse parse, std::string_view expected) {
  const auto parsed = parse(in.word());
  if (!parsed) in.refuse(expected);
  return parsed.value_or(typename decltype(parsed)::value_type{});
}

}  // namespace sluice::jobs::json::detail
