// Codec of responses: written by the server, read leniently by clients.
#include <algorithm>
#include <array>
#include <utility>

#include "jobs/json/detail/fields.hpp"
#include "jobs/json/detail/shapes.hpp"

namespace sluice::jobs::json {
namespace {

using detail::exact_max;
using detail::field;
using detail::field_rule;
using detail::read_answer;
using detail::read_answer_with;
using detail::read_object;

constexpr std::array all_codes = {
    error_code::invalid,       error_code::too_large,       error_code::not_found,
    error_code::duplicate,     error_code::wrong_state,     error_code::lease_lost,
    error_code::queue_full,    error_code::timed_out,       error_code::stopped,
    error_code::shutting_down, error_code::overloaded,      error_code::disk_full,
    error_code::io_error,      error_code::locked,          error_code::corrupt,
    error_code::unavailable,   error_code::unauthenticated, error_code::forbidden};

// A newer server may have codes that are unknown here.
error_code read_code(json_reader& in) {
  return error_code_from(in.word()).value_or(error_code::unavailable);
}

constexpr std::array<field<error>, 3> error_fields = {{
    {"code", [](json_reader& in, error& e) { e.code = read_code(in); }, field_rule::required},
    {"message", [](json_reader& in, error& e) { e.message = in.string(); }},
    {"job", [](json_reader& in, error& e) { e.job = in.natural(0, exact_max); }},
}};

constexpr std::array<field<problem>, 5> problem_fields = {{
    {"title", [](json_reader& in, problem& p) { p.title = in.string(); }},
    {"status",
     [](json_reader& in, problem& p) { p.status = static_cast<int>(in.whole(100, 599)); }},
    {"detail", [](json_reader& in, problem& p) { p.error.message = in.string(); }},
    {"code", [](json_reader& in, problem& p) { p.error.code = read_code(in); },
     field_rule::required},
    {"job", [](json_reader& in, problem& p) { p.error.job = in.natural(0, exact_max); }},
}};

// ---- pushes

struct push_item {
  push_receipt receipt;
  std::optional<error> refusal;
};

constexpr std::array<field<push_item>, 5> push_item_fields = {{
    {"id", [](json_reader& in, push_item& p) { p.receipt.id = in.natural(0, exact_max); }},
    {"duplicate",
     [](json_reader& in, push_item& p) {
       if (in.boolean()) p.receipt.outcome = push_receipt::fate::duplicate;
     }},
    {"dropped",
     [](json_reader& in, push_item& p) {
       if (in.boolean()) p.receipt.outcome = push_receipt::fate::dropped;
     }},
    {"skipped",
     [](json_reader& in, push_item& p) {
       if (in.boolean()) p.receipt.outcome = push_receipt::fate::skipped;
     }},
    {"error", [](json_reader& in, push_item& p) { detail::read_value(in, p.refusal.emplace()); }},
}};

// Only a pushed job or a duplicate has an id.
bool has_id(const push_receipt& r) {
  return r.outcome != push_receipt::fate::dropped && r.outcome != push_receipt::fate::skipped;
}

void read_push_item(json_reader& in, push_item& p) {
  read_object(in, p, push_item_fields);
  if (!p.refusal && p.receipt.id == 0 && has_id(p.receipt)) {
    in.refuse_object("the field \"id\" is missing");
  }
}

using push_results = std::vector<result<push_receipt>>;
constexpr std::array<field<push_results>, 1> push_results_fields = {{
    {"results",
     [](json_reader& in, push_results& all) {
       for (in.begin_array(); in.next_element();) {
         push_item item;
         read_push_item(in, item);
         if (item.refusal) {
           all.emplace_back(std::move(*item.refusal));
         } else {
           all.emplace_back(item.receipt);
         }
       }
     },
     field_rule::required},
}};

void write_item(json_writer& w, const result<push_receipt>& pushed) {
  w.begin_object();
  if (pushed) {
    detail::write_members(w, *pushed);
  } else {
    w.key("error");
    detail::write_error(w, pushed.error());
  }
  w.end_object();
}

// ---- lists of jobs, leases

constexpr auto job_page_fields =
    detail::page_fields<job_page, job, &job_page::jobs, detail::read_value>("jobs");
constexpr auto leased_fields = detail::list_fields<leased_job, detail::read_value>("jobs");

constexpr std::array<field<extension>, 2> extension_fields = {{
    {"leased_until", [](json_reader& in, extension& e) { e.until = in.time(); },
     field_rule::required},
    {"cancelled", [](json_reader& in, extension& e) { e.cancelled = in.boolean(); }},
}};

constexpr std::array<field<fail_receipt>, 2> fail_receipt_fields = {{
    {"state",
     [](json_reader& in, fail_receipt& f) {
       f.state = detail::read_word(in, job_state_from, "expected the state of a job");
     },
     field_rule::required},
    {"next_at", [](json_reader& in, fail_receipt& f) { f.next_at = in.time(); }},
}};

constexpr std::array<field<std::optional<error>>, 1> ack_result_fields = {{
    {"error", [](json_reader& in,
                 std::optional<error>& refusal) { detail::read_value(in, refusal.emplace()); }},
}};

using ack_results = std::vector<void_result>;
constexpr std::array<field<ack_results>, 1> ack_results_fields = {{
    {"results",
     [](json_reader& in, ack_results& all) {
       for (in.begin_array(); in.next_element();) {
         std::optional<error> refusal;
         read_object(in, refusal, ack_result_fields);
         if (refusal) {
           all.emplace_back(std::move(*refusal));
         } else {
           all.emplace_back(done{});
         }
       }
     },
     field_rule::required},
}};

}  // namespace

namespace detail {

void write_members(json_writer& w, const push_receipt& receipt) {
  if (!has_id(receipt)) {
    w.key(to_string(receipt.outcome)).value(true);
    return;
  }
  w.key("id").value(receipt.id);
  if (receipt.outcome == push_receipt::fate::duplicate) w.key("duplicate").value(true);
}

void read_value(json_reader& in, error& into) {
  read_object(in, into, error_fields);
}

void write_error(json_writer& w, const error& refusal) {
  w.begin_object().key("code").value(to_string(refusal.code)).key("message").value(refusal.message);
  if (refusal.job != 0) w.key("job").value(refusal.job);
  w.end_object();
}

}  // namespace detail

std::optional<error_code> error_code_from(std::string_view word) noexcept {
  for (const error_code code : all_codes) {
    if (word == to_string(code)) return code;
  }
  return std::nullopt;
}

template <>
result<job> read<job>(std::string_view text, read_context context) {
  return read_answer_with<job>(text, context,
                               [](json_reader& in, job& j) { detail::read_value(in, j); });
}
template <>
result<job_page> read<job_page>(std::string_view text, read_context context) {
  return read_answer<job_page>(text, context, job_page_fields);
}
template <>
result<push_receipt> read<push_receipt>(std::string_view text, read_context context) {
  auto item = read_answer_with<push_item>(text, context, read_push_item);
  if (!item) return std::move(item.error());
  if (item->refusal) return std::move(*item->refusal);
  return item->receipt;
}
template <>
result<push_results> read<push_results>(std::string_view text, read_context context) {
  return read_answer<push_results>(text, context, push_results_fields);
}
template <>
result<std::vector<leased_job>> read<std::vector<leased_job>>(std::string_view text,
                                                              read_context context) {
  return read_answer<std::vector<leased_job>>(text, context, leased_fields);
}
template <>
result<extension> read<extension>(std::string_view text, read_context context) {
  return read_answer<extension>(text, context, extension_fields);
}
template <>
result<fail_receipt> read<fail_receipt>(std::string_view text, read_context context) {
  return read_answer<fail_receipt>(text, context, fail_receipt_fields);
}
template <>
result<ack_results> read<ack_results>(std::string_view text, read_context context) {
  return read_answer<ack_results>(text, context, ack_results_fields);
}
template <>
result<problem> read<problem>(std::string_view text, read_context context) {
  return read_answer<problem>(text, context, problem_fields);
}

void write(std::string& out, const job& j) {
  json_writer w(out);
  w.begin_object();
  detail::write_members(w, j, j.state);
  w.end_object();
}

void write(std::string& out, const job_page& page) {
  json_writer w(out);
  w.begin_object().key("jobs").begin_array();
  for (const job& j : page.jobs) {
    w.begin_object();
    detail::write_members(w, j, j.state);
    w.end_object();
  }
  w.end_array();
  detail::write_cursor(w, page.cursor);
  w.end_object();
}

void write(std::string& out, const push_receipt& receipt) {
  json_writer w(out);
  w.begin_object();
  detail::write_members(w, receipt);
  w.end_object();
}

void write_item(std::string& out, const result<push_receipt>& pushed) {
  json_writer w(out);
  write_item(w, pushed);
}

void write(std::string& out, const push_results& results) {
  json_writer w(out);
  const auto accepted = std::ranges::count_if(results, [](const result<push_receipt>& r) {
    return r && r->outcome == push_receipt::fate::accepted;
  });
  w.begin_object().key("accepted").value(accepted).key("results").begin_array();
  for (const result<push_receipt>& r : results) write_item(w, r);
  w.end_array().end_object();
}

void write(std::string& out, const std::vector<leased_job>& jobs) {
  json_writer w(out);
  w.begin_object().key("jobs").begin_array();
  for (const leased_job& leased : jobs) {
    w.begin_object();
    detail::write_members(w, *leased.job, job_state::running);
    w.key("lease").value(leased.key).key("attempt").value(leased.attempt);
    w.key("leased_until").value(leased.until).end_object();
  }
  w.end_array().end_object();
}

void write(std::string& out, const extension& e) {
  json_writer w(out);
  w.begin_object().key("leased_until").value(e.until).key("cancelled").value(e.cancelled);
  w.end_object();
}

void write(std::string& out, const fail_receipt& receipt) {
  json_writer w(out);
  w.begin_object().key("state").value(to_string(receipt.state));
  if (receipt.state == job_state::retrying) w.key("next_at").value(receipt.next_at);
  w.end_object();
}

void write(std::string& out, const ack_results& results) {
  json_writer w(out);
  w.begin_object().key("results").begin_array();
  for (const void_result& r : results) {
    w.begin_object();
    if (!r) {
      w.key("error");
      detail::write_error(w, r.error());
    }
    w.end_object();
  }
  w.end_array().end_object();
}

void write(std::string& out, const problem& p) {
  json_writer w(out);
  w.begin_object().key("type").value("about:blank").key("title").value(p.title);
  w.key("status").value(p.status).key("detail").value(p.error.message);
  w.key("code").value(to_string(p.error.code));
  if (p.error.job != 0) w.key("job").value(p.error.job);
  w.end_object();
}

}  // namespace sluice::jobs::json
