#include "sluice/sim/explore.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/sim/detail/interpose.hpp"
#include "sluice/sim/detail/report.hpp"
#include "sluice/sim/detail/scheduler.hpp"
#include "sluice/sim/detail/simulated_atomic.hpp"
#include "sluice/sim/detail/source_lines.hpp"
#include "sluice/sim/detail/spin_guard.hpp"
#include "sluice/sim/detail/strategy.hpp"

namespace sluice::sim {
namespace {

using detail::deviation;

constexpr int minimizing_runs_max = 600;
constexpr std::size_t shown_trace_max = 4096;
constexpr std::size_t loop_calls_max = 6;

std::unique_ptr<detail::strategy> make_strategy(const options& o) {
  switch (o.search) {
    case search::random:
      return detail::make_random(o);
    case search::pct:
      return detail::make_pct(o);
    case search::mixed:
      return detail::make_mixed(o);
    case search::exhaustive:
      return detail::make_exhaustive(o);
    case search::replay:
      break;
  }
  std::vector<deviation> path;
  sluice::check(detail::parse_trace(o.trace, path), "sluice::sim::explore",
                "a trace in the printed format, such as 1,12t2,40r1");
  return detail::make_replay(std::move(path));
}

class exploration {
 public:
  exploration(const options& o, const std::function<void()>& body)
      : options_(o), body_(body), runner_(o) {}

  result explore() {
    const detail::catch_faults faults;
    const detail::spin_guard guard(options_.spin_max);
    const auto chosen = make_strategy(options_);
    detail::recorder recorded(*chosen);
    const auto began = detail::real_now();
    result r;
    r.name = options_.name;
    r.seed = options_.seed;
    for (;;) {
      if (options_.schedules != 0 && r.schedules == options_.schedules) break;
      // At least one: a search without a schedule would look like a success.
      if (options_.time_max.count() > 0 && r.schedules > 0 &&
          detail::real_now() - began >= options_.time_max) {
        break;
      }
      if (options_.search == search::replay && r.schedules == 1) break;
      if (!recorded.begin()) break;
      auto ended = run(recorded, false);
      if (ended.pruned) continue;
      ++r.schedules;
      r.steps += ended.steps;
      r.steps_longest = std::max(r.steps_longest, ended.steps);
      if (!ended.failed) continue;
      r.found = true;
      r.kind = ended.kind;
      r.schedule = r.schedules;
      describe(r, minimize(recorded.path(), ended), ended);
      break;
    }
    r.complete = recorded.complete();
    return r;
  }

 private:
  detail::scheduler::ended run(detail::strategy& s, bool write_down) {
    auto ended = runner_.run(body_, s, write_down);
    if (!options_.also_failed) return ended;
    auto text = options_.also_failed();
    if (text.empty() || ended.pruned) return ended;
    // It did not end the schedule, so the failure that did came later and may be its consequence.
    ended.failed = true;
    ended.kind = failure_kind::check;
    ended.message = std::move(text);
    return ended;
  }

  using outcome = detail::scheduler::ended;

  // The first line of a check identifies it; the following lines have the values.
  static bool fail_alike(const outcome& one, const outcome& other) {
    if (!one.failed || !other.failed || one.kind != other.kind) return false;
    const auto which = [](const outcome& o) { return o.message.substr(0, o.message.find('\n')); };
    return one.kind != failure_kind::check || which(one) == which(other);
  }

  bool fails(const std::vector<deviation>& path, const outcome& as) {
    const auto replay = detail::make_replay(path);
    replay->begin();
    return fail_alike(run(*replay, false), as);
  }

