// Codec of queues: options, counts and patches; and of the server's statistics.
#include <algorithm>
#include <array>
#include <limits>

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
using detail::write_optional;

template <class T>
struct count_field {
  std::string_view name;
  std::uint64_t T::*member;
};

constexpr std::array<count_field<queue_counts>, 9> counts = {{
    {"scheduled", &queue_counts::scheduled},
    {"held", &queue_counts::held},
    {"ready", &queue_counts::ready},
    {"running", &queue_counts::running},
    {"retrying", &queue_counts::retrying},
    {"done", &queue_counts::done},
    {"dead", &queue_counts::dead},
    {"cancelled", &queue_counts::cancelled},
    {"bytes", &queue_counts::bytes},
}};

constexpr std::array<count_field<engine_stats>, 28> stats_numbers = {{
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
    {"skipped", &engine_stats::skipped},
    {"held", &engine_stats::held},
    {"released", &engine_stats::released},
    {"cron_runs", &engine_stats::cron_runs},
    {"webhooks", &engine_stats::webhooks},
    {"events", &engine_stats::events},
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

// Objects with only numbers.
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

constexpr double most = std::numeric_limits<double>::max();
std::uint32_t count(json_reader& in) {
  return static_cast<std::uint32_t>(in.natural(0, std::numeric_limits<std::uint32_t>::max()));
}

constexpr std::array<field<delivery_target>, 3> target_fields = {{
    {"url", [](json_reader& in, delivery_target& d) { d.url = in.string(); }},
    {"concurrency", [](json_reader& in, delivery_target& d) { d.concurrency = count(in); }},
    {"timeout", [](json_reader& in, delivery_target& d) { d.timeout = in.duration(); }},
}};

constexpr std::array<field<queue_info>, 18> queue_fields = {{
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
    {"rate", [](json_reader& in, queue_info& q) { q.options.rate = in.number(0, most); }},
    {"rate_burst", [](json_reader& in, queue_info& q) { q.options.rate_burst = count(in); }},
    {"concurrency", [](json_reader& in, queue_info& q) { q.options.concurrency = count(in); }},
    {"weight", [](json_reader& in, queue_info& q) { q.options.weight = count(in); }},
    {"key_concurrency",
     [](json_reader& in, queue_info& q) { q.options.key_concurrency = count(in); }},
    {"key_rate", [](json_reader& in, queue_info& q) { q.options.key_rate = in.number(0, most); }},
    {"key_burst", [](json_reader& in, queue_info& q) { q.options.key_burst = count(in); }},
    {"deliver",
     [](json_reader& in, queue_info& q) { read_object(in, q.options.deliver, target_fields); }},
    {"counts", [](json_reader& in, queue_info& q) { read_counts(in, q.counts, counts); }},
}};

void read_queue(json_reader& in, queue_info& into) {
  read_object(in, into, queue_fields);
}
constexpr auto queues_fields = detail::list_fields<queue_info, read_queue>("queues");

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
  w.key("rate").value(o.rate).key("rate_burst").value(o.rate_burst);
  w.key("concurrency").value(o.concurrency).key("weight").value(o.weight);
  w.key("key_concurrency").value(o.key_concurrency);
  w.key("key_rate").value(o.key_rate).key("key_burst").value(o.key_burst);
  if (!o.deliver.url.empty()) {
    w.key("deliver").begin_object().key("url").value(o.deliver.url);
    w.key("concurrency").value(o.deliver.concurrency).key("timeout").value(o.deliver.timeout);
    w.end_object();
  }
  w.key("counts");
  write_counts(w, q.counts, counts);
  w.end_object();
}

constexpr std::string_view overflow_words =
    R"(expected "block", "reject", "drop_newest", "drop_oldest" or "latest")";

constexpr std::array<field<queue_patch>, 3> queue_target_patch_fields = {{
    {"url", [](json_reader& in, queue_patch& p) { p.deliver_url = in.string(); }},
    {"concurrency", [](json_reader& in, queue_patch& p) { p.deliver_concurrency = count(in); }},
    {"timeout", [](json_reader& in, queue_patch& p) { p.deliver_timeout = in.duration(); }},
}};

// null for `deliver` ends the delivery; other fields cannot be reset by null.
constexpr std::array<field<queue_patch>, 16> queue_patch_fields = {{
    {"capacity_jobs",
     [](json_reader& in, queue_patch& p) { p.capacity_jobs = in.natural(1, exact_max); }},
    {"capacity_bytes",
     [](json_reader& in, queue_patch& p) { p.capacity_bytes = in.natural(1, exact_max); }},
    {"when_full",
     [](json_reader& in, queue_patch& p) {
       p.when_full = detail::read_word(in, overflow_from, overflow_words);
     }},
    {"paused", [](json_reader& in, queue_patch& p) { p.paused = in.boolean(); }},
    {"lease_for", [](json_reader& in, queue_patch& p) { p.lease_for = in.duration(); }},
    {"keep_done", [](json_reader& in, queue_patch& p) { p.keep_done = in.duration(); }},
    {"keep_results", [](json_reader& in, queue_patch& p) { p.keep_results = in.duration(); }},
    {"keep_dead", [](json_reader& in, queue_patch& p) { p.keep_dead = in.duration(); }},
    {"rate", [](json_reader& in, queue_patch& p) { p.rate = in.number(0, 1e6); }},
    {"rate_burst", [](json_reader& in, queue_patch& p) { p.rate_burst = count(in); }},
    {"concurrency", [](json_reader& in, queue_patch& p) { p.concurrency = count(in); }},
    {"weight", [](json_reader& in, queue_patch& p) { p.weight = count(in); }},
    {"key_concurrency", [](json_reader& in, queue_patch& p) { p.key_concurrency = count(in); }},
    {"key_rate", [](json_reader& in, queue_patch& p) { p.key_rate = in.number(0, 1e6); }},
    {"key_burst", [](json_reader& in, queue_patch& p) { p.key_burst = count(in); }},
    {"deliver",
     [](json_reader& in, queue_patch& p) {
       if (in.skip_null()) {
         p.deliver_url = "";
       } else {
         read_object(in, p, queue_target_patch_fields);
       }
     },
     field_rule::as_written},
}};

void write_delivery(json_writer& w, const queue_patch& p) {
  const bool is_set = p.deliver_concurrency || p.deliver_timeout;
  if (!p.deliver_url && !is_set) return;
  w.key("deliver");
  if (p.deliver_url && p.deliver_url->empty() && !is_set) {
    w.null();
    return;
  }
  w.begin_object();
  write_optional(w, "url", p.deliver_url);
  write_optional(w, "concurrency", p.deliver_concurrency);
  write_optional(w, "timeout", p.deliver_timeout);
  w.end_object();
}

}  // namespace

