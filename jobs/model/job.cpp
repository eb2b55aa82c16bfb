#include "jobs/model/job.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::jobs {
namespace {

constexpr std::array<std::pair<job_state, std::string_view>, 8> state_words = {{
    {job_state::scheduled, "scheduled"},
    {job_state::held, "held"},
    {job_state::ready, "ready"},
    {job_state::running, "running"},
    {job_state::retrying, "retrying"},
    {job_state::done, "done"},
    {job_state::dead, "dead"},
    {job_state::cancelled, "cancelled"},
}};

constexpr std::array<std::string_view, 3> when_words = {"success", "end", "failure"};

constexpr std::array<std::string_view, 3> outcome_words = {"done", "failed", "expired"};

// Bytes of the server's own fields, beside those of the producer.
constexpr std::uint64_t row_bytes = 64;
constexpr std::uint64_t dependency_bytes = 24;

error too_long(std::string_view field, std::size_t limit) {
  return {error_code::too_large,
          std::string(field) + " is longer than " + std::to_string(limit) + " bytes"};
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-/:+;$()").find(c) != std::string_view::npos;
}

bool is_duration(milliseconds d) {
  return d >= milliseconds(0) && d <= limits::duration_max;
}

void_result validate_unique(const unique_key& u) {
  if (u.key.size() > limits::unique_key_bytes_max) {
    return too_long("unique.key", limits::unique_key_bytes_max);
  }
  if (!is_duration(u.lasts)) return invalid_error("unique.for must be from 0 to 10 years");
  if (!u.key.empty() && u.until == unique_until::elapsed && u.lasts == milliseconds(0)) {
    return invalid_error(
        "unique.for must be set with unique.until=elapsed: it is how long the key is kept");
  }
  return done{};
}

// The fields about other jobs and about the end of the job.
void_result validate_waiting(const job_spec& s) {
  if (s.key.size() > limits::key_bytes_max) return too_long("key", limits::key_bytes_max);
  if (s.step.size() > limits::step_bytes_max) return too_long("step", limits::step_bytes_max);
  if (s.webhook.size() > limits::url_bytes_max) return too_long("webhook", limits::url_bytes_max);
  if (s.after.size() > limits::after_max) {
    return error{error_code::too_large,
                 "after has more than " + std::to_string(limits::after_max) +
                     " entries: put the jobs into a batch and depend on the batch"};
  }
  for (std::size_t i = 0; i < s.after.size(); ++i) {
    const dependency& d = s.after[i];
    if (d.on != 0 || !d.step.empty()) continue;
    return invalid_error("after[" + std::to_string(i) + "] names neither a job nor a step");
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

std::string_view to_string(after_when when) noexcept {
  return when_words[static_cast<std::size_t>(when)];
}

std::optional<after_when> after_when_from(std::string_view word) noexcept {
  const auto at = std::ranges::find(when_words, word);
  if (at == when_words.end()) return std::nullopt;
  return static_cast<after_when>(at - when_words.begin());
}

std::string_view to_string(attempt_outcome outcome) noexcept {
  return outcome_words[static_cast<std::size_t>(outcome)];
}

std::optional<attempt_outcome> attempt_outcome_from(std::string_view word) noexcept {
  const auto at = std::ranges::find(outcome_words, word);
  if (at == outcome_words.end()) return std::nullopt;
  return static_cast<attempt_outcome>(at - outcome_words.begin());
}

void add_attempt(std::vector<attempt_record>& history, attempt_record ended) {
  history.push_back(std::move(ended));
  if (history.size() > limits::attempts_kept) history.erase(history.begin());
}

attempt_error damaged_error(const job& damaged, unix_time now) {
  return {damaged.attempts, now, std::string(damaged_error_type),
          "the row of this job in the store does not match its checksum: its data changed on the "
          "disk, so it is never run; restore a backup or push the job again",
          ""};
}

job damaged_view(job damaged, unix_time now) {
  job& j = damaged;
  j.is_damaged = true;
  j.state = job_state::dead;
  j.spec.args.type = content_type::bytes;
  j.spec.metadata.clear();
  j.spec.step.clear();
  j.result.reset();
  j.progress.reset();
  j.history.clear();
  j.errors = {damaged_error(j, now)};
  return damaged;
}

std::uint64_t weight_of(const job_spec& s) noexcept {
  return row_bytes + s.kind.size() + s.args.data.size() + s.unique.key.size() + s.metadata.size() +
         s.key.size() + s.step.size() + s.webhook.size() + s.after.size() * dependency_bytes;
}

void_result validate_queue_name(std::string_view name) {
  if (name.empty()) return invalid_error("the name of a queue must not be empty");
  if (name.size() > limits::queue_name_bytes_max) {
    return too_long("the name of a queue", limits::queue_name_bytes_max);
  }
  const auto bad = std::ranges::find_if_not(name, is_name_byte);
  if (bad != name.end()) {
    return invalid_error(
        "the name of a queue may have letters, digits and . _ - / : + ; $ ( ) only; byte " +
        std::to_string(bad - name.begin() + 1) + " is not allowed");
  }
  return done{};
}

void_result validate(const job_spec& s) {
  if (auto named = validate_queue_name(s.queue); !named) return named;
  if (s.kind.empty())
    return invalid_error("kind must not be empty: it selects the handler of the job");
  if (s.kind.size() > limits::kind_bytes_max) return too_long("kind", limits::kind_bytes_max);
  if (s.args.data.size() > limits::args_bytes_max) {
    return too_long("args", limits::args_bytes_max);
  }
  if (s.metadata.size() > limits::metadata_bytes_max) {
    return too_long("metadata", limits::metadata_bytes_max);
  }
  if (s.priority > limits::priority_max || s.priority < -limits::priority_max) {
    return invalid_error("priority must be from -4294967296 to 4294967296");
  }
  if (s.run_at.ms < 0) return invalid_error("run_at must not be before 1970");
  if (!is_duration(s.lease_for)) return invalid_error("lease_for must be from 0 to 10 years");
  if (!is_duration(s.time_limit)) return invalid_error("time_limit must be from 0 to 10 years");
  if (s.keep_for && !is_duration(*s.keep_for))
    return invalid_error("keep_for must be from 0 to 10 years");
  if (auto unique = validate_unique(s.unique); !unique) return unique;
  if (auto waits = validate_waiting(s); !waits) return waits;
  return validate(s.retry);
}

}  // namespace sluice::jobs
