#include "jobs/model/job.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::jobs {
namespace {

constexpr std::array<std::pair<job_state, std::string_view>, 7> state_words = {{
    {job_state::scheduled, "scheduled"},
    {job_state::ready, "ready"},
    {job_state::running, "running"},
    {job_state::retrying, "retrying"},
    {job_state::done, "done"},
    {job_state::dead, "dead"},
    {job_state::cancelled, "cancelled"},
}};

// What the server itself keeps beside what the producer said.
constexpr std::uint64_t row_bytes = 64;

error wrong(std::string what) {
  return {error_code::invalid, std::move(what)};
}

error too_long(std::string_view field, std::size_t limit) {
  return {error_code::too_large,
          std::string(field) + " is longer than " + std::to_string(limit) + " bytes"};
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-/:").find(c) != std::string_view::npos;
}

bool is_duration(milliseconds d) {
  return d >= milliseconds(0) && d <= limits::duration_max;
}

void_result validate_unique(const unique_key& u) {
  if (u.key.size() > limits::unique_key_bytes_max) {
    return too_long("unique.key", limits::unique_key_bytes_max);
  }
  if (!is_duration(u.lasts)) return wrong("unique.for must be from 0 to 10 years");
  if (!u.key.empty() && u.until == unique_until::elapsed && u.lasts == milliseconds(0)) {
    return wrong("unique.for must say how long the key is kept");
  }
  return done{};
}

}  // namespace

std::string_view to_string(job_state state) noexcept {
  for (const auto& [known, word] : state_words) {
    if (known == state) return word;
  }
  return "unknown";
}

std::optional<job_state> job_state_from(std::string_view word) noexcept {
  for (const auto& [state, known] : state_words) {
    if (known == word) return state;
  }
  return std::nullopt;
}

std::uint64_t weight_of(const job_spec& s) noexcept {
  return row_bytes + s.kind.size() + s.args.data.size() + s.unique.key.size() + s.metadata.size();
}

void_result validate_queue_name(std::string_view name) {
  if (name.empty()) return wrong("the name of a queue must not be empty");
  if (name.size() > limits::queue_name_bytes_max) {
    return too_long("the name of a queue", limits::queue_name_bytes_max);
  }
  const auto bad = std::ranges::find_if_not(name, is_name_byte);
  if (bad != name.end()) {
    return wrong("the name of a queue may have letters, digits and . _ - / : only; byte " +
                 std::to_string(bad - name.begin() + 1) + " is something else");
  }
  return done{};
}

void_result validate(const job_spec& s) {
  if (auto named = validate_queue_name(s.queue); !named) return named;
  if (s.kind.empty()) return wrong("kind must not be empty: it says which handler does the job");
  if (s.kind.size() > limits::kind_bytes_max) return too_long("kind", limits::kind_bytes_max);
  if (s.args.data.size() > limits::args_bytes_max) {
    return too_long("args", limits::args_bytes_max);
  }
  if (s.metadata.size() > limits::metadata_bytes_max) {
    return too_long("metadata", limits::metadata_bytes_max);
  }
  if (s.priority > limits::priority_max || s.priority < -limits::priority_max) {
    return wrong("priority must be from -4294967296 to 4294967296");
  }
  if (s.run_at.ms < 0) return wrong("run_at must not be before 1970");
  if (!is_duration(s.lease_for)) return wrong("lease_for must be from 0 to 10 years");
  if (!is_duration(s.time_limit)) return wrong("time_limit must be from 0 to 10 years");
  if (s.keep_for && !is_duration(*s.keep_for)) return wrong("keep_for must be from 0 to 10 years");
  if (auto unique = validate_unique(s.unique); !unique) return unique;
  return validate(s.retry);
}

}  // namespace sluice::jobs
