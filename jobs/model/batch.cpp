#include "jobs/model/batch.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace sluice::jobs {
namespace {

constexpr std::array<std::string_view, 4> state_words = {"open", "running", "done", "failed"};

using step_names = std::unordered_map<std::string_view, std::size_t>;

// Names a job in an error: by its step if it has one, else by its number.
std::string name_of(const std::vector<job_spec>& jobs, std::size_t at) {
  if (!jobs[at].step.empty()) return "step '" + jobs[at].step + "'";
  return "job " + std::to_string(at + 1);
}

// Follows unplaced dependencies from job to job until one repeats.
std::string cycle_of(const std::vector<job_spec>& jobs, const step_names& names,
                     const std::vector<bool>& placed) {
  std::size_t at = 0;
  while (placed[at]) ++at;
  std::vector<std::size_t> path;
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    for (const dependency& d : jobs[at].after) {
      if (d.step.empty() || placed[names.at(d.step)]) continue;
      at = names.at(d.step);
      break;
    }
  }
  std::string text;
  for (auto one = std::ranges::find(path, at); one != path.end(); ++one) {
    text += "'" + jobs[*one].step + "' after ";
  }
  return text + "'" + jobs[at].step + "'";
}

void_result validate_callback(const std::optional<job_spec>& spec, const std::string& name) {
  if (!spec) return done{};
  if (auto valid = validate(*spec); !valid) {
    return error{valid.error().code, name + ": " + valid.error().message};
  }
  for (const dependency& d : spec->after) {
    if (!d.step.empty()) {
      return invalid_error(name + ": after: a callback waits for its batch; it cannot name a step");
    }
  }
  return done{};
}

}  // namespace

std::string_view to_string(batch_state state) noexcept {
  return state_words[static_cast<std::size_t>(state)];
}

std::optional<batch_state> batch_state_from(std::string_view word) noexcept {
  const auto at = std::ranges::find(state_words, word);
  if (at == state_words.end()) return std::nullopt;
  return static_cast<batch_state>(at - state_words.begin());
}

result<std::vector<std::size_t>> order_of_steps(const std::vector<job_spec>& jobs) {
  step_names names;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].step.empty()) continue;
    if (!names.emplace(jobs[i].step, i).second) {
      return invalid_error("step '" + jobs[i].step +
                           "' is defined twice: give each step its own name");
    }
  }
  std::vector<std::size_t> waits_for(jobs.size());
  std::vector<std::vector<std::size_t>> followers(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const dependency& d : jobs[i].after) {
      if (d.step.empty()) continue;
      const auto named = names.find(d.step);
      if (named == names.end()) {
        return invalid_error(name_of(jobs, i) + ": after: there is no step '" + d.step +
                             "' in this push");
      }
      ++waits_for[i];
      followers[named->second].push_back(i);
    }
  }
  std::vector<std::size_t> order;
  std::vector<bool> placed(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (waits_for[i] == 0) order.push_back(i);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    placed[order[next]] = true;
    for (const std::size_t follower : followers[order[next]]) {
      if (--waits_for[follower] == 0) order.push_back(follower);
    }
  }
  if (order.size() < jobs.size()) {
    return invalid_error("the steps form a cycle: " + cycle_of(jobs, names, placed));
  }
  return order;
}

void_result validate(const batch_spec& spec) {
  if (spec.name.size() > limits::batch_name_bytes_max) {
    return error{error_code::too_large,
                 "name is longer than " + std::to_string(limits::batch_name_bytes_max) + " bytes"};
  }
  for (const milliseconds kept : {spec.keep_done, spec.keep_failed}) {
    if (kept < milliseconds(0) || kept > limits::duration_max) {
      return invalid_error("keep_done and keep_failed must be from 0 to 10 years");
    }
  }
  for (std::size_t i = 0; i < spec.jobs.size(); ++i) {
    if (auto valid = validate(spec.jobs[i]); !valid) {
      return error{valid.error().code, name_of(spec.jobs, i) + ": " + valid.error().message};
    }
  }
  if (auto valid = validate_callback(spec.on_success, "on_success"); !valid) return valid;
  if (auto valid = validate_callback(spec.on_end, "on_end"); !valid) return valid;
  if (auto valid = validate_callback(spec.on_failure, "on_failure"); !valid) return valid;
  if (auto order = order_of_steps(spec.jobs); !order) return order.error();
  return done{};
}

}  // namespace sluice::jobs
