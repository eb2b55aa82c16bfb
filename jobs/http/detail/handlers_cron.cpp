// Cron entries.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/model/cron_schedule.hpp"

namespace sluice::jobs::http {
namespace {

// False, and answered: who asks may not do this with the entry of the call, because it is for
// another queue. To those who may not look at it, it is not there.
bool may_use_entry(const call& c, role what) {
  if (!c.who.is_scoped()) return true;
  const auto there = c.jobs.get_cron(c.name);
  if (!there || c.who.may(what, there->entry.spec.job.queue)) return true;
  c.to.refuse({error_code::not_found, "there is no cron entry '" + c.name + "'"});
  return false;
}

void set_paused(call& c, bool paused) {
  if (!has_no_query(c) || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.to), c.jobs.patch_cron(std::move(c.name), {.paused = paused}),
            answer_with<cron_info>);
}

}  // namespace

void list_crons(call& c) {
  if (!has_no_query(c)) return;
  std::vector<cron_info> all = c.jobs.crons();
  std::erase_if(all,
                [&](const cron_info& i) { return !c.who.may(role::read, i.entry.spec.job.queue); });
  answer_with(c.to, result<std::vector<cron_info>>(std::move(all)));
}

void check_cron(call& c) {
  const auto asked = body_of<json::cron_check>(c);
  if (!asked) return;
  const auto schedule = cron_schedule::parse(asked->schedule, asked->zone);
  if (!schedule) return c.to.refuse(schedule.error());
  json::cron_times times{.describes = schedule->describe(),
                         .upcoming = schedule->upcoming(c.server.time.now(), 5)};
  answer_with(c.to, result<json::cron_times>(std::move(times)));
}

void get_cron(call& c) {
  if (!has_no_query(c) || !may_use_entry(c, role::read)) return;
  answer_with(c.to, c.jobs.get_cron(c.name));
}

void set_cron(call& c) {
  auto spec = body_of<cron_spec>(c, {.now = c.server.time.after(milliseconds(0))});
  if (!spec) return;
  if (!spec->name.empty() && spec->name != c.name) {
    return c.to.refuse({error_code::invalid, "name: the body says '" + spec->name.substr(0, 128) +
                                                 "', the path '" + c.name + "'; which of them?"});
  }
  if (!may_use_entry(c, role::admin) || !may_use_as_client(c, role::admin, spec->job.queue)) {
    return;
  }
  spec->name = std::move(c.name);
  std::vector<job_id> named;
  if (c.who.is_scoped()) add_named(named, spec->job);
  auto go_on = [&jobs = c.jobs, spec = *std::move(spec)](const ticket& to) mutable {
    when_done(to, jobs.set_cron(std::move(spec)), answer_with<cron_info>);
  };
  if (named.empty()) return go_on(c.to);
  check_named(c, std::move(named), 1, std::move(go_on));
}

void patch_cron(call& c) {
  const auto patch = body_of<cron_patch>(c);
  if (!patch || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.to), c.jobs.patch_cron(std::move(c.name), *patch), answer_with<cron_info>);
}

void remove_cron(call& c) {
  if (!has_no_query(c) || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.to), c.jobs.remove_cron(std::move(c.name)), answer_done);
}

void pause_cron(call& c) {
  set_paused(c, true);
}

void resume_cron(call& c) {
  set_paused(c, false);
}

void run_cron(call& c) {
  if (!has_no_query(c) || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.to), c.jobs.run_cron(std::move(c.name)), answer_with<push_receipt>);
}

}  // namespace sluice::jobs::http
