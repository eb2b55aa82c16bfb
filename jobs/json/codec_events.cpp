// Codec of events and log lines.
#include <array>
#include <charconv>

#include "jobs/json/detail/shapes.hpp"

namespace sluice::jobs::json {
namespace {

using detail::exact_max;
using detail::field;
using detail::field_rule;
using detail::read_answer;
using detail::read_object;
using detail::write_id;
using detail::write_text;

std::uint32_t read_attempt(json_reader& in) {
  return static_cast<std::uint32_t>(in.natural(0, 0xFFFFFFFFU));
}

constexpr std::array<field<log_line>, 4> line_fields = {{
    {"number", [](json_reader& in, log_line& l) { l.number = in.natural(0, exact_max); },
     field_rule::required},
    {"attempt", [](json_reader& in, log_line& l) { l.attempt = read_attempt(in); }},
    {"at", [](json_reader& in, log_line& l) { l.at = in.time(); }},
    {"text", [](json_reader& in, log_line& l) { l.text = in.string(); }},
}};

void read_line(json_reader& in, log_line& into) {
  read_object(in, into, line_fields);
}
constexpr auto log_page_fields =
    detail::page_fields<log_page, log_line, &log_page::lines, read_line>("lines");

constexpr std::array<field<job_event>, 9> event_fields = {{
    {"number", [](json_reader& in, job_event& e) { e.number = in.natural(0, exact_max); },
     field_rule::required},
    {"at", [](json_reader& in, job_event& e) { e.at = in.time(); }},
    {"type",
     [](json_reader& in, job_event& e) {
       e.type = detail::read_word(in, event_type_from, "expected the type of an event");
     },
     field_rule::required},
    {"job", [](json_reader& in, job_event& e) { e.job = in.natural(0, exact_max); }},
    {"queue", [](json_reader& in, job_event& e) { e.queue = in.string(); }},
    {"attempt", [](json_reader& in, job_event& e) { e.attempt = read_attempt(in); }},
    {"batch", [](json_reader& in, job_event& e) { e.batch = in.natural(0, exact_max); }},
    {"percent", [](json_reader& in, job_event& e) { e.percent = in.number(0, 100); }},
    {"text", [](json_reader& in, job_event& e) { e.text = in.string(); }},
}};

void read_event(json_reader& in, job_event& into) {
  read_object(in, into, event_fields);
}
constexpr std::array<field<event_page>, 3> event_page_fields = {{
    {"events",
     [](json_reader& in, event_page& page) {
       detail::read_each<job_event, read_event>(in, page.events);
     },
     field_rule::required},
    {"next",
     [](json_reader& in, event_page& page) {
       const event_place place =
           detail::read_word(in, event_place_from, "expected the place of an event");
       page.epoch = place.epoch;
       page.next = place.number;
     },
     field_rule::required},
    {"missed", [](json_reader& in, event_page& page) { page.missed = in.boolean(); }},
}};

void write_object(json_writer& w, const job_event& e) {
  w.begin_object().key("number").value(e.number).key("at").value(e.at);
  w.key("type").value(to_string(e.type));
  write_id(w, "job", e.job);
  write_text(w, "queue", e.queue);
  if (e.attempt != 0) w.key("attempt").value(e.attempt);
  write_id(w, "batch", e.batch);
  if (e.type == event_type::progress) w.key("percent").value(e.percent);
  write_text(w, "text", e.text);
  w.end_object();
}

}  // namespace

std::string to_string(event_place place) {
  return std::to_string(place.epoch) + "-" + std::to_string(place.number);
}

std::optional<event_place> event_place_from(std::string_view text) noexcept {
  const char* const end = text.data() + text.size();
  event_place place;
  const auto epoch = std::from_chars(text.data(), end, place.epoch);
  if (epoch.ec != std::errc{} || epoch.ptr == end || *epoch.ptr != '-') return std::nullopt;
  const auto number = std::from_chars(epoch.ptr + 1, end, place.number);
  if (number.ec != std::errc{} || number.ptr != end) return std::nullopt;
  return place;
}

template <>
result<log_page> read<log_page>(std::string_view text, read_context context) {
  return read_answer<log_page>(text, context, log_page_fields);
}
template <>
result<job_event> read<job_event>(std::string_view text, read_context context) {
  return read_answer<job_event>(text, context, event_fields);
}
template <>
result<event_page> read<event_page>(std::string_view text, read_context context) {
  return read_answer<event_page>(text, context, event_page_fields);
}

void write(std::string& out, const log_page& page) {
  json_writer w(out);
  w.begin_object().key("lines").begin_array();
  for (const log_line& l : page.lines) {
    w.begin_object().key("number").value(l.number).key("attempt").value(l.attempt);
    w.key("at").value(l.at).key("text").value(l.text).end_object();
  }
  w.end_array();
  detail::write_cursor(w, page.cursor);
  w.end_object();
}

void write(std::string& out, const job_event& e) {
  json_writer w(out);
  write_object(w, e);
}

void write(std::string& out, const event_page& page) {
  json_writer w(out);
  w.begin_object().key("events").begin_array();
  for (const job_event& e : page.events) write_object(w, e);
  w.end_array().key("next").value(to_string(event_place{page.epoch, page.next}));
  w.key("missed").value(page.missed).end_object();
}

}  // namespace sluice::jobs::json
