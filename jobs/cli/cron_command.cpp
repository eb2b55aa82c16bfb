#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/job_args.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"
#include "jobs/model/cron_schedule.hpp"
#include "jobs/model/time_zone.hpp"

namespace sluice::jobs::cli {
namespace {

std::string when(unix_time t, unix_time now) {
  return t == unix_time{} ? "-" : format_time(t) + " (" + ago(t, now) + ")";
}

// As the clock on the wall there shows it.
std::string local_text(unix_time t, const time_zone& zone) {
  const auto there = zone.at(t);
  std::string text = format_time(t + there.from_utc).substr(0, 19);
  text[10] = ' ';
  return text + " " + std::string(there.abbreviation);
}

void print_one(const cron_info& c, const console& to) {
  const text_style& style = to.style();
  const cron_entry& e = c.entry;
  const unix_time now = real_time().now();
  to.line(style.bold(e.spec.name) + (e.spec.paused ? " " + style.yellow("paused") : ""));
  const auto row = [&](std::string name, const std::string& value) {
    name.append(12 - name.size(), ' ');
    to.line("  " + style.faint(name) + value);
  };
  row("schedule", e.spec.schedule + ", " + e.spec.zone);
  if (const auto schedule = cron_schedule::parse(e.spec.schedule, e.spec.zone)) {
    row("that is", schedule->describe());
  }
  row("pushes", e.spec.job.kind + " to " + e.spec.job.queue);
  if (e.spec.job.args.type == content_type::json && !e.spec.job.args.data.empty()) {
    row("args", e.spec.job.args.data);
  }
  row("missed", std::string(to_string(e.spec.missed)) +
                    (e.missed > 0 ? " (" + grouped(e.missed) + " were left out)" : ""));
  row("runs", grouped(e.runs));
  if (e.last_job != 0) row("last", when(e.last_at, now) + ", job " + std::to_string(e.last_job));
  for (std::size_t i = 0; i < c.upcoming.size(); ++i) {
    row(i == 0 ? "next" : "", when(c.upcoming[i], now));
  }
}

exit_code show(const result<cron_info>& c, const cron_arguments& what, const console& to) {
  if (!c) return to.complain(c.error());
  if (what.to.json) {
    to.line(json::to_json(*c));
  } else {
    print_one(*c, to);
  }
  return exit_code::ok;
}

exit_code list(client& server, const cron_arguments& what, const console& to) {
  const auto all = server.crons();
  if (!all) return to.complain(all.error());
  if (what.to.json) {
    to.line(json::to_json(*all));
    return exit_code::ok;
  }
  if (all->empty()) {
    to.note("there are no entries: make one with 'sluice cron set'");
    return exit_code::ok;
  }
  constexpr auto right = table::align::right;
  table t({{"NAME"}, {"SCHEDULE"}, {"ZONE"}, {"KIND"}, {"NEXT"}, {"LAST"}, {"RUNS", right}, {""}});
  const unix_time now = real_time().now();
  for (const cron_info& c : *all) {
    const cron_entry& e = c.entry;
    t.add({e.spec.name, e.spec.schedule, e.spec.zone, e.spec.job.kind,
           e.spec.paused ? "-" : ago(e.next_at, now), ago(e.last_at, now), grouped(e.runs),
           e.spec.paused ? "paused" : ""});
  }
  to.print(t.text(to.style()));
  return exit_code::ok;
}

exit_code set(client& server, const cron_arguments& what, const console& to) {
  cron_spec spec = what.spec;
  auto args = read_args(what.args, what.as_bytes, to);
  if (!args) return to.complain(args.error());
  spec.job.args = std::move(*args);
  if (const auto is_json = check_metadata(spec.job.metadata); !is_json) {
    return to.complain(is_json.error());
  }
  if (const auto valid = validate(spec); !valid) return to.complain(valid.error());
  return show(server.set_cron(std::move(spec)), what, to);
}

exit_code run_now(client& server, const cron_arguments& what, const console& to) {
  const auto pushed = server.run_cron(what.spec.name);
  if (!pushed) return to.complain(pushed.error());
  if (what.to.json) {
    to.line(json::to_json(*pushed));
  } else if (pushed->what == push_receipt::fate::duplicate) {
    to.line("job " + std::to_string(pushed->id) + " has the unique key already: nothing pushed");
  } else {
    to.line("job " + std::to_string(pushed->id) + " pushed");
  }
  return exit_code::ok;
}

exit_code remove(client& server, const cron_arguments& what, const console& to) {
  if (const auto removed = server.remove_cron(what.spec.name); !removed) {
    return to.complain(removed.error());
  }
  if (what.to.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("name").value(what.spec.name).key("removed").value(true).end_object();
    to.line(text);
  } else {
    to.line(what.spec.name + " removed");
  }
  return exit_code::ok;
}

// The one part that needs no server.
exit_code print_next(const cron_arguments& what, const console& to) {
  const auto schedule = cron_schedule::parse(what.spec.schedule, what.spec.zone);
  if (!schedule) return to.complain(schedule.error());
  const unix_time now = real_time().now();
  const auto times = schedule->upcoming(now, what.times);
  if (what.to.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("schedule").value(schedule->text()).key("zone").value(schedule->zone());
    out.key("times").begin_array();
    for (const unix_time t : times) out.value(t);
    out.end_array().end_object();
    to.line(text);
    return exit_code::ok;
  }
  to.note(schedule->describe());
  const auto zone = time_zone::find(schedule->zone());
  for (const unix_time t : times) {
    to.line((zone ? local_text(t, *zone) + "  " : "") + when(t, now));
  }
  return exit_code::ok;
}

}  // namespace

int run(const cron_arguments& what, const console& to) {
  using action = cron_arguments::action;
  if (what.what == action::next) return static_cast<int>(print_next(what, to));
  return with_client(what.to, to, [&](client& server) {
    switch (what.what) {
      case action::list:
      case action::next:
        return list(server, what, to);
      case action::set:
        return set(server, what, to);
      case action::show:
        return show(server.get_cron(what.spec.name), what, to);
      case action::pause:
        return show(server.patch_cron(what.spec.name, {.paused = true}), what, to);
      case action::resume:
        return show(server.patch_cron(what.spec.name, {.paused = false}), what, to);
      case action::run:
        return run_now(server, what, to);
      case action::remove:
        break;
    }
    return remove(server, what, to);
  });
}

}  // namespace sluice::jobs::cli
