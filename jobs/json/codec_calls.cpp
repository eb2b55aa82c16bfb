// Codec of requests: written by clients, read strictly by the server.
#include <algorithm>
#include <utility>

#include "jobs/json/detail/fields.hpp"
#include "jobs/json/detail/shapes.hpp"

namespace sluice::jobs::json {
namespace {

using detail::exact_max;
using detail::field;
using detail::field_rule;
using detail::read_object;
using detail::read_request;
using detail::read_request_with;
using detail::write_optional;

// The field of every call on a lease.
template <class T>
constexpr field<T> lease_field = {"lease",
                                  [](json_reader& in, T& c) { c.lease = in.natural(0, exact_max); },
                                  field_rule::required};

constexpr std::array<field<extend_call>, 3> extend_fields = {{
    lease_field<extend_call>,
    {"for", [](json_reader& in, extend_call& c) { c.by = in.duration(); }},
    {"progress",
     [](json_reader& in, extend_call& c) { detail::read_value(in, c.progress.emplace()); }},
}};

constexpr std::array<field<progress_call>, 3> progress_call_fields = {{
    lease_field<progress_call>,
    {"percent", [](json_reader& in, progress_call& c) { c.progress.percent = in.number(0, 100); },
     field_rule::required},
    {"text", [](json_reader& in, progress_call& c) { c.progress.text = in.string(); }},
}};

constexpr std::array<field<log_call>, 2> log_fields = {{
    lease_field<log_call>,
    {"lines",
     [](json_reader& in, log_call& c) {
       for (in.begin_array(); in.next_element();) {
         c.lines.push_back(in.string());
         if (c.lines.size() > limits::log_lines_at_once) {
           return in.refuse("more than " + std::to_string(limits::log_lines_at_once) +
                            " lines in one call");
         }
       }
     },
     field_rule::required},
}};

constexpr std::array<field<ack_call>, 3> ack_fields = {{
    lease_field<ack_call>,
    {"result", [](json_reader& in, ack_call& c) { detail::read_json_payload(in, c.result); }},
    {"result_base64",
     [](json_reader& in, ack_call& c) { detail::read_base64_payload(in, c.result); }},
}};

constexpr std::array<field<fail_call>, 6> fail_fields = {{
    lease_field<fail_call>,
    {"type", [](json_reader& in, fail_call& c) { c.failure.type = in.string(); }},
    {"message", [](json_reader& in, fail_call& c) { c.failure.message = in.string(); }},
    {"backtrace", [](json_reader& in, fail_call& c) { c.failure.backtrace = in.string(); }},
    {"retry_in", [](json_reader& in, fail_call& c) { c.failure.retry_in = in.duration(); }},
    {"for_good", [](json_reader& in, fail_call& c) { c.failure.for_good = in.boolean(); }},
}};

constexpr std::array<field<release_call>, 3> release_fields = {{
    lease_field<release_call>,
    {"delay", [](json_reader& in, release_call& c) { c.release.delay = in.duration(); }},
    {"priority",
     [](json_reader& in, release_call& c) {
       c.release.priority = in.whole(-limits::priority_max, limits::priority_max);
     }},
}};

constexpr std::array<field<ack_item>, 4> ack_item_fields = {{
    {"id", [](json_reader& in, ack_item& a) { a.lease.job = in.natural(0, exact_max); },
     field_rule::required},
    {"lease", [](json_reader& in, ack_item& a) { a.lease.key = in.natural(0, exact_max); },
     field_rule::required},
    {"result", [](json_reader& in, ack_item& a) { detail::read_json_payload(in, a.result); }},
    {"result_base64",
     [](json_reader& in, ack_item& a) { detail::read_base64_payload(in, a.result); }},
}};

constexpr std::array<field<acks_call>, 1> acks_fields = {{
    {"acks",
     [](json_reader& in, acks_call& c) {
       for (in.begin_array(); in.next_element();) {
         read_object(in, c.acks.emplace_back(), ack_item_fields);
       }
     },
     field_rule::required},
}};

std::optional<lease_request::order> order_from(std::string_view word) {
  if (word == "fair") return lease_request::order::fair;
  if (word == "strict") return lease_request::order::strict;
  if (word == "urgent") return lease_request::order::urgent;
  return std::nullopt;
}

constexpr std::array<field<lease_call>, 6> lease_fields = {{
    {"queues",
     [](json_reader& in, lease_call& c) {
       c.request.queues.clear();
       for (in.begin_array(); in.next_element();) c.request.queues.push_back(in.string());
     }},
    {"max",
     [](json_reader& in, lease_call& c) {
       c.request.max = static_cast<std::size_t>(in.natural(1, 1'000'000));
     }},
    {"wait", [](json_reader& in, lease_call& c) { c.wait = in.duration(); }},
    {"worker", [](json_reader& in, lease_call& c) { c.request.worker = in.string(); }},
    {"lease_for", [](json_reader& in, lease_call& c) { c.request.lease_for = in.duration(); }},
    {"order",
     [](json_reader& in, lease_call& c) {
       c.request.pick =
           detail::read_word(in, order_from, R"(expected "fair", "strict" or "urgent")");
     }},
}};

struct push_reading {
  push_call call{};
  unix_time now{};
};

void read_specs(json_reader& in, push_reading& p) {
  for (in.begin_array(); in.next_element();) {
    detail::read_value(in, p.call.jobs.emplace_back(), p.now);
  }
}

constexpr std::array<field<push_reading>, 2> push_fields = {{
    {"jobs", read_specs, field_rule::required},
    {"mode",
     [](json_reader& in, push_reading& p) {
       p.call.has_mode = true;
       p.call.mode = detail::read_word(in, bulk_from, R"(expected "each" or "all_or_nothing")");
     }},
}};

void read_push(json_reader& in, push_reading& reading) {
  push_call& call = reading.call;
  if (in.peek() == json_reader::kind::array) return read_specs(in, reading);
  in.begin_object();
  // A job and a list of jobs have no field in common, so the first name decides.
  std::string_view first;
  if (in.next_key(first) && (first == "jobs" || first == "mode")) {
    return detail::read_members(in, reading, first, push_fields);
  }
  call.is_single = true;
  if (!in.ok()) return;
  if (first.data() == nullptr) return in.refuse_object("a job must have a kind");
  detail::read_rest(in, call.jobs.emplace_back(), reading.now, first);
}

}  // namespace

std::optional<bulk> bulk_from(std::string_view word) noexcept {
  if (word == "each") return bulk::each;
  if (word == "all_or_nothing") return bulk::all_or_nothing;
  return std::nullopt;
}

void_result check_json(std::string_view text) {
  json_reader in(text);
  in.skip();
  return in.finish();
}

template <>
result<job_spec> read<job_spec>(std::string_view text, read_context context) {
  return read_request_with<job_spec>(text, context, [&](json_reader& in, job_spec& spec) {
    detail::read_value(in, spec, context.now);
  });
}

template <>
result<push_call> read<push_call>(std::string_view text, read_context context) {
  auto read =
      read_request_with<push_reading>(text, context, [&](json_reader& in, push_reading& reading) {
        reading.now = context.now;
        read_push(in, reading);
      });
  if (!read) return std::move(read.error());
  return std::move(read->call);
}

template <>
result<lease_call> read<lease_call>(std::string_view text, read_context context) {
  return read_request<lease_call>(text, context, lease_fields);
}
template <>
result<extend_call> read<extend_call>(std::string_view text, read_context context) {
  return read_request<extend_call>(text, context, extend_fields);
}
template <>
result<progress_call> read<progress_call>(std::string_view text, read_context context) {
  return read_request<progress_call>(text, context, progress_call_fields);
}
template <>
result<log_call> read<log_call>(std::string_view text, read_context context) {
  return read_request<log_call>(text, context, log_fields);
}
template <>
result<ack_call> read<ack_call>(std::string_view text, read_context context) {
  return read_request<ack_call>(text, context, ack_fields);
}
template <>
result<fail_call> read<fail_call>(std::string_view text, read_context context) {
  return read_request<fail_call>(text, context, fail_fields);
}
template <>
result<release_call> read<release_call>(std::string_view text, read_context context) {
  return read_request<release_call>(text, context, release_fields);
}
template <>
result<acks_call> read<acks_call>(std::string_view text, read_context context) {
  return read_request<acks_call>(text, context, acks_fields);
}

void write(std::string& out, const job_spec& spec) {
  json_writer w(out);
  w.begin_object();
  detail::write_members(w, spec);
  w.end_object();
}

void write(std::string& out, const push_call& call) {
  json_writer w(out);
  if (!call.is_single) w.begin_object().key("jobs").begin_array();
  for (const job_spec& spec : call.jobs) {
    w.begin_object();
    detail::write_members(w, spec);
    w.end_object();
  }
  if (call.is_single) return;
  w.end_array();
  if (call.mode == bulk::all_or_nothing) w.key("mode").value("all_or_nothing");
  w.end_object();
}

void write(std::string& out, const lease_call& call) {
  json_writer w(out);
  w.begin_object().key("queues").begin_array();
  for (const std::string& queue : call.request.queues) w.value(queue);
  w.end_array().key("max").value(call.request.max).key("wait").value(call.wait);
  if (!call.request.worker.empty()) w.key("worker").value(call.request.worker);
  if (call.request.lease_for != milliseconds(0)) w.key("lease_for").value(call.request.lease_for);
  if (call.request.pick == lease_request::order::strict) w.key("order").value("strict");
  if (call.request.pick == lease_request::order::urgent) w.key("order").value("urgent");
  w.end_object();
}

void write(std::string& out, const extend_call& call) {
  json_writer w(out);
  w.begin_object().key("lease").value(call.lease);
  if (call.by != milliseconds(0)) w.key("for").value(call.by);
  if (call.progress) {
    w.key("progress");
    detail::write_progress(w, *call.progress);
  }
  w.end_object();
}

void write(std::string& out, const progress_call& call) {
  json_writer w(out);
  w.begin_object().key("lease").value(call.lease).key("percent").value(call.progress.percent);
  detail::write_text(w, "text", call.progress.text);
  w.end_object();
}

void write(std::string& out, const log_call& call) {
  json_writer w(out);
  w.begin_object().key("lease").value(call.lease).key("lines").begin_array();
  for (const std::string& line : call.lines) w.value(line);
  w.end_array().end_object();
}

void write(std::string& out, const ack_call& call) {
  json_writer w(out);
  w.begin_object().key("lease").value(call.lease);
  if (call.result) detail::write_result(w, *call.result);
  w.end_object();
}

void write(std::string& out, const fail_call& call) {
  json_writer w(out);
  w.begin_object().key("lease").value(call.lease);
  w.key("type").value(call.failure.type).key("message").value(call.failure.message);
  if (!call.failure.backtrace.empty()) w.key("backtrace").value(call.failure.backtrace);
  write_optional(w, "retry_in", call.failure.retry_in);
  if (call.failure.for_good) w.key("for_good").value(true);
  w.end_object();
}

void write(std::string& out, const release_call& call) {
  json_writer w(out);
  w.begin_object().key("lease").value(call.lease);
  if (call.release.delay != milliseconds(0)) w.key("delay").value(call.release.delay);
  write_optional(w, "priority", call.release.priority);
  w.end_object();
}

void write(std::string& out, const acks_call& call) {
  json_writer w(out);
  w.begin_object().key("acks").begin_array();
  for (const ack_item& a : call.acks) {
    w.begin_object().key("id").value(a.lease.job).key("lease").value(a.lease.key);
    if (a.result) detail::write_result(w, *a.result);
    w.end_object();
  }
  w.end_array().end_object();
}

}  // namespace sluice::jobs::json
