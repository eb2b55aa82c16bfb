// Cron: entries, their times, and the runs pushed in the same commit that updates the entry.
#include <utility>

#include "jobs/engine/detail/core.hpp"
#include "jobs/json/json_writer.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t upcoming_shown = 5;
// A run later than this counts as missed: no server was running, or its store had failed.
constexpr milliseconds late{10'000};

error no_such_entry(std::string_view name) {
  return {error_code::not_found, "there is no cron entry '" + std::string(name) + "'"};
}

// The times to run now, the earliest first, and how many are skipped.
struct due_runs {
  std::vector<unix_time> times;
  std::uint64_t left_out = 0;
  std::optional<unix_time> next;
};

// Returns the last runs up to now of a schedule with too many runs to step through: searches
// backwards in growing spans.
std::vector<unix_time> last_runs(const cron_schedule& when, unix_time now) {
  for (milliseconds span = std::chrono::seconds(limits::cron_missed_max);; span *= 2) {
    std::vector<unix_time> times;
    for (auto at = when.next_after(now - span); at && *at <= now; at = when.next_after(*at)) {
      times.push_back(*at);
    }
    if (times.size() < limits::cron_missed_max) continue;
    times.erase(times.begin(), times.end() - limits::cron_missed_max);
    return times;
  }
}

due_runs runs_until(const cron_schedule& when, unix_time first, missed_runs policy, unix_time now) {
  due_runs found;
  std::optional<unix_time> at = first;
  std::uint64_t seen = 0;
  // More runs than this are not counted one by one: see engine::set_cron.
  constexpr std::uint64_t looked_at_max = 100'000;
  while (at && *at <= now && seen < looked_at_max) {
    found.times.push_back(*at);
    if (found.times.size() > limits::cron_missed_max) found.times.erase(found.times.begin());
    ++seen;
    at = when.next_after(*at);
  }
  if (at && *at <= now) {
    found.times = last_runs(when, now);
    at = when.next_after(now);
  }
  found.next = at;
  const bool is_missed = found.times.size() > 1 || now - found.times.back() > late;
  if (policy == missed_runs::skip && is_missed) {
    const bool last_is_late = now - found.times.back() > late;
    found.times.erase(found.times.begin(), found.times.end() - (last_is_late ? 0 : 1));
  } else if (policy == missed_runs::one) {
    found.times.erase(found.times.begin(), found.times.end() - 1);
  }
  found.left_out = seen - found.times.size();
  return found;
}

// Returns the job of one run; its metadata names the entry and the time.
job_spec run_of(const cron_spec& entry, unix_time at) {
  job_spec spec = entry.job;
  std::string metadata;
  json::json_writer(metadata)
      .begin_object()
      .key("cron")
      .value(entry.name)
      .key("at")
      .value(at)
      .end_object();
  // The entry's own metadata follows: of two members with the same name the last counts.
  const std::size_t first = spec.metadata.find_first_not_of("{ \t\r\n");
  const bool has_more = first != std::string::npos && spec.metadata[first] != '}';
  if (has_more) {
    metadata.back() = ',';
    metadata.append(spec.metadata, first);
  }
  spec.metadata = std::move(metadata);
  return spec;
}

}  // namespace

cron_info core::info_of(const cron_state& c) const {
  cron_info info;
  info.entry = c.entry;
  if (!c.entry.spec.paused) info.upcoming = c.schedule.upcoming(time_.now(), upcoming_shown);
  return info;
}

std::vector<cron_info> core::crons() const {
  std::vector<cron_info> all;
  for (const auto& [name, c] : crons_) {
    if (c.entry.next_at != unix_time{} || !c.is_new) all.push_back(info_of(c));
  }
  return all;
}

result<cron_info> core::get_cron(std::string_view name) const {
  const auto found = crons_.find(name);
  if (found == crons_.end() || found->second.is_new) return no_such_entry(name);
  return info_of(found->second);
}

void core::time_cron(cron_state& c, std::optional<unix_time> at) {
  if (c.timed_at) cron_times_.erase({*c.timed_at, c.entry.spec.name});
  c.timed_at = at;
  if (at) cron_times_.emplace(*at, c.entry.spec.name);
}

