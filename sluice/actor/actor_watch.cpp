#include "sluice/actor/actor_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "sluice/actor/detail/find_cycles.hpp"
#include "sluice/actor/detail/time_text.hpp"
#include "sluice/base/callback.hpp"
#include "sluice/future/timers.hpp"

namespace sluice {
namespace {

void say(const std::string& text) {
  std::fprintf(stderr, "sluice: %s\n", text.c_str());
}

}  // namespace

// ---- what is found

std::string slow_handler::text() const {
  std::string s =
      "actor " + name + " has been on message " + message + " for " + detail::time_text(time);
  if (!waits_for.empty()) s += "; it waits " + waits_for;
  return s;
}

std::string actor_cycle::text() const {
  std::string s;
  for (const step& one : steps) {
    s += one.name + (one.what == actor_wait::room ? " -(full mailbox)-> " : " -(ask)-> ");
  }
  return steps.empty() ? s : s + steps.front().name;
}

// ---- looking

actor_watch::actor_watch(options o)
    : options_(std::move(o)), time_(options_.time != nullptr ? *options_.time : real_clock()) {
  if (options_.period.count() > 0) {
    ticking_ = every(
        options_.period, here_, [this] { report(); }, every_options(time_));
  }
}

actor_watch::~actor_watch() {
  if (!ticking_.valid()) return;
  ticking_.cancel();
  ticking_.get();
}

slow_handler actor_watch::describe(actor_id who, const state& s, time_point now) const {
  slow_handler found;
  found.who = who;
  found.name = names_.of(who);
  found.message = detail::short_type(s.message);
  found.time = now - s.since;
  for (const pending_wait& w : s.waits) {
    if (w.run != s.run) continue;
    const char* const what = w.what == actor_wait::room ? "for room in " : "for an answer from ";
    if (!found.waits_for.empty()) found.waits_for += ", ";
    found.waits_for += what + names_.of(w.for_whom);
  }
  return found;
}

std::vector<slow_handler> actor_watch::find_slow(std::chrono::nanoseconds min_time) const {
  std::vector<slow_handler> all;
  const time_point now = time_.now();
  states_.for_each([&](actor_id who, const state& s) {
    if (s.is_on && now - s.since >= min_time) all.push_back(describe(who, s, now));
  });
  std::ranges::sort(all, {}, &slow_handler::who);
  return all;
}

std::vector<actor_watch::edge> actor_watch::edges(std::chrono::nanoseconds min_wait) const {
  std::vector<edge> all;
  const time_point now = time_.now();
  states_.for_each([&](actor_id who, const state& s) {
    if (!s.is_on) return;
    for (const pending_wait& w : s.waits) {
      if (w.run == s.run && now - w.since >= min_wait) all.push_back({who, s.message, w});
    }
  });
  std::ranges::sort(
      all, {}, [](const edge& e) { return std::tuple(e.who, e.wait.for_whom, e.wait.number); });
  return all;
}

bool actor_watch::still_waits(const edge& e) const {
  bool does = false;
  states_.with_existing(e.who, [&](const state& s) {
    does = s.is_on && s.run == e.wait.run &&
           std::ranges::find(s.waits, e.wait.number, &pending_wait::number) != s.waits.end();
  });
  return does;
}

std::vector<actor_cycle> actor_watch::find_cycles(std::chrono::nanoseconds min_wait) const {
  const std::vector<edge> all = edges(min_wait);
  std::vector<detail::wait_arrow> arrows;
  for (const edge& e : all) arrows.push_back({e.who, e.wait.for_whom});
  const time_point now = time_.now();
  std::vector<actor_cycle> found;
  for (const std::vector<std::size_t>& way : detail::find_cycles(arrows)) {
    // They were not looked at in one moment. A wait that is there before and after was there in
    // between: if all of them are, there was a moment for all.
    if (!std::ranges::all_of(way, [&](std::size_t i) { return still_waits(all[i]); })) continue;
    actor_cycle cycle;
    for (const std::size_t i : way) {
      const edge& e = all[i];
      cycle.steps.push_back({e.who, names_.of(e.who), std::string(detail::short_type(e.message)),
                             e.wait.what, now - e.wait.since, e.wait.number});
    }
    found.push_back(std::move(cycle));
  }
  return found;
}

void actor_watch::report() {
  report_slow();
  report_cycles();
}

void actor_watch::report_slow() {
  for (const slow_handler& s : find_slow(options_.slow_after)) {
    bool is_new = false;
    states_.with_existing(s.who, [&](state& now) {
      const bool is_the_same = now.is_on && time_.now() - now.since >= options_.slow_after;
      is_new = is_the_same && !std::exchange(now.was_reported, true);
    });
    if (!is_new) continue;
    if (options_.on_slow) {
      call_back("on_slow of actor_watch", {}, options_.on_slow, s);
    } else {
      say(s.text());
    }
  }
}

void actor_watch::report_cycles() {
  const std::vector<actor_cycle> found = find_cycles(options_.cycle_after);
  std::vector<std::vector<std::uint64_t>> keys;
  for (const actor_cycle& c : found) {
    std::vector<std::uint64_t>& key = keys.emplace_back();
    for (const actor_cycle::step& s : c.steps) key.push_back(s.wait);
  }
  // Only those that are still there are remembered.
  const auto before = reported_.with([&](auto& last) { return std::exchange(last, keys); });
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::ranges::find(before, keys[i]) != before.end()) continue;
    if (options_.on_cycle) {
      call_back("on_cycle of actor_watch", {}, options_.on_cycle, found[i]);
    } else {
      say("actors wait for each other: " + found[i].text());
    }
  }
}

// ---- for the system

void actor_watch::spawned(actor_id who, actor_id, std::string_view name,
                          std::string_view type) noexcept {
  names_.spawned(who, name, type);
}

void actor_watch::ended(actor_id who, end_reason) noexcept {
  names_.ended(who);
  states_.erase(who);
}

void actor_watch::begun(actor_id who, std::string_view message, std::uint64_t) noexcept {
  const time_point now = time_.now();
  states_.with(who, [&](state& s) {
    ++s.run;
    s.is_on = true;
    s.was_reported = false;
    s.message = message;
    s.since = now;
  });
}

void actor_watch::resumed(actor_id who, std::string_view message, std::uint64_t note) noexcept {
  begun(who, message, note);
}

void actor_watch::handled(actor_id who, std::string_view, std::uint64_t) noexcept {
  states_.with_existing(who, [](state& s) { s.is_on = false; });
}

void actor_watch::waits(actor_id who, actor_id for_whom, actor_wait what,
                        std::uint64_t wait) noexcept {
  const time_point now = time_.now();
  states_.with_existing(who, [&](state& s) {
    s.waits.push_back({wait, s.is_on ? s.run : 0, for_whom, what, now});
  });
}

void actor_watch::waits_no_more(actor_id who, actor_id, actor_wait, std::uint64_t wait) noexcept {
  states_.with_existing(who, [&](state& s) {
    std::erase_if(s.waits, [&](const pending_wait& w) { return w.number == wait; });
  });
}

}  // namespace sluice
