#pragma once

// A job as Faktory's clients write it, and a job as the server keeps it: the way there and back.
//
// `args` and `jobtype` are the job's args and kind. The rest of what the client sent, also what
// this server does not know, is kept under "faktory" in the job's metadata, and comes back to
// whoever fetches it. A job that was pushed another way has a jid made of its number, and its args
// are put into an array if they are not one.
//
// Pure functions. Text is copied as it was written: no number in it is changed.

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
  bool needs_jid = true;  // the callback of a batch may leave it out
};
// A name that clients may use: not that of a queue of the server's own.
void_result validate_client_queue(std::string_view name);

result<pushed_job> read_job(std::string_view json, read_rules rules);

// What of a job has to be known when it is fetched.
struct job_facts {
  std::string jid{};
  bool is_ours = false;       // pushed with this protocol: pauses as Faktory does
  std::string_view kept{};    // the members that came with it; into the job's metadata
  std::string_view custom{};  // ... of these
  bool has_jid = false;       // ... and whether these are among them
  bool has_created_at = false;
  std::optional<std::int64_t> backtrace_lines{};  // of a failure, to be kept; none: all of them
  std::optional<unix_time> expires_at{};
};
job_facts facts_of(const job& it);

// What a batch calls has the batch's bid in custom._bid.
void write_job(std::string& out, const job& it, const job_facts& facts);

// The pause before the next attempt of a job that has failed so often before; `chance` is uniform
// in [0, 1).
milliseconds pause_after_failures(std::uint32_t failures_before, double chance);

std::string jid_of(job_id id);  // sluice-00000042
std::optional<job_id> id_of_jid(std::string_view jid);
std::string bid_of(job_id id);  // b-00000042
std::optional<job_id> id_of_bid(std::string_view bid);

}  // namespace sluice::jobs::faktory
