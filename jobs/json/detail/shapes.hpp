#pragma once

// Parts of objects that several of the shapes of codec.hpp share.

#include <string_view>

#include "jobs/json/codec.hpp"
#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::json::detail {

// A JSON number that every language can hold exactly.
inline constexpr std::uint64_t exact_max = std::uint64_t{1} << 53U;

// The members of a spec, without the braces around them.
void write_members(json_writer& w, const job_spec& spec);
// In `state`: what is leased is running, whatever the job kept in memory says.
void write_members(json_writer& w, const job& it, job_state state);
void write_result(json_writer& w, const payload& result);
void write_error(json_writer& w, const error& why);  // the object

void read_value(json_reader& in, job_spec& into, unix_time now);
// The rest of a spec of which the first name was read.
void read_rest(json_reader& in, job_spec& into, unix_time now, std::string_view first);
void read_value(json_reader& in, job& into);
void read_value(json_reader& in, leased_job& into);
void read_value(json_reader& in, error& into);

// "result" or "result_base64", into one place, once.
void read_json_payload(json_reader& in, std::optional<payload>& into);
void read_base64_payload(json_reader& in, std::optional<payload>& into);

// A word out of few; `expected` lists them.
template <class Parse>
auto read_word(json_reader& in, Parse parse, std::string_view expected) {
  const auto parsed = parse(in.word());
  if (!parsed) in.refuse(expected);
  return parsed.value_or(typename decltype(parsed)::value_type{});
}

}  // namespace sluice::jobs::json::detail