std::size_t core::stage_entry(const cron_entry& entry, change::op op) {
  change c;
  c.type = op;
  c.cron = std::make_unique<cron_entry>(entry);
  return stage(std::move(c));
}

// Adds an entry, or changes one and keeps its run history. Takes effect when it is stored.
void core::set_cron(cron_spec spec, promise<result<cron_info>> reply, answers& out) {
  const auto refuse = [&](error why) {
    out.add(std::move(reply), result<cron_info>(std::move(why)));
  };
  if (auto why = refuse_intake()) return refuse(*std::move(why));
  if (auto valid = validate(spec); !valid) return refuse(valid.error());
  if (auto allowed = check_references(spec.job); !allowed) {
    return refuse({allowed.error().code, "job: " + allowed.error().message});
  }
  auto when = cron_schedule::parse(spec.schedule, spec.zone);
  if (!when) return refuse(when.error());
  auto found = crons_.find(spec.name);
  if (found == crons_.end()) {
    if (crons_.size() >= limits::cron_entries_max) {
      return refuse({error_code::overloaded, "there are " + std::to_string(crons_.size()) +
                                                 " cron entries, which is the limit"});
    }
    found = crons_.try_emplace(spec.name, cron_state{{}, *when, {}, false, true}).first;
    found->second.entry.spec = spec;
  }
  cron_state& c = found->second;
  if (c.is_staged) {
    stage_after([this, spec = std::move(spec), reply = std::move(reply)](const commit::outcome&,
                                                                         answers& later) mutable {
      set_cron(std::move(spec), std::move(reply), later);
    });
    return;
  }
  cron_entry next = c.entry;
  const bool same_times = !c.is_new && next.spec.schedule == spec.schedule &&
                          next.spec.zone == spec.zone && next.spec.paused == spec.paused;
  next.spec = std::move(spec);
  if (!same_times) next.next_at = when->next_after(time_.now()).value_or(unix_time{});
  store_cron(c, std::move(next), *std::move(when), std::move(reply));
}

void core::store_cron(cron_state& c, cron_entry next, cron_schedule when,
                      promise<result<cron_info>> reply) {
  c.is_staged = true;
  const std::size_t at = stage_entry(next);
  stage_after(
      [this, name = c.entry.spec.name, next = std::move(next), when = std::move(when),
       reply = std::move(reply)](const commit::outcome& outcome, answers& replies) mutable {
        const auto found = crons_.find(name);
        cron_state& cron = found->second;
        cron.is_staged = false;
        if (outcome.failure != nullptr) {
          if (cron.is_new) crons_.erase(found);
          return replies.add(std::move(reply), result<cron_info>(*outcome.failure));
        }
        cron.is_new = false;
        cron.entry = std::move(next);
        cron.schedule = std::move(when);
        const bool runs = !cron.entry.spec.paused && cron.entry.next_at != unix_time{};
        time_cron(cron, runs ? std::optional(cron.entry.next_at) : std::nullopt);
        replies.add(std::move(reply), result<cron_info>(info_of(cron)));
      },
      at);
}

// Fields not in the patch keep the value they have when it is applied; changes staged earlier are
// applied first.
void core::patch_cron(const std::string& name, cron_patch patch, promise<result<cron_info>> reply,
                      answers& out) {
  const auto found = crons_.find(name);
  if (found == crons_.end()) {
    return out.add(std::move(reply), result<cron_info>(no_such_entry(name)));
  }
  if (auto why = refuse_intake()) {
    return out.add(std::move(reply), result<cron_info>(*std::move(why)));
  }
  if (found->second.is_staged) {
    stage_after([this, name, patch, reply = std::move(reply)](const commit::outcome&,
                                                              answers& later) mutable {
      patch_cron(name, patch, std::move(reply), later);
    });
    return;
  }
  cron_spec spec = found->second.entry.spec;
  spec.paused = patch.paused.value_or(spec.paused);
  set_cron(std::move(spec), std::move(reply), out);
}

