// Answers: what the server writes and clients read, leniently.
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
using detail::read_object;

// An answer is an object; `read_it` reads it.
template <class T, class Read>
result<T> read_answer(std::string_view text, read_context context, Read read_it) {
  json_reader in(text, context.line, json_reader::unknown_fields::skipped);
  T value{};
  read_it(in, value);
  if (auto read = in.finish(); !read) return std::move(read.error());
  return value;
}

template <class T, class Table>
result<T> read_table(std::string_view text, read_context context, const Table& table) {
  return read_answer<T>(text, context,
                        [&](json_reader& in, T& value) { read_object(in, value, table); });
}

// {"jobs": [...]}: every list stands under a name, so that something can be added beside it.
template <class List, class Element>
void read_list(json_reader& in, List& into, Element read_element) {
  for (in.begin_array(); in.next_element();) read_element(in, into);
}

constexpr std::array all_codes = {
    error_code::invalid,       error_code::too_large,   error_code::not_found,
    error_code::duplicate,     error_code::wrong_state, error_code::lease_lost,
    error_code::queue_full,    error_code::timed_out,   error_code::stopped,
    error_code::shutting_down, error_code::overloaded,  error_code::disk_full,
    error_code::io_error,      error_code::locked,      error_code::corrupt,
    error_code::unavailable};

// A newer server may have a code that this client does not know.
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
    {"detail", [](json_reader& in, problem& p) { p.why.message = in.string(); }},
    {"code", [](json_reader& in, problem& p) { p.why.code = read_code(in); }, field_rule::required},
    {"job", [](json_reader& in, problem& p) { p.why.job = in.natural(0, exact_max); }},
}};

// ---- pushes

struct push_item {
  push_receipt receipt;
  std::optional<error> why;
};

constexpr std::array<field<push_item>, 4> push_item_fields = {{
    {"id", [](json_reader& in, push_item& p) { p.receipt.id = in.natural(0, exact_max); }},
    {"duplicate",
     [](json_reader& in, push_item& p) {
       if (in.boolean()) p.receipt.what = push_receipt::fate::duplicate;
     }},
    {"dropped",
     [](json_reader& in, push_item& p) {
       if (in.boolean()) p.receipt.what = push_receipt::fate::dropped;
     }},
    {"error", [](json_reader& in, push_item& p) { detail::read_value(in, p.why.emplace()); }},
}};

void read_push_item(json_reader& in, push_item& p) {
  read_object(in, p, push_item_fields);
  if (!p.why && p.receipt.id == 0 && p.receipt.what != push_receipt::fate::dropped) {
    in.refuse_object("the field \"id\" is missing");
  }
}

using push_results = std::vector<result<push_receipt>>;
constexpr std::array<field<push_results>, 1> push_results_fields = {{
    {"results",
     [](json_reader& in, push_results& all) {
       read_list(in, all, [](json_reader& i, push_results& into) {
         push_item item;
         read_push_item(i, item);
         if (item.why) {
           into.emplace_back(std::move(*item.why));
         } else {
           into.emplace_back(item.receipt);
         }
       });
     },
     field_rule::required},
}};

void write_members(json_writer& w, const push_receipt& receipt) {
  if (receipt.what == push_receipt::fate::dropped) {
    w.key("dropped").value(true);
    return;
  }
  w.key("id").value(receipt.id);
  if (receipt.what == push_receipt::fate::duplicate) w.key("duplicate").value(true);
}

void write_item(json_writer& w, const result<push_receipt>& pushed) {
  w.begin_object();
  if (pushed) {
    write_members(w, *pushed);
  } else {
    w.key("error");
    detail::write_error(w, pushed.error());
  }
  w.end_object();
}

// ---- lists of jobs, leases

constexpr std::array<field<job_page>, 2> page_fields = {{
    {"jobs",
     [](json_reader& in, job_page& page) {
       read_list(in, page.jobs, [](json_reader& i, std::vector<job>& into) {
         detail::read_value(i, into.emplace_back());
       });
     },
     field_rule::required},
    {"next", [](json_reader& in, job_page& page) { page.cursor = in.natural(0, exact_max); }},
}};

constexpr std::array<field<std::vector<leased_job>>, 1> leased_fields = {{
    {"jobs",
     [](json_reader& in, std::vector<leased_job>& jobs) {
       read_list(in, jobs, [](json_reader& i, std::vector<leased_job>& into) {
         detail::read_value(i, into.emplace_back());
       });
     },
     field_rule::required},
}};

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
    {"error",
     [](json_reader& in, std::optional<error>& why) { detail::read_value(in, why.emplace()); }},
}};

using ack_results = std::vector<void_result>;
constexpr std::array<field<ack_results>, 1> ack_results_fields = {{
    {"results",
     [](json_reader& in, ack_results& all) {
       read_list(in, all, [](json_reader& i, ack_results& into) {
         std::optional<error> why;
         read_object(i, why, ack_result_fields);
         if (why) {
           into.emplace_back(std::move(*why));
         } else {
           into.emplace_back(done{});
         }
       });
     },
     field_rule::required},
}};

