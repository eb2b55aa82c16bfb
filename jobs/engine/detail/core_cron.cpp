// Cron: entries, their times, and the runs that are pushed in the commit that moves them on.
#include <utility>

#include "jobs/engine/detail/core.hpp"
#include "jobs/json/json_writer.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::size_t upcoming_shown = 5;
// A run that comes later than this was missed: no server was there, or its store did not work.
constexpr milliseconds late{10'000};

error no_such_entry(std::string_view name) {
  return {error_code::not_found, "there is no cron entry '" + std::string(name) + "'"};
}

// The times that are to be run now, the earliest first, and how many are left out.
struct due_runs {
  std::vector<unix_time> times;
  std::uint64_t left_out = 0;
  std::optional<unix_time> next;
};

// The last runs up to now, of a schedule that has had more than can be looked at: searched for from
// the end, in ever longer spans.
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
  // Far more than can be made up for are not counted one by one: see engine::set_cron.
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

// The job of one run, which tells its worker which run it is.
job_spec run_of(const cron_spec& entry, unix_time at) {
  job_spec spec = entry.job;
  std::string about;
  json::json_writer(about)
      .begin_object()
      .key("cron")
      .value(entry.name)
      .key("at")
      .value(at)
      .end_object();
  // What the entry itself says stays, and is said last: of two members of a name the last counts.
  const std::size_t first = spec.metadata.find_first_not_of("{ \t\r\n");
  const bool says_more = first != std::string::npos && spec.metadata[first] != '}';
  if (says_more) {
    about.back() = ',';
    about.append(spec.metadata, first);
  }
  spec.metadata = std::move(about);
  return spec;
}

}  // namespace

cron_info core::info_of(const cron_state& c) const {
  cron_info info;
  info.entry = c.entry;
  if (!c.entry.spec.paused) info.upcoming = c.when.upcoming(time_.now(), upcoming_shown);
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

std::size_t core::stage_entry(const cron_entry& entry, change::op what) {
  change c;
  c.what = what;
  c.cron = std::make_unique<cron_entry>(entry);
  return stage(std::move(c));
}

// A new entry, or one that is changed; what it has run stays. Nothing of it counts before it is
// stored.
void core::set_cron(cron_spec spec, promise<result<cron_info>> to, answers& out) {
  const auto refuse = [&](error why) { out.add(std::move(to), result<cron_info>(std::move(why))); };
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
    stage_after([this, spec = std::move(spec), to = std::move(to)](const commit::outcome&,
                                                                   answers& later) mutable {
      set_cron(std::move(spec), std::move(to), later);
    });
    return;
  }
  cron_entry next = c.entry;
  const bool same_times = !c.is_new && next.spec.schedule == spec.schedule &&
                          next.spec.zone == spec.zone && next.spec.paused == spec.paused;
  next.spec = std::move(spec);
  if (!same_times) next.next_at = when->next_after(time_.now()).value_or(unix_time{});
  store_cron(c, std::move(next), *std::move(when), std::move(to));
}

void core::store_cron(cron_state& c, cron_entry next, cron_schedule when,
                      promise<result<cron_info>> to) {
  c.is_staged = true;
  const std::size_t at = stage_entry(next);
  stage_after(
      [this, name = c.entry.spec.name, next = std::move(next), when = std::move(when),
       to = std::move(to)](const commit::outcome& how, answers& then) mutable {
        const auto found = crons_.find(name);
        cron_state& mine = found->second;
        mine.is_staged = false;
        if (how.why_not != nullptr) {
          if (mine.is_new) crons_.erase(found);
          return then.add(std::move(to), result<cron_info>(*how.why_not));
        }
        mine.is_new = false;
        mine.entry = std::move(next);
        mine.when = std::move(when);
        const bool runs = !mine.entry.spec.paused && mine.entry.next_at != unix_time{};
        time_cron(mine, runs ? std::optional(mine.entry.next_at) : std::nullopt);
        then.add(std::move(to), result<cron_info>(info_of(mine)));
      },
      at);
}

