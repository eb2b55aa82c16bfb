#pragma once

// The JSON form of jobs, queues, leases, batches, cron entries, events and errors, for both sides
// of the wire: `write` on one side, `read` on the other.
//
// Guarantees: `args`, `metadata` and `result` are kept as the text that was sent, so no number in
// them changes; bytes that are not JSON are sent as `args_base64` and `result_base64`. Requests are
// read strictly: an unknown field, a duplicate field, a wrong type and a number out of range are
// errors with the field's name and position (json_reader.hpp). Responses are read leniently: fields
// added by a newer server are skipped. A field that is null counts as missing, except for args.
// Constraints between values are checked by `validate` (job.hpp).
// Cost: one pass, no tree; the strings of the value are the only allocations.
//
//     result<job_spec> spec = json::read<job_spec>(body, {.now = time.after(0ms)});
//     json::write(answer, receipt);

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/json/calls.hpp"
#include "jobs/model/batch.hpp"
#include "jobs/model/cron.hpp"
#include "jobs/model/events.hpp"
#include "jobs/model/faktory_worker.hpp"
#include "jobs/model/requests.hpp"

namespace sluice::jobs::json {

struct read_context {
  unix_time now{};       // the base of `delay`, rounded up: see time_source
  std::size_t line = 1;  // the number of the text's first line, for errors
};

// Parses one JSON text, for every type that `write` accepts, lists included.
template <class T>
result<T> read(std::string_view text, read_context context = {});
template <>
result<job_spec> read(std::string_view text, read_context context);
template <>
result<push_call> read(std::string_view text, read_context context);
template <>
result<lease_call> read(std::string_view text, read_context context);
template <>
result<extend_call> read(std::string_view text, read_context context);
template <>
result<ack_call> read(std::string_view text, read_context context);
template <>
result<fail_call> read(std::string_view text, read_context context);
template <>
result<release_call> read(std::string_view text, read_context context);
template <>
result<acks_call> read(std::string_view text, read_context context);
template <>
result<queue_patch> read(std::string_view text, read_context context);
template <>
result<job> read(std::string_view text, read_context context);
template <>
result<job_page> read(std::string_view text, read_context context);
template <>
result<push_receipt> read(std::string_view text, read_context context);
template <>
result<std::vector<result<push_receipt>>> read(std::string_view text, read_context context);
template <>
result<std::vector<leased_job>> read(std::string_view text, read_context context);
template <>
result<extension> read(std::string_view text, read_context context);
template <>
result<fail_receipt> read(std::string_view text, read_context context);
template <>
result<std::vector<void_result>> read(std::string_view text, read_context context);
template <>
result<queue_info> read(std::string_view text, read_context context);
template <>
result<std::vector<queue_info>> read(std::string_view text, read_context context);
template <>
result<purge_receipt> read(std::string_view text, read_context context);
template <>
result<engine_stats> read(std::string_view text, read_context context);
template <>
result<progress_call> read(std::string_view text, read_context context);
template <>
result<log_call> read(std::string_view text, read_context context);
template <>
result<batch_spec> read(std::string_view text, read_context context);
template <>
result<cron_spec> read(std::string_view text, read_context context);
template <>
result<cron_patch> read(std::string_view text, read_context context);
template <>
result<cron_check> read(std::string_view text, read_context context);
template <>
result<batch_info> read(std::string_view text, read_context context);
template <>
result<batch_page> read(std::string_view text, read_context context);
template <>
result<batch_receipt> read(std::string_view text, read_context context);
template <>
result<cancel_receipt> read(std::string_view text, read_context context);
template <>
result<retry_receipt> read(std::string_view text, read_context context);
template <>
result<cron_info> read(std::string_view text, read_context context);
template <>
result<std::vector<cron_info>> read(std::string_view text, read_context context);
template <>
result<cron_times> read(std::string_view text, read_context context);
template <>
result<log_page> read(std::string_view text, read_context context);
template <>
result<job_event> read(std::string_view text, read_context context);
template <>
result<event_page> read(std::string_view text, read_context context);
template <>
result<faktory_worker> read(std::string_view text, read_context context);
template <>
result<faktory_worker_page> read(std::string_view text, read_context context);
template <>
result<problem> read(std::string_view text, read_context context);

// Requests: read strictly.
void write(std::string& out, const job_spec& spec);
void write(std::string& out, const push_call& call);
void write(std::string& out, const lease_call& call);
void write(std::string& out, const extend_call& call);
void write(std::string& out, const ack_call& call);
void write(std::string& out, const fail_call& call);
void write(std::string& out, const release_call& call);
void write(std::string& out, const acks_call& call);
void write(std::string& out, const queue_patch& patch);
void write(std::string& out, const progress_call& call);
void write(std::string& out, const log_call& call);
void write(std::string& out, const batch_spec& spec);
void write(std::string& out, const cron_spec& spec);  // without a name if the path has it
void write(std::string& out, const cron_patch& patch);
void write(std::string& out, const cron_check& call);

// Responses: read leniently.
void write(std::string& out, const job& j);
void write(std::string& out, const job_page& page);         // {"jobs": [...], "next": cursor}
void write(std::string& out, const push_receipt& receipt);  // {"id": 42}
void write(std::string& out, const std::vector<result<push_receipt>>& results);
void write(std::string& out, const std::vector<leased_job>& jobs);  // {"jobs": [...]}
void write(std::string& out, const extension& e);
void write(std::string& out, const fail_receipt& receipt);
void write(std::string& out, const std::vector<void_result>& results);  // {"results": [...]}
void write(std::string& out, const queue_info& info);
void write(std::string& out, const std::vector<queue_info>& queues);  // {"queues": [...]}
void write(std::string& out, const purge_receipt& receipt);
void write(std::string& out, const engine_stats& stats);
void write(std::string& out, const batch_info& info);
void write(std::string& out, const batch_page& page);  // {"batches": [...], "next": cursor}
void write(std::string& out, const batch_receipt& receipt);
void write(std::string& out, const cancel_receipt& receipt);
void write(std::string& out, const retry_receipt& receipt);
void write(std::string& out, const cron_info& info);
void write(std::string& out, const std::vector<cron_info>& crons);  // {"crons": [...]}
void write(std::string& out, const cron_times& times);
void write(std::string& out, const log_page& page);  // {"lines": [...], "next": cursor}
void write(std::string& out, const job_event& e);
void write(std::string& out, const event_page& page);
void write(std::string& out, const faktory_worker& worker);
void write(std::string& out, const faktory_worker_page& page);  // {"workers": [...], "next": wid}
void write(std::string& out, const problem& p);

// Writes one element of the list of push results, for a response that is written incrementally:
// {"id": 1}, {"id": 1, "duplicate": true}, {"dropped": true}, {"skipped": true} or
// {"error": {...}}.
void write_item(std::string& out, const result<push_receipt>& pushed);

template <class T>
std::string to_json(const T& value) {
  std::string out;
  write(out, value);
  return out;
}

// Checks that a text is one JSON value; the error has the position of the first mistake.
void_result check_json(std::string_view text);

// The position of an event: "<epoch>-<number>", as in the id of a server-sent event.
struct event_place {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;

  friend bool operator==(const event_place&, const event_place&) = default;
};
std::string to_string(event_place place);
std::optional<event_place> event_place_from(std::string_view text) noexcept;

std::optional<error_code> error_code_from(std::string_view word) noexcept;
std::optional<overflow> overflow_from(std::string_view word) noexcept;
std::optional<bulk> bulk_from(std::string_view word) noexcept;

}  // namespace sluice::jobs::json
