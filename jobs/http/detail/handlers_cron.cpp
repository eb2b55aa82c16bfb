// Cron entries.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/model/cron_schedule.hpp"

namespace sluice::jobs::http {
namespace {

// Checks the token's role for the queue of the entry. Returns false if the request was refused: an
// entry of another queue is reported as not found.
bool may_use_entry(const call& c, role needed) {
  if (!c.caller.is_scoped()) return true;
  const auto there = c.jobs.get_cron(c.name);
  if (!there || c.caller.may(needed, there->entry.spec.job.queue)) return true;
  c.reply.refuse({error_code::not_found, "there is no cron entry '" + c.name + "'"});
  return false;
}

void set_paused(call& c, bool paused) {
  if (!has_no_query(c) || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.reply), c.jobs.patch_cron(std::move(c.name), {.paused = paused}),
            answer_with<cron_info>);
}

}  // namespace

void list_crons(call& c) {
  if (!has_no_query(c)) return;
  std::vector<cron_info> all = c.jobs.crons();
  std::erase_if(
      all, [&](const cron_info& i) { return !c.caller.may(role::read, i.entry.spec.job.queue); });
  answer_with(c.reply, result<std::vector<cron_info>>(std::move(all)));
}

void check_cron(call& c) {
  const auto asked = body_of<json::cron_check>(c);
  if (!asked) return;
  const auto schedule = cron_schedule::parse(asked->schedule, asked->zone);
  if (!schedule) return c.reply.refuse(schedule.error());
  json::cron_times times{.describes = schedule->describe(),
                         .upcoming = schedule->upcoming(c.server.time.now(), 5)};
  answer_with(c.reply, result<json::cron_times>(std::move(times)));
}

void get_cron(call& c) {
  if (!has_no_query(c) || !may_use_entry(c, role::read)) return;
  answer_with(c.reply, c.jobs.get_cron(c.name));
}

void set_cron(call& c) {
  auto spec = body_of<cron_spec>(c, {.now = c.server.time.after(milliseconds(0))});
  if (!spec) return;
  if (!spec->name.empty() && spec->name != c.name) {
    return c.reply.refuse({error_code::invalid, "name: the body has '" + spec->name.substr(0, 128) +
                                                    "', but the path has '" + c.name +
                                                    "'; send one"});
  }
  if (!may_use_entry(c, role::admin) || !may_use_as_client(c, role::admin, spec->job.queue)) {
    return;
  }
  spec->name = std::move(c.name);
  std::vector<job_id> named;
  if (c.caller.is_scoped()) add_named(named, spec->job);
  auto set_checked = [&jobs = c.jobs, spec = *std::move(spec)](const ticket& reply) mutable {
    when_done(reply, jobs.set_cron(std::move(spec)), answer_with<cron_info>);
  };
  if (named.empty()) return set_checked(c.reply);
  check_named(c, std::move(named), 1, std::move(set_checked));
}

void patch_cron(call& c) {
  const auto patch = body_of<cron_patch>(c);
  if (!patch || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.reply), c.jobs.patch_cron(std::move(c.name), *patch),
            answer_with<cron_info>);
}

void remove_cron(call& c) {
  if (!has_no_query(c) || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.reply), c.jobs.remove_cron(std::move(c.name)), answer_done);
}

void pause_cron(call& c) {
  set_paused(c, true);
}

void resume_cron(call& c) {
  set_paused(c, false);
}

void run_cron(call& c) {
  if (!has_no_query(c) || !may_use_entry(c, role::admin)) return;
  when_done(std::move(c.reply), c.jobs.run_cron(std::move(c.name)), answer_with<push_receipt>);
}

}  // namespace sluice::jobs::http
