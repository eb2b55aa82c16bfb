#include "sluice/executor/detail/executor_users.hpp"

#include <algorithm>

namespace sluice::detail {
namespace {

struct words {
  const char* one;
  const char* many;
};
constexpr std::array<words, executor_users::kinds> names{{
    {"spawned task", "spawned tasks"},
    {"timer (every)", "timers (every)"},
    {"child of a scope", "children of scopes"},
    {"pending stage of a future", "pending stages of futures"},
    {"strand", "strands"},
    {"router worker", "router workers"},
    {"batcher", "batchers"},
    {"pipeline", "pipelines"},
    {"actor_system", "actor_systems"},
    {"actor of another executor's actor_system", "actors of other executors' actor_systems"},
}};

}  // namespace

executor_users::executor_users(spread s)
    : lines_(s == spread::line_a_thread ? std::make_unique<line[]>(lines) : nullptr) {}

std::size_t executor_users::count(executor_user kind) const noexcept {
  const auto at = static_cast<std::size_t>(kind);
  auto sum = shared_[at].load(relaxed);
  for (std::size_t i = 0; lines_ != nullptr && i < lines; ++i) {
    sum += lines_[i].of_thread[at].load(relaxed);
  }
  return static_cast<std::size_t>(std::max(static_cast<std::int32_t>(sum), 0));
}

std::string executor_users::text() const {
  std::string all;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const auto found = count(static_cast<executor_user>(kind));
    if (found == 0) continue;
    if (!all.empty()) all += ", ";
    all += std::to_string(found) + " " + (found == 1 ? names[kind].one : names[kind].many);
  }
  return all;
}

}  // namespace sluice::detail
