#include "sluice/inspect/detail/lock_graph.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <source_location>
#include <utility>

namespace sluice::inspect::detail {
namespace {

// The locks held by the calling thread, in the order of acquisition. Locks beyond the capacity are
// not checked.
struct held_lock {
  const void* object = nullptr;
  const char* type = "";
  call_site at{std::source_location()};
};
struct held_locks {
  std::array<held_lock, 16> all{};
  std::size_t count = 0;
  std::uint64_t life = 0;
};

held_locks& locks_of_this_thread(std::uint64_t life) noexcept {
  thread_local held_locks locks;
  if (locks.life != life) {
    locks.count = 0;
    locks.life = life;
  }
  return locks;
}

}  // namespace

void lock_graph::start(inversion_report report) {
  const std::lock_guard hold(guard_);
  report_.swap(report);
  from_.clear();
  life_.fetch_add(1, relaxed);
}

void lock_graph::clear() noexcept {
  const std::lock_guard hold(guard_);
  from_.clear();
}

bool lock_graph::add(const lock_step& step) {
  auto& steps_from = from_[step.first];
  const bool known =
      std::ranges::any_of(steps_from, [&](const lock_step& s) { return s.second == step.second; });
  if (!known) steps_from.push_back(step);
  return !known;
}

// Depth first. Visits each lock once: a graph of n locks can have 2^n paths.
bool lock_graph::find_path(const void* from, const void* target, steps& path) const {
  std::vector<const void*> visited;
  const auto visit = [&](const auto& self, const void* at) -> bool {
    const auto found = from_.find(at);
    if (found == from_.end() || std::ranges::find(visited, at) != visited.end()) return false;
    visited.push_back(at);
    for (const auto& step : found->second) {
      path.push_back(step);
      if (step.second == target || self(self, step.second)) return true;
      path.pop_back();
    }
    return false;
  };
  return visit(visit, from);
}

// Allocates only for a new order.
std::optional<lock_graph::inversion> lock_graph::note(const lock_step& step) {
  const std::lock_guard hold(guard_);
  if (!add(step)) return std::nullopt;
  steps cycle{step};
  if (!find_path(step.second, step.first, cycle) || !report_) return std::nullopt;
  return inversion{std::move(cycle), report_};
}

void lock_graph::took(const wait_report::hold& h) noexcept {
  auto& locks = locks_of_this_thread(life_.load(relaxed));
  const auto is_same = [&](const held_lock& l) { return l.object == h.object; };
  const auto end = locks.all.begin() + static_cast<std::ptrdiff_t>(locks.count);
  const bool again = std::any_of(locks.all.begin(), end, is_same);
  if (h.waited && !again) {
    for (std::size_t i = 0; i < locks.count; ++i) {
      const auto& before = locks.all[i];
      const lock_step step{before.object, h.object, before.type, h.type, before.at, h.at, h.by};
      if (const auto found = note(step)) found->report(found->cycle);
    }
  }
  if (locks.count < locks.all.size()) locks.all[locks.count++] = {h.object, h.type, h.at};
}

void lock_graph::gave(const void* object) noexcept {
  auto& locks = locks_of_this_thread(life_.load(relaxed));
  // Removes the last entry: a shared lock may have several.
  for (std::size_t i = locks.count; i > 0; --i) {
    if (locks.all[i - 1].object != object) continue;
    const auto at = locks.all.begin() + static_cast<std::ptrdiff_t>(i);
    std::move(at, locks.all.begin() + static_cast<std::ptrdiff_t>(locks.count), at - 1);
    --locks.count;
    return;
  }
}

void lock_graph::destroyed(const void* object) noexcept {
  const std::lock_guard hold(guard_);
  from_.erase(object);
  for (auto& [from, steps_from] : from_) {
    std::erase_if(steps_from, [&](const lock_step& s) { return s.second == object; });
  }
}

}  // namespace sluice::inspect::detail
