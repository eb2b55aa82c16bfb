#pragma once

// The JSON arguments of commands, and their readers. Unknown members are ignored, since clients may
// be older or newer than the server.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::faktory {

struct hello_call {
  std::int64_t version = 0;
  std::string hostname{};
  std::string wid{};
  std::int64_t pid = 0;
  std::vector<std::string> labels{};
  std::string pwdhash{};
};

struct beat_call {
  std::string wid{};
  std::string current_state{};
  std::uint64_t rss_kb = 0;
};

struct fail_call {
  std::string jid{};
  std::string errtype{};
  std::string message{};
  std::vector<std::string> backtrace{};
};

struct mutate_call {
  enum class act : std::uint8_t { kill, requeue, discard, clear };
  act action = act::clear;
  job_state target = job_state::dead;
  std::string jobtype{};
  std::vector<std::string> jids{};
  std::string pattern{};
};

struct track_call {
  std::string jid{};
  std::optional<double> percent{};
  std::optional<std::string> desc{};
  std::optional<unix_time> reserve_until{};
};

struct batch_call {
  std::string description{};
  std::string parent_bid{};
  std::optional<job_spec> success{};
  std::optional<job_spec> complete{};
};

result<hello_call> read_hello(std::string_view json);
result<beat_call> read_beat(std::string_view json);
result<std::string> read_jid(std::string_view json);  // of ACK
result<fail_call> read_fail(std::string_view json);
result<mutate_call> read_mutate(std::string_view json);
result<track_call> read_track(std::string_view json);
result<batch_call> read_batch(std::string_view json, unix_time now);
// Returns the jobs of PUSHB, each as its JSON text.
result<std::vector<std::string_view>> read_jobs(std::string_view json);

}  // namespace sluice::jobs::faktory
