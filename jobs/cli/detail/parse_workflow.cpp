// batch, cron: jobs that are pushed together, and jobs that are pushed again and again.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_paging(CLI::App& c, batch_arguments& batch) {
  c.add_option("--limit", batch.limit, "so many at most")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  c.add_option("--after", batch.after, "go on after this id")->type_name("ID");
}

void add_batch(command_set& to) {
  auto& batch = to.keep<batch_arguments>();
  CLI::App& c = to.add("batch", "Push jobs together, watch them, cancel or retry them together.",
                       "  sluice batch create -f workflow.json --wait 10m\n"
                       "  sluice batch show 7 --wait 10m\n"
                       "  sluice batch graph 7\n"
                       "  sluice batch retry 7\n"
                       "With --wait the exit code is 0 when every job was done, 1 when one was "
                       "not, and 6 when\nit has not ended in time.",
                       [&batch]() -> arguments { return batch; });
  add_connection(c, batch.to);
  c.require_subcommand(0, 1);
  using action = batch_arguments::action;
  const auto add = [&](const char* name, const char* about, action what) -> CLI::App& {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.final_callback([&batch, what] { batch.what = what; });
    return sub;
  };
  const auto add_of_one = [&](const char* name, const char* about, action what) -> CLI::App& {
    CLI::App& sub = add(name, about, what);
    sub.add_option("id", batch.id, "the batch's number")->required();
    return sub;
  };
  add_paging(add("list", "Show the batches.", action::list), batch);
  CLI::App& create =
      add("create", "Push a batch: its jobs, all or none, and its callbacks.", action::create);
  create.add_option("-f,--file", batch.file, "the batch in JSON, or - for standard input")
      ->required()
      ->type_name("FILE");
  duration_option(create, "--wait", batch.wait, "so long for its end, with a progress bar");
  create.add_flag("-q,--quiet", batch.quiet, "print the id and nothing else");
  CLI::App& show = add_of_one("show", "Show one; with --wait, when it has ended.", action::show);
  duration_option(show, "--wait", batch.wait, "so long for its end, with a progress bar");
  add_paging(add_of_one("jobs", "List its jobs.", action::jobs), batch);
  add_of_one("graph", "Draw which of its jobs wait for which, and their states.", action::graph);
  add_of_one("close", "No more jobs are to come: it ends with those it has.", action::close);
  add_of_one("cancel", "Call off all of its jobs that have not ended.", action::cancel)
      .add_flag("-y,--yes", batch.yes, "do not ask");
  add_of_one("retry", "Make its dead and cancelled jobs ready again.", action::retry);
}

void add_cron_set(CLI::App& set, cron_arguments& cron) {
  set.add_option("SCHEDULE", cron.spec.schedule, "as in '*/5 * * * *' or @daily")->required();
  set.add_option("KIND", cron.spec.job.kind, "the kind of job")->required();
  set.add_option("ARGS", cron.args, "its args: JSON, @FILE, or - for standard input");
  set.add_flag("--bytes", cron.as_bytes, "args are bytes, and not JSON");
  set.add_option("--zone", cron.spec.zone, "whose clock, as in Europe/Berlin")
      ->capture_default_str();
  word_option(set, "--missed", cron.spec.missed,
              "runs whose time passed while no server was there (one)", "skip|one|all",
              missed_runs_from);
  set.add_flag("--paused", cron.spec.paused, "not to run before it is resumed");
  add_job_options(set, cron.spec.job);
}

void add_cron(command_set& to) {
  auto& cron = to.keep<cron_arguments>();
  CLI::App& c = to.add("cron", "Show and change what is pushed again and again.",
                       "  sluice cron\n"
                       "  sluice cron set nightly '0 3 * * *' report --zone Europe/Berlin\n"
                       "  sluice cron run nightly\n"
                       "  sluice cron next '*/5 9-17 * * mon-fri' --zone America/New_York",
                       [&cron]() -> arguments { return cron; });
  add_connection(c, cron.to);
  c.require_subcommand(0, 1);
  using action = cron_arguments::action;
  const auto add = [&](const char* name, const char* about, action what) -> CLI::App& {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.final_callback([&cron, what] { cron.what = what; });
    return sub;
  };
  const auto add_of_one = [&](const char* name, const char* about, action what) -> CLI::App& {
    CLI::App& sub = add(name, about, what);
    sub.add_option("name", cron.spec.name, "the entry")->required();
    return sub;
  };
  add("list", "Show all entries.", action::list);
  add_cron_set(add_of_one("set", "Make an entry, or change the one of this name.", action::set),
               cron);
  add_of_one("show", "Show one, with its next five times.", action::show);
  add_of_one("pause", "Push nothing until it is resumed.", action::pause);
  add_of_one("resume", "Push again, from its next time on.", action::resume);
  add_of_one("run", "Push its job now, besides its times.", action::run);
  add_of_one("remove", "Forget it; jobs that it pushed stay.", action::remove);
  CLI::App& next = add("next", "Show when a schedule comes next; needs no server.", action::next);
  next.add_option("SCHEDULE", cron.spec.schedule, "as in '*/5 * * * *' or @daily")->required();
  next.add_option("--zone", cron.spec.zone, "whose clock, as in Europe/Berlin")
      ->capture_default_str();
  next.add_option("--times", cron.times, "how many")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
}

}  // namespace

void add_workflow_commands(command_set& to) {
  add_batch(to);
  add_cron(to);
}

}  // namespace sluice::jobs::cli::detail
