#include "sluice/inspect/detail/lock_graph.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <source_location>
#include <utility>

namespace sluice::inspect::detail {
namespace {

// The locks that the calling thread holds, in the order in which it took them. One that holds more
// than these is not checked for the ones beyond.
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

held_locks& mine(std::uint64_t life) noexcept {
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

// Depth first. Each lock is visited once: without that a graph of n locks has 2^n ways.
bool lock_graph::find_way(const void* from, const void* to, steps& way) const {
  std::vector<const void*> visited;
  const auto go = [&](const auto& self, const void* at) -> bool {
    const auto found = from_.find(at);
    if (found == from_.end() || std::ranges::find(visited, at) != visited.end()) return false;
    visited.push_back(at);
    for (const auto& step : found->second) {
      way.push_back(step);
      if (step.second == to || self(self, step.second)) return true;
      way.pop_back();
    }
    return false;
  };
  return go(go, from);
}

// Most orders are known: only a new one costs memory.
std::optional<lock_graph::inversion> lock_graph::note(const lock_step& step) {
  const std::lock_guard hold(guard_);
  if (!add(step)) return std::nullopt;
  steps circle{step};
  if (!find_way(step.second, step.first, circle) || !report_) return std::nullopt;
  return inversion{std::move(circle), report_};
}

void lock_graph::took(const watch::hold& h) noexcept {
  auto& locks = mine(life_.load(relaxed));
  const auto is_it = [&](const held_lock& l) { return l.object == h.object; };
  const auto end = locks.all.begin() + static_cast<std::ptrdiff_t>(locks.count);
  const bool again = std::any_of(locks.all.begin(), end, is_it);
  if (h.waited && !again) {
    for (std::size_t i = 0; i < locks.count; ++i) {
      const auto& before = locks.all[i];
      const lock_step step{before.object, h.object, before.type, h.type, before.at, h.at, h.by};
      if (const auto found = note(step)) found->report(found->circle);
    }
  }
  if (locks.count < locks.all.size()) locks.all[locks.count++] = {h.object, h.type, h.at};
}

void lock_graph::gave(const void* object) noexcept {
  auto& locks = mine(life_.load(relaxed));
  // The last one: a lock that is shared may be there more than once.
  for (std::size_t i = locks.count; i > 0; --i) {
    if (locks.all[i - 1].object != object) continue;
    const auto at = locks.all.begin() + static_cast<std::ptrdiff_t>(i);
    std::move(at, locks.all.begin() + static_cast<std::ptrdiff_t>(locks.count), at - 1);
    --locks.count;
    return;
  }
}

void lock_graph::gone(const void* object) noexcept {
  const std::lock_guard hold(guard_);
  from_.erase(object);
  for (auto& [from, steps_from] : from_) {
    std::erase_if(steps_from, [&](const lock_step& s) { return s.second == object; });
  }
}

}  // namespace sluice::inspect::detail