// ---- queues and numbers

template <class T>
struct count_field {
  std::string_view name;
  std::uint64_t T::*member;
};

constexpr std::array<count_field<queue_counts>, 8> counts = {{
    {"scheduled", &queue_counts::scheduled},
    {"ready", &queue_counts::ready},
    {"running", &queue_counts::running},
    {"retrying", &queue_counts::retrying},
    {"done", &queue_counts::done},
    {"dead", &queue_counts::dead},
    {"cancelled", &queue_counts::cancelled},
    {"bytes", &queue_counts::bytes},
}};

constexpr std::array<count_field<engine_stats>, 22> stats_numbers = {{
    {"pushed", &engine_stats::pushed},
    {"duplicates", &engine_stats::duplicates},
    {"dropped", &engine_stats::dropped},
    {"refused", &engine_stats::refused},
    {"leased", &engine_stats::leased},
    {"acked", &engine_stats::acked},
    {"failed", &engine_stats::failed},
    {"expired", &engine_stats::expired},
    {"given_back", &engine_stats::given_back},
    {"retried", &engine_stats::retried},
    {"died", &engine_stats::died},
    {"cancelled", &engine_stats::cancelled},
    {"commits", &engine_stats::commits},
    {"committed_changes", &engine_stats::committed_changes},
    {"commit_errors", &engine_stats::commit_errors},
    {"waiting_leases", &engine_stats::waiting_leases},
    {"waiting_pushes", &engine_stats::waiting_pushes},
    {"running", &engine_stats::running},
    {"window_jobs", &engine_stats::window_jobs},
    {"window_bytes", &engine_stats::window_bytes},
    {"commit_p50_us", &engine_stats::commit_p50_us},
    {"commit_p99_us", &engine_stats::commit_p99_us},
}};

// Objects of numbers alone.
template <class T, std::size_t N>
void read_counts(json_reader& in, T& into, const std::array<count_field<T>, N>& table) {
  std::string_view key;
  for (in.begin_object(); in.next_key(key);) {
    const auto found = std::ranges::find(table, key, &count_field<T>::name);
    if (found == table.end()) {
      in.skip();
      continue;
    }
    in.name_member(found->name);
    into.*found->member = in.natural();
  }
}

template <class T, std::size_t N>
void write_counts(json_writer& w, const T& from, const std::array<count_field<T>, N>& table) {
  w.begin_object();
  for (const auto& c : table) w.key(c.name).value(from.*c.member);
  w.end_object();
}

constexpr std::array<field<queue_info>, 10> queue_fields = {{
    {"name", [](json_reader& in, queue_info& q) { q.name = in.string(); }, field_rule::required},
    {"capacity_jobs",
     [](json_reader& in, queue_info& q) { q.options.capacity_jobs = in.natural(); }},
    {"capacity_bytes",
     [](json_reader& in, queue_info& q) { q.options.capacity_bytes = in.natural(); }},
    {"when_full",
     [](json_reader& in, queue_info& q) {
       q.options.when_full = detail::read_word(in, overflow_from, "expected an overflow policy");
     }},
    {"paused", [](json_reader& in, queue_info& q) { q.options.paused = in.boolean(); }},
    {"lease_for", [](json_reader& in, queue_info& q) { q.options.lease_for = in.duration(); }},
    {"keep_done", [](json_reader& in, queue_info& q) { q.options.keep_done = in.duration(); }},
    {"keep_results",
     [](json_reader& in, queue_info& q) { q.options.keep_results = in.duration(); }},
    {"keep_dead", [](json_reader& in, queue_info& q) { q.options.keep_dead = in.duration(); }},
    {"counts", [](json_reader& in, queue_info& q) { read_counts(in, q.counts, counts); }},
}};

constexpr std::array<field<std::vector<queue_info>>, 1> queues_fields = {{
    {"queues",
     [](json_reader& in, std::vector<queue_info>& queues) {
       read_list(in, queues, [](json_reader& i, std::vector<queue_info>& into) {
         read_object(i, into.emplace_back(), queue_fields);
       });
     },
     field_rule::required},
}};

constexpr std::array<field<purge_receipt>, 1> purge_fields = {{
    {"purged", [](json_reader& in, purge_receipt& p) { p.purged = in.natural(); },
     field_rule::required},
}};

void write_object(json_writer& w, const queue_info& q) {
  const queue_options& o = q.options;
  w.begin_object().key("name").value(q.name);
  w.key("capacity_jobs").value(o.capacity_jobs).key("capacity_bytes").value(o.capacity_bytes);
  w.key("when_full").value(to_string(o.when_full)).key("paused").value(o.paused);
  w.key("lease_for").value(o.lease_for).key("keep_done").value(o.keep_done);
  w.key("keep_results").value(o.keep_results).key("keep_dead").value(o.keep_dead);
  w.key("counts");
  write_counts(w, q.counts, counts);
  w.end_object();
}

}  // namespace

