// batch, cron: jobs that are pushed together, and jobs that are pushed on a schedule.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_paging(CLI::App& c, batch_arguments& batch) {
  c.add_option("--limit", batch.limit, "largest number of entries")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  c.add_option("--after", batch.after, "start after this id")->type_name("ID");
}

void add_batch(command_set& commands) {
  auto& batch = commands.keep<batch_arguments>();
  CLI::App& c =
      commands.add("batch", "Push jobs together, watch them, cancel or retry them together.",
                   "  sluice batch create -f workflow.json --wait 10m\n"
                   "  sluice batch show 7 --wait 10m\n"
                   "  sluice batch graph 7\n"
                   "  sluice batch retry 7\n"
                   "With --wait the exit code is 0 if every job is done, 1 if a job is not, "
                   "and 6 if\nthe batch has not ended in time.",
                   [&batch]() -> arguments { return batch; });
  add_connection(c, batch.server);
  c.require_subcommand(0, 1);
  using action = batch_arguments::action;
  const auto add = [&](const char* name, const char* summary, action operation) -> CLI::App& {
    CLI::App& sub = *c.add_subcommand(name, summary);
    sub.fallthrough();
    sub.final_callback([&batch, operation] { batch.operation = operation; });
    return sub;
  };
  const auto add_of_one = [&](const char* name, const char* summary,
                              action operation) -> CLI::App& {
    CLI::App& sub = add(name, summary, operation);
    sub.add_option("id", batch.id, "the batch's number")->required();
    return sub;
  };
  add_paging(add("list", "Show the batches.", action::list), batch);
  CLI::App& create =
      add("create", "Push a batch: its jobs, all or none, and its callbacks.", action::create);
  create.add_option("-f,--file", batch.file, "the batch in JSON, or - for standard input")
      ->required()
      ->type_name("FILE");
  duration_option(create, "--wait", batch.wait, "wait this long for its end, with a progress bar");
  create.add_flag("-q,--quiet", batch.quiet, "print the id only");
  CLI::App& show =
      add_of_one("show", "Show a batch; with --wait, when it has ended.", action::show);
  duration_option(show, "--wait", batch.wait, "wait this long for its end, with a progress bar");
  add_paging(add_of_one("jobs", "List its jobs.", action::jobs), batch);
  add_of_one("graph", "Draw the dependencies of its jobs, with their states.", action::graph);
  add_of_one("close", "Close it to further jobs: it ends with its current jobs.", action::close);
  add_of_one("cancel", "Cancel all of its jobs that have not ended.", action::cancel)
      .add_flag("-y,--yes", batch.yes, "skip the confirmation");
  add_of_one("retry", "Make its dead and cancelled jobs ready again.", action::retry);
}

void add_cron_set(CLI::App& set, cron_arguments& cron) {
  set.add_option("SCHEDULE", cron.spec.schedule, "as in '*/5 * * * *' or @daily")->required();
  set.add_option("KIND", cron.spec.job.kind, "the kind of job")->required();
  set.add_option("ARGS", cron.args, "its args: JSON, @FILE, or - for standard input");
  set.add_flag("--bytes", cron.as_bytes, "args are bytes, not JSON");
  set.add_option("--zone", cron.spec.zone, "time zone, as in Europe/Berlin")->capture_default_str();
  word_option(set, "--missed", cron.spec.missed,
              "policy for runs missed while no server was running (one)", "skip|one|all",
              missed_runs_from);
  set.add_flag("--paused", cron.spec.paused, "create the entry paused");
  add_job_options(set, cron.spec.job);
}

void add_cron(command_set& commands) {
  auto& cron = commands.keep<cron_arguments>();
  CLI::App& c = commands.add("cron", "Show and change the jobs that are pushed on a schedule.",
                             "  sluice cron\n"
                             "  sluice cron set nightly '0 3 * * *' report --zone Europe/Berlin\n"
                             "  sluice cron run nightly\n"
                             "  sluice cron next '*/5 9-17 * * mon-fri' --zone America/New_York",
                             [&cron]() -> arguments { return cron; });
  add_connection(c, cron.server);
  c.require_subcommand(0, 1);
  using action = cron_arguments::action;
  const auto add = [&](const char* name, const char* summary, action operation) -> CLI::App& {
    CLI::App& sub = *c.add_subcommand(name, summary);
    sub.fallthrough();
    sub.final_callback([&cron, operation] { cron.operation = operation; });
    return sub;
  };
  const auto add_of_one = [&](const char* name, const char* summary,
                              action operation) -> CLI::App& {
    CLI::App& sub = add(name, summary, operation);
    sub.add_option("name", cron.spec.name, "the entry")->required();
    return sub;
  };
  add("list", "Show all entries.", action::list);
  add_cron_set(
      add_of_one("set", "Create an entry, or change the entry with this name.", action::set), cron);
  add_of_one("show", "Show an entry with its next five times.", action::show);
  add_of_one("pause", "Push nothing until it is resumed.", action::pause);
  add_of_one("resume", "Resume pushing, from its next time.", action::resume);
  add_of_one("run", "Push its job now, in addition to its schedule.", action::run);
  add_of_one("remove", "Delete an entry; jobs that it pushed stay.", action::remove);
  CLI::App& next = add("next", "Show the next times of a schedule; needs no server.", action::next);
  next.add_option("SCHEDULE", cron.spec.schedule, "as in '*/5 * * * *' or @daily")->required();
  next.add_option("--zone", cron.spec.zone, "time zone, as in Europe/Berlin")
      ->capture_default_str();
  next.add_option("--times", cron.times, "number of times")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
}

}  // namespace

void add_workflow_commands(command_set& commands) {
  add_batch(commands);
  add_cron(commands);
}

}  // namespace sluice::jobs::cli::detail
