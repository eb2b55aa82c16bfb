// Codec of cron entries: specs and their past and upcoming runs.
#include <array>

#include "jobs/json/detail/shapes.hpp"

namespace sluice::jobs::json {
namespace {

using detail::exact_max;
using detail::field;
using detail::field_rule;
using detail::read_answer;
using detail::read_answer_with;
using detail::read_object;
using detail::read_request;
using detail::read_request_with;

// Fields that requests and responses share.
struct spec_reading {
  cron_spec& spec;
  unix_time now{};
};

constexpr std::array<field<spec_reading>, 6> cron_spec_fields = {{
    {"name", [](json_reader& in, spec_reading& s) { s.spec.name = in.string(); }},
    {"schedule", [](json_reader& in, spec_reading& s) { s.spec.schedule = in.string(); },
     field_rule::required},
    {"zone", [](json_reader& in, spec_reading& s) { s.spec.zone = in.string(); }},
    {"missed",
     [](json_reader& in, spec_reading& s) {
       s.spec.missed =
           detail::read_word(in, missed_runs_from, R"(expected "skip", "one" or "all")");
     }},
    {"paused", [](json_reader& in, spec_reading& s) { s.spec.paused = in.boolean(); }},
    {"job", [](json_reader& in, spec_reading& s) { detail::read_value(in, s.spec.job, s.now); },
     field_rule::required},
}};

constexpr std::array<field<cron_patch>, 1> cron_patch_fields = {{
    {"paused", [](json_reader& in, cron_patch& p) { p.paused = in.boolean(); }},
}};

constexpr std::array<field<cron_check>, 2> check_fields = {{
    {"schedule", [](json_reader& in, cron_check& c) { c.schedule = in.string(); },
     field_rule::required},
    {"zone", [](json_reader& in, cron_check& c) { c.zone = in.string(); }},
}};

void read_times(json_reader& in, std::vector<unix_time>& into) {
  for (in.begin_array(); in.next_element();) into.push_back(in.time());
}

struct info_reading : spec_reading {
  explicit info_reading(cron_info& i) : spec_reading{i.entry.spec}, info(i) {}
  cron_info& info;
};

constexpr std::array<field<info_reading>, 6> cron_info_fields = {{
    {"next_at", [](json_reader& in, info_reading& c) { c.info.entry.next_at = in.time(); }},
    {"last_at", [](json_reader& in, info_reading& c) { c.info.entry.last_at = in.time(); }},
    {"last_job",
     [](json_reader& in, info_reading& c) { c.info.entry.last_job = in.natural(0, exact_max); }},
    {"runs", [](json_reader& in, info_reading& c) { c.info.entry.runs = in.natural(); }},
    {"runs_missed", [](json_reader& in, info_reading& c) { c.info.entry.missed = in.natural(); }},
    {"upcoming", [](json_reader& in, info_reading& c) { read_times(in, c.info.upcoming); }},
}};

void read_cron_info(json_reader& in, cron_info& into) {
  info_reading reading(into);
  read_object(in, reading, cron_spec_fields, cron_info_fields);
}

constexpr auto list_fields = detail::list_fields<cron_info, read_cron_info>("crons");

constexpr std::array<field<cron_times>, 2> times_fields = {{
    {"describes", [](json_reader& in, cron_times& t) { t.describes = in.string(); }},
    {"upcoming", [](json_reader& in, cron_times& t) { read_times(in, t.upcoming); },
     field_rule::required},
}};

void write_members(json_writer& w, const cron_spec& s) {
  detail::write_text(w, "name", s.name);
  w.key("schedule").value(s.schedule).key("zone").value(s.zone);
  w.key("missed").value(to_string(s.missed)).key("paused").value(s.paused);
  w.key("job").begin_object();
  detail::write_members(w, s.job);
  w.end_object();
}

void write_upcoming(json_writer& w, const std::vector<unix_time>& times) {
  w.key("upcoming").begin_array();
  for (const unix_time t : times) w.value(t);
  w.end_array();
}

void write_object(json_writer& w, const cron_info& c) {
  w.begin_object();
  write_members(w, c.entry.spec);
  detail::write_time(w, "next_at", c.entry.next_at);
  detail::write_time(w, "last_at", c.entry.last_at);
  detail::write_id(w, "last_job", c.entry.last_job);
  w.key("runs").value(c.entry.runs).key("runs_missed").value(c.entry.missed);
  write_upcoming(w, c.upcoming);
  w.end_object();
}

}  // namespace

template <>
result<cron_spec> read<cron_spec>(std::string_view text, read_context context) {
  return read_request_with<cron_spec>(text, context, [&](json_reader& in, cron_spec& spec) {
    spec_reading reading{spec, context.now};
    read_object(in, reading, cron_spec_fields);
  });
}
template <>
result<cron_patch> read<cron_patch>(std::string_view text, read_context context) {
  return read_request<cron_patch>(text, context, cron_patch_fields);
}
template <>
result<cron_check> read<cron_check>(std::string_view text, read_context context) {
  return read_request<cron_check>(text, context, check_fields);
}
template <>
result<cron_info> read<cron_info>(std::string_view text, read_context context) {
  return read_answer_with<cron_info>(text, context, read_cron_info);
}
template <>
result<std::vector<cron_info>> read<std::vector<cron_info>>(std::string_view text,
                                                            read_context context) {
  return read_answer<std::vector<cron_info>>(text, context, list_fields);
}
template <>
result<cron_times> read<cron_times>(std::string_view text, read_context context) {
  return read_answer<cron_times>(text, context, times_fields);
}

void write(std::string& out, const cron_spec& spec) {
  json_writer w(out);
  w.begin_object();
  write_members(w, spec);
  w.end_object();
}

void write(std::string& out, const cron_patch& patch) {
  json_writer w(out);
  w.begin_object();
  detail::write_optional(w, "paused", patch.paused);
  w.end_object();
}

void write(std::string& out, const cron_check& call) {
  json_writer w(out);
  w.begin_object().key("schedule").value(call.schedule).key("zone").value(call.zone).end_object();
}

void write(std::string& out, const cron_info& info) {
  json_writer w(out);
  write_object(w, info);
}

void write(std::string& out, const std::vector<cron_info>& crons) {
  json_writer w(out);
  w.begin_object().key("crons").begin_array();
  for (const cron_info& c : crons) write_object(w, c);
  w.end_array().end_object();
}

void write(std::string& out, const cron_times& times) {
  json_writer w(out);
  w.begin_object();
  detail::write_text(w, "describes", times.describes);
  write_upcoming(w, times.upcoming);
  w.end_object();
}

}  // namespace sluice::jobs::json
