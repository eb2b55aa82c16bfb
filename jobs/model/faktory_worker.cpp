#include "jobs/model/faktory_worker.hpp"

#include <algorithm>
#include <array>

namespace sluice::jobs {
namespace {

constexpr std::array<std::string_view, 3> state_words_of_worker = {"running", "quiet", "terminate"};

}  // namespace

std::string_view to_string(worker_state state) noexcept {
  return state_words_of_worker[static_cast<std::size_t>(state)];
}

std::optional<worker_state> worker_state_from(std::string_view word) noexcept {
  const auto at = std::ranges::find(state_words_of_worker, word);
  if (at == state_words_of_worker.end()) return std::nullopt;
  return static_cast<worker_state>(at - state_words_of_worker.begin());
}

}  // namespace sluice::jobs
