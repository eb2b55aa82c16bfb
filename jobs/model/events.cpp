#include "jobs/model/events.hpp"

#include <algorithm>
#include <array>

namespace sluice::jobs {
namespace {

constexpr std::array<std::string_view, 15> words = {
    "pushed",  "released",   "started",      "progress",      "retrying",
    "done",    "dead",       "cancelled",    "returned",      "retried",
    "removed", "batch_done", "batch_failed", "queue_changed", "cron_ran"};

}  // namespace

std::string_view to_string(event_type type) noexcept {
  return words[static_cast<std::size_t>(type)];
}

std::optional<event_type> event_type_from(std::string_view word) noexcept {
  const auto at = std::ranges::find(words, word);
  if (at == words.end()) return std::nullopt;
  return static_cast<event_type>(at - words.begin());
}

}  // namespace sluice::jobs
