#include "jobs/auth/token.hpp"

#include <algorithm>

#include "jobs/model/job.hpp"

namespace sluice::jobs {

std::string_view to_string(role r) noexcept {
  switch (r) {
    case role::push:
      return "push";
    case role::work:
      return "work";
    case role::read:
      return "read";
    case role::admin:
      return "admin";
  }
  return "unknown";
}

std::optional<role> role_from(std::string_view word) noexcept {
  for (const role r : all_roles) {
    if (to_string(r) == word) return r;
  }
  return std::nullopt;
}

std::string to_string(role_set roles) {
  std::string out;
  for (const role r : all_roles) {
    if (!roles.names(r)) continue;
    if (!out.empty()) out += ", ";
    out += to_string(r);
  }
  return out;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view queue) noexcept {
  return std::ranges::any_of(patterns, [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return pattern == queue;
    return queue.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

bool token::covers(std::string_view queue) const noexcept {
  return queues.empty() || matches_any(queues, queue);
}

void_result validate_queue_pattern(std::string_view pattern) {
  if (pattern == "*") return done{};
  const std::string_view name =
      pattern.ends_with('*') ? pattern.substr(0, pattern.size() - 1) : pattern;
  if (name.find('*') != std::string_view::npos) {
    return error{error_code::invalid, "invalid queue pattern '" + std::string(pattern) +
                                          "': only one * is allowed, at the end, as in mail-*"};
  }
  return validate_queue_name(name);
}

}  // namespace sluice::jobs