// What is left as it is, is so by the time the change is made: what is staged comes before it.
void core::patch_cron(const std::string& name, cron_patch patch, promise<result<cron_info>> to,
                      answers& out) {
  const auto found = crons_.find(name);
  if (found == crons_.end()) return out.add(std::move(to), result<cron_info>(no_such_entry(name)));
  if (auto why = refuse_intake()) return out.add(std::move(to), result<cron_info>(*std::move(why)));
  if (found->second.is_staged) {
    stage_after(
        [this, name, patch, to = std::move(to)](const commit::outcome&, answers& later) mutable {
          patch_cron(name, patch, std::move(to), later);
        });
    return;
  }
  cron_spec spec = found->second.entry.spec;
  spec.paused = patch.paused.value_or(spec.paused);
  set_cron(std::move(spec), std::move(to), out);
}

void core::remove_cron(const std::string& name, promise<void_result> to, answers& out) {
  const auto found = crons_.find(name);
  if (found == crons_.end()) return out.add(std::move(to), void_result(no_such_entry(name)));
  if (auto why = refuse_intake()) return out.add(std::move(to), void_result(*std::move(why)));
  if (found->second.is_staged) {
    stage_after([this, name, to = std::move(to)](const commit::outcome&, answers& later) mutable {
      remove_cron(name, std::move(to), later);
    });
    return;
  }
  found->second.is_staged = true;
  const std::size_t at = stage_entry(found->second.entry, change::op::drop_cron);
  stage_after(
      [this, name, to = std::move(to)](const commit::outcome& how, answers& then) mutable {
        const auto mine = crons_.find(name);
        mine->second.is_staged = false;
        if (how.why_not != nullptr) return then.add(std::move(to), void_result(*how.why_not));
        time_cron(mine->second, std::nullopt);
        crons_.erase(mine);
        then.add(std::move(to), void_result(done{}));
      },
      at);
}

void core::run_cron(const std::string& name, push_reply to, answers& out) {
  const auto found = crons_.find(name);
  if (found == crons_.end() || found->second.is_new) return to.give(no_such_entry(name), out);
  push(run_of(found->second.entry.spec, time_.now()), std::move(to), {}, out);
}

void core::stage_crons(unix_time wall) {
  // So many a round that others get their commits in between.
  constexpr std::size_t at_once = 1000;
  for (std::size_t n = 0; n < at_once && cron_has_come(wall); ++n) {
    const auto found = crons_.find(cron_times_.begin()->second);
    check(found != crons_.end(), "sluice::jobs::core", "an entry for every time");
    cron_state& c = found->second;
    if (c.is_staged) {  // looked at again when what is staged is known
      time_cron(c, wall + options_.probe_every);
      continue;
    }
    stage_cron(c, wall);
  }
}

// The runs of one entry whose time has come.
void core::stage_cron(cron_state& c, unix_time wall) {
  due_runs due = runs_until(c.when, c.entry.next_at, c.entry.spec.missed, wall);
  cron_entry next = c.entry;
  next.next_at = due.next.value_or(unix_time{});
  next.missed += due.left_out;
  std::vector<std::shared_ptr<job>> pushed;
  for (const unix_time at : due.times) {
    next.last_at = at;
    if (const auto mine = stage_own(run_of(c.entry.spec, at))) {
      next.last_job = mine->it->id;
      pushed.push_back(mine->it);
    }
  }
  next.runs += pushed.size();
  next.missed += due.times.size() - pushed.size();  // there was no queue to push to
  c.is_staged = true;
  time_cron(c, std::nullopt);
  const std::size_t at = stage_entry(next);
  stage_after(
      [this, name = c.entry.spec.name, next, pushed](const commit::outcome& how, answers&) mutable {
        cron_state& mine = crons_.find(name)->second;
        mine.is_staged = false;
        if (how.why_not != nullptr) {
          return time_cron(mine, time_.now() + options_.probe_every);
        }
        const job_id last_job = std::exchange(mine.entry, next).last_job;
        time_cron(mine, next.next_at != unix_time{} ? std::optional(next.next_at) : std::nullopt);
        const auto kept = std::erase_if(pushed, [](const auto& it) { return it->id == 0; });
        counters.cron_runs += pushed.size();
        for (const auto& it : pushed) {
          job_event e;
          e.type = event_type::cron_ran;
          e.job = it->id;
          e.queue = next.spec.job.queue;
          e.text = name;
          add_event(std::move(e));
        }
        if (kept == 0) return;
        // A unique key was taken: the run before has not ended.
        mine.entry.runs -= kept;
        mine.entry.missed += kept;
        mine.entry.last_job = pushed.empty() ? last_job : pushed.back()->id;
        stage_entry(mine.entry);
      },
      at);
}

}  // namespace sluice::jobs::detail
