#pragma once

// Converts Faktory's JSON of a job to the server's job and back.
//
// `args` and `jobtype` are the job's args and kind. All other members, also unknown ones, are
// stored under "faktory" in the job's metadata, and returned by FETCH. A job of another protocol
// has a jid made from its id, and its args are wrapped in an array if they are not one.
//
// Pure functions. JSON text is copied unchanged, including its numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/model/job.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::faktory {

inline constexpr std::size_t jid_bytes_min = 8;
inline constexpr std::size_t jid_bytes_max = 256;
inline constexpr milliseconds reserve_for_default = std::chrono::seconds(1800);
inline constexpr std::int64_t reserve_seconds_min = 60;
inline constexpr std::int64_t reserve_seconds_max = 86'400;

struct pushed_job {
  std::string jid{};
  job_spec spec{};
};

struct read_rules {
  unix_time now{};
  bool needs_jid = true;  // false for the callback of a batch
};
// Checks the name of a queue; rejects the server's own queues.
void_result validate_client_queue(std::string_view name);

result<pushed_job> read_job(std::string_view json, read_rules rules);

// The facts of a job that FETCH needs.
struct job_facts {
  std::string jid{};
  bool is_ours = false;       // pushed with this protocol: retry delays as in Faktory
  std::string_view kept{};    // the stored members; refers to the job's metadata
  std::string_view custom{};  // the member "custom" of `kept`
  bool has_jid = false;       // `kept` contains "jid"
  bool has_created_at = false;
  std::optional<std::int64_t> backtrace_lines{};  // of a failure, to be stored; none: all
  std::optional<unix_time> expires_at{};
};
job_facts facts_of(const job& j);

// Appends the JSON of a job. The callback of a batch has the bid in custom._bid.
void write_job(std::string& out, const job& j, const job_facts& facts);

// Returns the delay before the next attempt of a job with this many previous failures. `chance` is
// uniform in [0, 1).
milliseconds pause_after_failures(std::uint32_t failures_before, double chance);

std::string jid_of(job_id id);  // sluice-00000042
std::optional<job_id> id_of_jid(std::string_view jid);
std::string bid_of(job_id id);  // b-00000042
std::optional<job_id> id_of_bid(std::string_view bid);

}  // namespace sluice::jobs::faktory