  // Removes deviations, many at a time and then one by one, while the path still fails alike.
  std::vector<deviation> minimize(std::vector<deviation> path, const outcome& as) {
    int runs = 0;
    const auto give_up = detail::real_now() + options_.minimize_max;
    const auto has_budget = [&] {
      return runs < minimizing_runs_max && detail::real_now() < give_up;
    };
    // A failure that does not repeat depends on state outside the schedule. Each run of an endless
    // loop takes spin_max.
    if (as.kind == failure_kind::endless_loop) return path;
    if (!has_budget() || !fails(path, as)) return path;
    for (std::size_t part = std::max<std::size_t>(path.size() / 2, 1); part > 0;) {
      bool shorter = false;
      for (std::size_t at = 0; at < path.size() && has_budget();) {
        auto rest = path;
        const auto from = rest.begin() + static_cast<std::ptrdiff_t>(at);
        rest.erase(from, from + static_cast<std::ptrdiff_t>(std::min(part, rest.size() - at)));
        ++runs;
        if (fails(rest, as)) {
          path = std::move(rest);
          shorter = true;
        } else {
          at += part;
        }
      }
      if (!has_budget()) break;
      if (part == 1 && !shorter) break;
      part = part == 1 ? 1 : part / 2;
    }
    return path;
  }

  void describe(result& r, const std::vector<deviation>& path, const outcome& as) {
    const auto replay = detail::make_replay(path);
    detail::recorder again(*replay);
    again.begin();
    const auto ended = run(again, true);
    r.message = fail_alike(ended, as)
                    ? ended.message
                    : as.message + "\nthe replay shown below " +
                          (ended.failed ? "fails differently: " + ended.message : "does not fail") +
                          "\nthe result depends on state outside of the schedule, "
                          "such as a static";
    for (const auto& call : detail::caller_lines(ended.loop, loop_calls_max)) {
      r.message += "\n  at " + call;
    }
    r.trace = detail::to_trace(again.path());
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < ended.threads; ++i) names.push_back(runner_.thread_name(i));
    r.steps_text = detail::in_columns(runner_.take_steps(), names);
  }

  const options options_;
  const std::function<void()>& body_;
  detail::scheduler runner_;
};

}  // namespace

const char* to_string(failure_kind kind) noexcept {
  switch (kind) {
    case failure_kind::check:
      return "a check failed";
    case failure_kind::race:
      return "data race";
    case failure_kind::deadlock:
      return "deadlock";
    case failure_kind::livelock:
      return "livelock";
    case failure_kind::endless_loop:
      return "endless loop";
    case failure_kind::exception:
      return "exception";
    case failure_kind::leak:
      return "leak";
    case failure_kind::use_after_free:
      return "use after free";
    case failure_kind::crash:
      break;
  }
  return "crash";
}

result explore(const options& o, const std::function<void()>& body) {
  sluice::check(detail::active == nullptr, "sluice::sim::explore",
                "not to be called from an explored body");
  const bool ends = o.schedules > 0 || o.time_max.count() > 0 || o.search == search::exhaustive ||
                    o.search == search::replay;
  sluice::check(ends, "sluice::sim::explore",
                "schedules or time_max above 0 for a search without an end of its own");
  return exploration(o, body).explore();
}

std::string result::text() const {
  std::string text = name.empty() ? std::string("sim") : name;
  text += ": " + std::to_string(schedules) + " schedules, " + std::to_string(steps) + " steps";
  if (!found) return text + (complete ? ", complete: none failed" : ": none failed");
  text += ", seed " + std::to_string(seed) + "\n";
  text += std::string(to_string(kind)) + " in schedule " + std::to_string(schedule) + ": " +
          message + "\n\n" + steps_text;
  if (trace.size() > shown_trace_max) {
    return text + "\nrun it again with this seed, or replay result::trace (" +
           std::to_string(trace.size()) + " characters)\n";
  }
  return text + "\nreplay it with {.search = search::replay, .trace = \"" + trace + "\"}\n";
}

void check(bool holds, const char* expected, std::source_location where) {
  if (holds) return;
  if (!detail::exploring) sluice::contract_broken("sluice::sim::check", nullptr, expected, where);
  const detail::own_work scope;
  auto& s = *detail::active;
  if (s.writes_down()) s.note(std::string("expected ") + expected, where);
  s.fail(failure_kind::check,
         std::string("expected ") + expected + " (" + detail::place(where) + ")");
}

bool exploring() noexcept {
  return detail::exploring;
}

void yield() noexcept {
  if (!detail::exploring) return;
  const detail::own_work scope;
  detail::active->spin("yield");
}

}  // namespace sluice::sim
