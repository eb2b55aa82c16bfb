// Codec of batches and workflows: specs, receipts and states.
#include <array>

#include "jobs/json/detail/shapes.hpp"

namespace sluice::jobs::json {
namespace {

using detail::exact_max;
using detail::field;
using detail::field_rule;
using detail::read_answer;
using detail::read_object;
using detail::read_request_with;
using detail::write_id;
using detail::write_text;
using detail::write_time;

// ---- requests

struct batch_reading {
  batch_spec spec{};
  unix_time now{};
};

constexpr std::array<field<batch_reading>, 8> batch_spec_fields = {{
    {"name", [](json_reader& in, batch_reading& b) { b.spec.name = in.string(); }},
    {"open", [](json_reader& in, batch_reading& b) { b.spec.open = in.boolean(); }},
    {"jobs",
     [](json_reader& in, batch_reading& b) {
       for (in.begin_array(); in.next_element();) {
         detail::read_value(in, b.spec.jobs.emplace_back(), b.now);
       }
     }},
    {"on_success",
     [](json_reader& in, batch_reading& b) {
       detail::read_value(in, b.spec.on_success.emplace(), b.now);
     }},
    {"on_end", [](json_reader& in,
                  batch_reading& b) { detail::read_value(in, b.spec.on_end.emplace(), b.now); }},
    {"on_failure",
     [](json_reader& in, batch_reading& b) {
       detail::read_value(in, b.spec.on_failure.emplace(), b.now);
     }},
    {"keep_done", [](json_reader& in, batch_reading& b) { b.spec.keep_done = in.duration(); }},
    {"keep_failed", [](json_reader& in, batch_reading& b) { b.spec.keep_failed = in.duration(); }},
}};

void write_callback(json_writer& w, std::string_view name, const std::optional<job_spec>& spec) {
  if (!spec) return;
  w.key(name).begin_object();
  detail::write_members(w, *spec);
  w.end_object();
}

// ---- responses

constexpr std::array<field<batch_info>, 11> batch_info_fields = {{
    {"id", [](json_reader& in, batch_info& b) { b.id = in.natural(0, exact_max); },
     field_rule::required},
    {"name", [](json_reader& in, batch_info& b) { b.name = in.string(); }},
    {"open", [](json_reader& in, batch_info& b) { b.open = in.boolean(); }},
    {"total", [](json_reader& in, batch_info& b) { b.total = in.natural(); }},
    {"pending", [](json_reader& in, batch_info& b) { b.pending = in.natural(); }},
    {"failed", [](json_reader& in, batch_info& b) { b.failed = in.natural(); }},
    {"created_at", [](json_reader& in, batch_info& b) { b.created_at = in.time(); }},
    {"ended_at", [](json_reader& in, batch_info& b) { b.ended_at = in.time(); }},
    {"due_at", [](json_reader& in, batch_info& b) { b.due_at = in.time(); }},
    {"keep_done", [](json_reader& in, batch_info& b) { b.keep_done = in.duration(); }},
    {"keep_failed", [](json_reader& in, batch_info& b) { b.keep_failed = in.duration(); }},
}};

void read_batch_info(json_reader& in, batch_info& into) {
  read_object(in, into, batch_info_fields);
}
constexpr auto batch_page_fields =
    detail::page_fields<batch_page, batch_info, &batch_page::batches, read_batch_info>("batches");

constexpr std::array<field<batch_receipt>, 5> receipt_fields = {{
    {"id", [](json_reader& in, batch_receipt& r) { r.id = in.natural(0, exact_max); },
     field_rule::required},
    {"jobs",
     [](json_reader& in, batch_receipt& r) {
       for (in.begin_array(); in.next_element();) r.jobs.push_back(in.natural(0, exact_max));
     }},
    {"on_success",
     [](json_reader& in, batch_receipt& r) { r.on_success = in.natural(0, exact_max); }},
    {"on_end", [](json_reader& in, batch_receipt& r) { r.on_end = in.natural(0, exact_max); }},
    {"on_failure",
     [](json_reader& in, batch_receipt& r) { r.on_failure = in.natural(0, exact_max); }},
}};

constexpr std::array<field<cancel_receipt>, 1> cancel_fields = {{
    {"cancelled", [](json_reader& in, cancel_receipt& r) { r.cancelled = in.natural(); },
     field_rule::required},
}};

constexpr std::array<field<retry_receipt>, 1> retry_fields = {{
    {"retried", [](json_reader& in, retry_receipt& r) { r.retried = in.natural(); },
     field_rule::required},
}};

void write_object(json_writer& w, const batch_info& b) {
  w.begin_object().key("id").value(b.id);
  write_text(w, "name", b.name);
  w.key("state").value(to_string(b.state())).key("open").value(b.open);
  w.key("total").value(b.total).key("pending").value(b.pending).key("failed").value(b.failed);
  write_time(w, "created_at", b.created_at);
  write_time(w, "ended_at", b.ended_at);
  write_time(w, "due_at", b.due_at);
  w.key("keep_done").value(b.keep_done).key("keep_failed").value(b.keep_failed).end_object();
}

}  // namespace

template <>
result<batch_spec> read<batch_spec>(std::string_view text, read_context context) {
  auto read =
      read_request_with<batch_reading>(text, context, [&](json_reader& in, batch_reading& reading) {
        reading.now = context.now;
        read_object(in, reading, batch_spec_fields);
      });
  if (!read) return std::move(read.error());
  return std::move(read->spec);
}
template <>
result<batch_info> read<batch_info>(std::string_view text, read_context context) {
  return read_answer<batch_info>(text, context, batch_info_fields);
}
template <>
result<batch_page> read<batch_page>(std::string_view text, read_context context) {
  return read_answer<batch_page>(text, context, batch_page_fields);
}
template <>
result<batch_receipt> read<batch_receipt>(std::string_view text, read_context context) {
  return read_answer<batch_receipt>(text, context, receipt_fields);
}
template <>
result<cancel_receipt> read<cancel_receipt>(std::string_view text, read_context context) {
  return read_answer<cancel_receipt>(text, context, cancel_fields);
}
template <>
result<retry_receipt> read<retry_receipt>(std::string_view text, read_context context) {
  return read_answer<retry_receipt>(text, context, retry_fields);
}

void write(std::string& out, const batch_spec& spec) {
  json_writer w(out);
  w.begin_object();
  write_text(w, "name", spec.name);
  if (spec.open) w.key("open").value(true);
  w.key("jobs").begin_array();
  for (const job_spec& job : spec.jobs) {
    w.begin_object();
    detail::write_members(w, job);
    w.end_object();
  }
  w.end_array();
  write_callback(w, "on_success", spec.on_success);
  write_callback(w, "on_end", spec.on_end);
  write_callback(w, "on_failure", spec.on_failure);
  w.key("keep_done").value(spec.keep_done).key("keep_failed").value(spec.keep_failed);
  w.end_object();
}

void write(std::string& out, const batch_info& info) {
  json_writer w(out);
  write_object(w, info);
}

void write(std::string& out, const batch_page& page) {
  json_writer w(out);
  w.begin_object().key("batches").begin_array();
  for (const batch_info& b : page.batches) write_object(w, b);
  w.end_array();
  detail::write_cursor(w, page.cursor);
  w.end_object();
}

void write(std::string& out, const batch_receipt& receipt) {
  json_writer w(out);
  w.begin_object().key("id").value(receipt.id).key("jobs").begin_array();
  for (const job_id id : receipt.jobs) w.value(id);
  w.end_array();
  write_id(w, "on_success", receipt.on_success);
  write_id(w, "on_end", receipt.on_end);
  write_id(w, "on_failure", receipt.on_failure);
  w.end_object();
}

void write(std::string& out, const cancel_receipt& receipt) {
  json_writer w(out);
  w.begin_object().key("cancelled").value(receipt.cancelled).end_object();
}

void write(std::string& out, const retry_receipt& receipt) {
  json_writer w(out);
  w.begin_object().key("retried").value(receipt.retried).end_object();
}

}  // namespace sluice::jobs::json