namespace detail {

void read_value(json_reader& in, error& into) {
  read_object(in, into, error_fields);
}

void write_error(json_writer& w, const error& why) {
  w.begin_object().key("code").value(to_string(why.code)).key("message").value(why.message);
  if (why.job != 0) w.key("job").value(why.job);
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
  return read_answer<job>(text, context,
                          [](json_reader& in, job& it) { detail::read_value(in, it); });
}
template <>
result<job_page> read<job_page>(std::string_view text, read_context context) {
  return read_table<job_page>(text, context, page_fields);
}
template <>
result<push_receipt> read<push_receipt>(std::string_view text, read_context context) {
  auto item = read_answer<push_item>(text, context, read_push_item);
  if (!item) return std::move(item.error());
  if (item->why) return std::move(*item->why);
  return item->receipt;
}
template <>
result<push_results> read<push_results>(std::string_view text, read_context context) {
  return read_table<push_results>(text, context, push_results_fields);
}
template <>
result<std::vector<leased_job>> read<std::vector<leased_job>>(std::string_view text,
                                                              read_context context) {
  return read_table<std::vector<leased_job>>(text, context, leased_fields);
}
template <>
result<extension> read<extension>(std::string_view text, read_context context) {
  return read_table<extension>(text, context, extension_fields);
}
template <>
result<fail_receipt> read<fail_receipt>(std::string_view text, read_context context) {
  return read_table<fail_receipt>(text, context, fail_receipt_fields);
}
template <>
result<ack_results> read<ack_results>(std::string_view text, read_context context) {
  return read_table<ack_results>(text, context, ack_results_fields);
}
template <>
result<queue_info> read<queue_info>(std::string_view text, read_context context) {
  return read_table<queue_info>(text, context, queue_fields);
}
template <>
result<std::vector<queue_info>> read<std::vector<queue_info>>(std::string_view text,
                                                              read_context context) {
  return read_table<std::vector<queue_info>>(text, context, queues_fields);
}
template <>
result<purge_receipt> read<purge_receipt>(std::string_view text, read_context context) {
  return read_table<purge_receipt>(text, context, purge_fields);
}
template <>
result<engine_stats> read<engine_stats>(std::string_view text, read_context context) {
  return read_answer<engine_stats>(text, context, [](json_reader& in, engine_stats& stats) {
    read_counts(in, stats, stats_numbers);
  });
}
template <>
result<problem> read<problem>(std::string_view text, read_context context) {
  return read_table<problem>(text, context, problem_fields);
}

void write(std::string& out, const job& it) {
  json_writer w(out);
  w.begin_object();
  detail::write_members(w, it, it.state);
  w.end_object();
}

void write(std::string& out, const job_page& page) {
  json_writer w(out);
  w.begin_object().key("jobs").begin_array();
  for (const job& it : page.jobs) {
    w.begin_object();
    detail::write_members(w, it, it.state);
    w.end_object();
  }
  w.end_array().key("next");
  page.cursor ? w.value(*page.cursor) : w.null();
  w.end_object();
}

void write(std::string& out, const push_receipt& receipt) {
  json_writer w(out);
  w.begin_object();
  write_members(w, receipt);
  w.end_object();
}

void write_item(std::string& out, const result<push_receipt>& pushed) {
  json_writer w(out);
  write_item(w, pushed);
}

void write(std::string& out, const push_results& results) {
  json_writer w(out);
  const auto accepted = std::ranges::count_if(results, [](const result<push_receipt>& r) {
    return r && r->what == push_receipt::fate::accepted;
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
    detail::write_members(w, *leased.it, job_state::running);
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

void write(std::string& out, const queue_info& info) {
  json_writer w(out);
  write_object(w, info);
}

void write(std::string& out, const std::vector<queue_info>& queues) {
  json_writer w(out);
  w.begin_object().key("queues").begin_array();
  for (const queue_info& q : queues) write_object(w, q);
  w.end_array().end_object();
}

void write(std::string& out, const purge_receipt& receipt) {
  json_writer w(out);
  w.begin_object().key("purged").value(receipt.purged).end_object();
}

void write(std::string& out, const engine_stats& stats) {
  json_writer w(out);
  write_counts(w, stats, stats_numbers);
}

void write(std::string& out, const problem& p) {
  json_writer w(out);
  w.begin_object().key("type").value("about:blank").key("title").value(p.title);
  w.key("status").value(p.status).key("detail").value(p.why.message);
  w.key("code").value(to_string(p.why.code));
  if (p.why.job != 0) w.key("job").value(p.why.job);
  w.end_object();
}

}  // namespace sluice::jobs::json