void core::remove_cron(const std::string& name, promise<void_result> reply, answers& out) {
  const auto found = crons_.find(name);
  if (found == crons_.end()) return out.add(std::move(reply), void_result(no_such_entry(name)));
  if (auto why = refuse_intake()) return out.add(std::move(reply), void_result(*std::move(why)));
  if (found->second.is_staged) {
    stage_after(
        [this, name, reply = std::move(reply)](const commit::outcome&, answers& later) mutable {
          remove_cron(name, std::move(reply), later);
        });
    return;
  }
  found->second.is_staged = true;
  const std::size_t at = stage_entry(found->second.entry, change::op::drop_cron);
  stage_after(
      [this, name, reply = std::move(reply)](const commit::outcome& outcome,
                                             answers& replies) mutable {
        const auto entry = crons_.find(name);
        entry->second.is_staged = false;
        if (outcome.failure != nullptr) {
          return replies.add(std::move(reply), void_result(*outcome.failure));
        }
        time_cron(entry->second, std::nullopt);
        crons_.erase(entry);
        replies.add(std::move(reply), void_result(done{}));
      },
      at);
}

void core::run_cron(const std::string& name, push_reply reply, answers& out) {
  const auto found = crons_.find(name);
  if (found == crons_.end() || found->second.is_new) return reply.give(no_such_entry(name), out);
  push(run_of(found->second.entry.spec, time_.now()), std::move(reply), {}, out);
}

void core::stage_crons(unix_time wall) {
  // Limited per round, so that other commits are not delayed.
  constexpr std::size_t at_once = 1000;
  for (std::size_t n = 0; n < at_once && cron_has_come(wall); ++n) {
    const auto found = crons_.find(cron_times_.begin()->second);
    check(found != crons_.end(), "sluice::jobs::core", "an entry for every time");
    cron_state& c = found->second;
    if (c.is_staged) {  // checked again when the staged change is committed
      time_cron(c, wall + options_.probe_every);
      continue;
    }
    stage_cron(c, wall);
  }
}

// Stages the due runs of one entry.
void core::stage_cron(cron_state& c, unix_time wall) {
  due_runs due = runs_until(c.schedule, c.entry.next_at, c.entry.spec.missed, wall);
  cron_entry next = c.entry;
  next.next_at = due.next.value_or(unix_time{});
  next.missed += due.left_out;
  std::vector<std::shared_ptr<job>> pushed;
  for (const unix_time at : due.times) {
    next.last_at = at;
    if (const auto own = stage_own(run_of(c.entry.spec, at))) {
      next.last_job = own->job->id;
      pushed.push_back(own->job);
    }
  }
  next.runs += pushed.size();
  next.missed += due.times.size() - pushed.size();  // too many queues
  c.is_staged = true;
  time_cron(c, std::nullopt);
  const std::size_t at = stage_entry(next);
  stage_after(
      [this, name = c.entry.spec.name, next, pushed](const commit::outcome& outcome,
                                                     answers&) mutable {
        cron_state& cron = crons_.find(name)->second;
        cron.is_staged = false;
        if (outcome.failure != nullptr) {
          return time_cron(cron, time_.now() + options_.probe_every);
        }
        const job_id last_job = std::exchange(cron.entry, next).last_job;
        time_cron(cron, next.next_at != unix_time{} ? std::optional(next.next_at) : std::nullopt);
        const auto kept = std::erase_if(pushed, [](const auto& job) { return job->id == 0; });
        counters.cron_runs += pushed.size();
        for (const auto& job : pushed) {
          job_event e;
          e.type = event_type::cron_ran;
          e.job = job->id;
          e.queue = next.spec.job.queue;
          e.text = name;
          add_event(std::move(e));
        }
        if (kept == 0) return;
        // A unique key was taken: the previous run has not ended.
        cron.entry.runs -= kept;
        cron.entry.missed += kept;
        cron.entry.last_job = pushed.empty() ? last_job : pushed.back()->id;
        stage_entry(cron.entry);
      },
      at);
}

}  // namespace sluice::jobs::detail
