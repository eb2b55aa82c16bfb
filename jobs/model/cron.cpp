#include "jobs/model/cron.hpp"

#include <algorithm>
#include <array>

namespace sluice::jobs {
namespace {

constexpr std::array<std::string_view, 3> missed_words = {"skip", "one", "all"};

}  // namespace

std::string_view to_string(missed_runs m) noexcept {
  return missed_words[static_cast<std::size_t>(m)];
}

std::optional<missed_runs> missed_runs_from(std::string_view word) noexcept {
  const auto at = std::ranges::find(missed_words, word);
  if (at == missed_words.end()) return std::nullopt;
  return static_cast<missed_runs>(at - missed_words.begin());
}

void_result validate(const cron_spec& spec) {
  if (auto named = validate_queue_name(spec.name); !named) {
    return error{named.error().code, "name: " + named.error().message};
  }
  if (auto valid = validate(spec.job); !valid) {
    return error{valid.error().code, "job: " + valid.error().message};
  }
  if (!spec.job.after.empty() || spec.job.run_at != unix_time{}) {
    return error{error_code::invalid, "job: a job of a cron entry has neither after nor run_at"};
  }
  return done{};
}

}  // namespace sluice::jobs