std::optional<overflow> overflow_from(std::string_view word) noexcept {
  for (const auto policy : {overflow::block, overflow::reject, overflow::drop_newest,
                            overflow::drop_oldest, overflow::latest}) {
    if (word == to_string(policy)) return policy;
  }
  return std::nullopt;
}

template <>
result<queue_patch> read<queue_patch>(std::string_view text, read_context context) {
  return read_request<queue_patch>(text, context, queue_patch_fields);
}
template <>
result<queue_info> read<queue_info>(std::string_view text, read_context context) {
  return read_answer<queue_info>(text, context, queue_fields);
}

template <>
result<std::vector<queue_info>> read<std::vector<queue_info>>(std::string_view text,
                                                              read_context context) {
  return read_answer<std::vector<queue_info>>(text, context, queues_fields);
}

template <>
result<purge_receipt> read<purge_receipt>(std::string_view text, read_context context) {
  return read_answer<purge_receipt>(text, context, purge_fields);
}

template <>
result<engine_stats> read<engine_stats>(std::string_view text, read_context context) {
  return read_answer_with<engine_stats>(text, context, [](json_reader& in, engine_stats& stats) {
    read_counts(in, stats, stats_numbers);
  });
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

void write(std::string& out, const queue_patch& p) {
  json_writer w(out);
  w.begin_object();
  write_optional(w, "capacity_jobs", p.capacity_jobs);
  write_optional(w, "capacity_bytes", p.capacity_bytes);
  if (p.when_full) w.key("when_full").value(to_string(*p.when_full));
  write_optional(w, "paused", p.paused);
  write_optional(w, "lease_for", p.lease_for);
  write_optional(w, "keep_done", p.keep_done);
  write_optional(w, "keep_results", p.keep_results);
  write_optional(w, "keep_dead", p.keep_dead);
  write_optional(w, "rate", p.rate);
  write_optional(w, "rate_burst", p.rate_burst);
  write_optional(w, "concurrency", p.concurrency);
  write_optional(w, "weight", p.weight);
  write_optional(w, "key_concurrency", p.key_concurrency);
  write_optional(w, "key_rate", p.key_rate);
  write_optional(w, "key_burst", p.key_burst);
  write_delivery(w, p);
  w.end_object();
}

}  // namespace sluice::jobs::json
