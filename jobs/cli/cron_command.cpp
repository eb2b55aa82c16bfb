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

// Formats the local time of the zone.
std::string local_text(unix_time t, const time_zone& zone) {
  const auto there = zone.at(t);
  std::string text = format_time(t + there.from_utc).substr(0, 19);
  text[10] = ' ';
  return text + " " + std::string(there.abbreviation);
}

void print_one(const cron_info& c, const console& io) {
  const text_style& style = io.style();
  const cron_entry& e = c.entry;
  const unix_time now = real_time().now();
  io.line(style.bold(e.spec.name) + (e.spec.paused ? " " + style.yellow("paused") : ""));
  const auto row = [&](std::string name, const std::string& value) {
    name.append(12 - name.size(), ' ');
    io.line("  " + style.faint(name) + value);
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
                    (e.missed > 0 ? " (" + grouped(e.missed) + " skipped)" : ""));
  row("runs", grouped(e.runs));
  if (e.last_job != 0) row("last", when(e.last_at, now) + ", job " + std::to_string(e.last_job));
  for (std::size_t i = 0; i < c.upcoming.size(); ++i) {
    row(i == 0 ? "next" : "", when(c.upcoming[i], now));
  }
}

exit_code show(const result<cron_info>& c, const cron_arguments& args, const console& io) {
  if (!c) return io.complain(c.error());
  if (args.server.json) {
    io.line(json::to_json(*c));
  } else {
    print_one(*c, io);
  }
  return exit_code::ok;
}

exit_code list(client& server, const cron_arguments& args, const console& io) {
  const auto all = server.crons();
  if (!all) return io.complain(all.error());
  if (args.server.json) {
    io.line(json::to_json(*all));
    return exit_code::ok;
  }
  if (all->empty()) {
    io.note("no entries; create one with 'sluice cron set'");
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
  io.print(t.text(io.style()));
  return exit_code::ok;
}

exit_code set(client& server, const cron_arguments& args, const console& io) {
  cron_spec spec = args.spec;
  auto read = read_args(args.args, args.as_bytes, io);
  if (!read) return io.complain(read.error());
  spec.job.args = std::move(*read);
  if (const auto is_json = check_metadata(spec.job.metadata); !is_json) {
    return io.complain(is_json.error());
  }
  if (const auto valid = validate(spec); !valid) return io.complain(valid.error());
  return show(server.set_cron(std::move(spec)), args, io);
}

exit_code run_now(client& server, const cron_arguments& args, const console& io) {
  const auto pushed = server.run_cron(args.spec.name);
  if (!pushed) return io.complain(pushed.error());
  if (args.server.json) {
    io.line(json::to_json(*pushed));
  } else if (pushed->outcome == push_receipt::fate::duplicate) {
    io.line("job " + std::to_string(pushed->id) + " already has the unique key: nothing pushed");
  } else {
    io.line("job " + std::to_string(pushed->id) + " pushed");
  }
  return exit_code::ok;
}

exit_code remove(client& server, const cron_arguments& args, const console& io) {
  if (const auto removed = server.remove_cron(args.spec.name); !removed) {
    return io.complain(removed.error());
  }
  if (args.server.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("name").value(args.spec.name).key("removed").value(true).end_object();
    io.line(text);
  } else {
    io.line(args.spec.name + " removed");
  }
  return exit_code::ok;
}

// Needs no server.
exit_code print_next(const cron_arguments& args, const console& io) {
  const auto schedule = cron_schedule::parse(args.spec.schedule, args.spec.zone);
  if (!schedule) return io.complain(schedule.error());
  const unix_time now = real_time().now();
  const auto times = schedule->upcoming(now, args.times);
  if (args.server.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("schedule").value(schedule->text()).key("zone").value(schedule->zone());
    out.key("times").begin_array();
    for (const unix_time t : times) out.value(t);
    out.end_array().end_object();
    io.line(text);
    return exit_code::ok;
  }
  io.note(schedule->describe());
  const auto zone = time_zone::find(schedule->zone());
  for (const unix_time t : times) {
    io.line((zone ? local_text(t, *zone) + "  " : "") + when(t, now));
  }
  return exit_code::ok;
}

}  // namespace

int run(const cron_arguments& args, const console& io) {
  using action = cron_arguments::action;
  if (args.operation == action::next) return static_cast<int>(print_next(args, io));
  return with_client(args.server, io, [&](client& server) {
    switch (args.operation) {
      case action::list:
      case action::next:
        return list(server, args, io);
      case action::set:
        return set(server, args, io);
      case action::show:
        return show(server.get_cron(args.spec.name), args, io);
      case action::pause:
        return show(server.patch_cron(args.spec.name, {.paused = true}), args, io);
      case action::resume:
        return show(server.patch_cron(args.spec.name, {.paused = false}), args, io);
      case action::run:
        return run_now(server, args, io);
      case action::remove:
        break;
    }
    return remove(server, args, io);
  });
}

}  // namespace sluice::jobs::cli
