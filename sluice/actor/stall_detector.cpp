#include "sluice/actor/stall_detector.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "sluice/actor/detail/find_cycles.hpp"
#include "sluice/actor/detail/time_text.hpp"
#include "sluice/base/detail/callback.hpp"
#include "sluice/future/timers.hpp"

namespace sluice {
namespace {

void print(const std::string& text) {
  std::fprintf(stderr, "sluice: %s\n", text.c_str());
}

}  // namespace

// ---- findings

std::string slow_handler::text() const {
  std::string s =
      "actor " + name + " has been on message " + message + " for " + detail::time_text(time);
  if (!waits_for.empty()) s += "; it waits " + waits_for;
  return s;
}

std::string actor_cycle::text() const {
  std::string s;
  for (const step& one : steps) {
    s += one.name + (one.reason == actor_wait::capacity ? " -(full mailbox)-> " : " -(ask)-> ");
  }
  return steps.empty() ? s : s + steps.front().name;
}

// ---- search

stall_detector::stall_detector(options o)
    : options_(std::move(o)), time_(options_.time != nullptr ? *options_.time : real_clock()) {
  if (options_.period.count() > 0) {
    ticking_ = every(
        options_.period, here_, [this] { report(); }, every_options(time_));
  }
}

stall_detector::~stall_detector() {
  if (!ticking_.valid()) return;
  ticking_.cancel();
  ticking_.get();
}

slow_handler stall_detector::describe(actor_id id, const state& s, time_point now) const {
  slow_handler found;
  found.id = id;
  found.name = names_.of(id);
  found.message = detail::short_type(s.message);
  found.time = now - s.since;
  for (const pending_wait& w : s.waits) {
    if (w.run != s.run) continue;
    const bool is_capacity = w.reason == actor_wait::capacity;
    if (!found.waits_for.empty()) found.waits_for += ", ";
    found.waits_for +=
        (is_capacity ? "for capacity in " : "for an answer from ") + names_.of(w.target);
  }
  return found;
}

std::vector<slow_handler> stall_detector::find_slow(std::chrono::nanoseconds min_time) const {
  std::vector<slow_handler> all;
  const time_point now = time_.now();
  states_.for_each([&](actor_id id, const state& s) {
    if (s.is_on && now - s.since >= min_time) all.push_back(describe(id, s, now));
  });
  std::ranges::sort(all, {}, &slow_handler::id);
  return all;
}

std::vector<stall_detector::edge> stall_detector::edges(std::chrono::nanoseconds min_wait) const {
  std::vector<edge> all;
  const time_point now = time_.now();
  states_.for_each([&](actor_id id, const state& s) {
    if (!s.is_on) return;
    for (const pending_wait& w : s.waits) {
      if (w.run == s.run && now - w.since >= min_wait) all.push_back({id, s.message, w});
    }
  });
  std::ranges::sort(all, {},
                    [](const edge& e) { return std::tuple(e.id, e.wait.target, e.wait.number); });
  return all;
}

bool stall_detector::still_waits(const edge& e) const {
  bool does = false;
  states_.with_existing(e.id, [&](const state& s) {
    does = s.is_on && s.run == e.wait.run &&
           std::ranges::find(s.waits, e.wait.number, &pending_wait::number) != s.waits.end();
  });
  return does;
}

std::vector<actor_cycle> stall_detector::find_cycles(std::chrono::nanoseconds min_wait) const {
  const std::vector<edge> all = edges(min_wait);
  std::vector<detail::wait_arrow> arrows;
  for (const edge& e : all) arrows.push_back({e.id, e.wait.target});
  const time_point now = time_.now();
  std::vector<actor_cycle> found;
  for (const std::vector<std::size_t>& way : detail::find_cycles(arrows)) {
    // The waits were not read at one moment. A wait that exists before and after existed in
    // between: if all waits of the cycle do, they existed together.
    if (!std::ranges::all_of(way, [&](std::size_t i) { return still_waits(all[i]); })) continue;
    actor_cycle cycle;
    for (const std::size_t i : way) {
      const edge& e = all[i];
      cycle.steps.push_back({e.id, names_.of(e.id), std::string(detail::short_type(e.message)),
                             e.wait.reason, now - e.wait.since, e.wait.number});
    }
    found.push_back(std::move(cycle));
  }
  return found;
}

void stall_detector::report() {
  report_slow();
  report_cycles();
}

void stall_detector::report_slow() {
  for (const slow_handler& s : find_slow(options_.slow_after)) {
    bool is_new = false;
    states_.with_existing(s.id, [&](state& now) {
      const bool is_the_same = now.is_on && time_.now() - now.since >= options_.slow_after;
      is_new = is_the_same && !std::exchange(now.was_reported, true);
    });
    if (!is_new) continue;
    if (options_.on_slow) {
      detail::call_back("on_slow of stall_detector", {}, options_.on_slow, s);
    } else {
      print(s.text());
    }
  }
}

void stall_detector::report_cycles() {
  const std::vector<actor_cycle> found = find_cycles(options_.cycle_after);
  std::vector<std::vector<std::uint64_t>> keys;
  for (const actor_cycle& c : found) {
    std::vector<std::uint64_t>& key = keys.emplace_back();
    for (const actor_cycle::step& s : c.steps) key.push_back(s.wait);
  }
  // Keeps only the cycles that still exist.
  const auto before = reported_.with([&](auto& last) { return std::exchange(last, keys); });
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::ranges::find(before, keys[i]) != before.end()) continue;
    if (options_.on_cycle) {
      detail::call_back("on_cycle of stall_detector", {}, options_.on_cycle, found[i]);
    } else {
      print("actors wait for each other: " + found[i].text());
    }
  }
}

// ---- for the system

void stall_detector::spawned(actor_id id, actor_id, std::string_view name,
                             std::string_view type) noexcept {
  names_.spawned(id, name, type);
}

void stall_detector::ended(actor_id id, end_reason) noexcept {
  names_.ended(id);
  states_.erase(id);
}

void stall_detector::begun(actor_id id, std::string_view message, std::uint64_t) noexcept {
  const time_point now = time_.now();
  states_.with(id, [&](state& s) {
    ++s.run;
    s.is_on = true;
    s.was_reported = false;
    s.message = message;
    s.since = now;
  });
}

void stall_detector::resumed(actor_id id, std::string_view message, std::uint64_t note) noexcept {
  begun(id, message, note);
}

void stall_detector::handled(actor_id id, std::string_view, std::uint64_t) noexcept {
  states_.with_existing(id, [](state& s) { s.is_on = false; });
}

void stall_detector::wait_begun(actor_id id, actor_id target, actor_wait reason,
                                std::uint64_t wait) noexcept {
  const time_point now = time_.now();
  states_.with_existing(id, [&](state& s) {
    s.waits.push_back({wait, s.is_on ? s.run : 0, target, reason, now});
  });
}

void stall_detector::wait_ended(actor_id id, actor_id, actor_wait, std::uint64_t wait) noexcept {
  states_.with_existing(id, [&](state& s) {
    std::erase_if(s.waits, [&](const pending_wait& w) { return w.number == wait; });
  });
}

}  // namespace sluice
