// work, workers: a program for each job, and those who work over Faktory's protocol.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_work(command_set& to) {
  auto& work = to.keep<work_arguments>();
  CLI::App& c = to.add(
      "work", "Do jobs by running a program for each.",
      "  sluice work --exec 'python3 resize.py' --queue images --concurrency 4\n"
      "  sluice work -- ./send-mail --from noreply@example.com\n"
      "The program gets the args on its standard input and SLUICE_JOB_ID, _KIND, _QUEUE, _ATTEMPT\n"
      "in its environment. Exit code 0: done, and its output is the result. Any other: failed, "
      "and\n"
      "the end of its standard error is the reason. Ctrl-C ends it when what runs has ended.",
      [&work]() -> arguments { return work; });
  add_connection(c, work.to);
  c.add_option("--exec", work.shell,
               "a command for /bin/sh; or, without a shell, at the end: -- PROGRAM [ARGS]")
      ->type_name("COMMAND");
  c.add_option("--queue", work.queues, "from where; several take turns by their weights")
      ->delimiter(',')
      ->capture_default_str();
  c.add_flag("--strict", work.strict,
             "always from the first of the queues that has a job: the others may starve");
  c.add_option("-c,--concurrency", work.concurrency, "jobs at a time (one for each processor)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  c.add_option("--prefetch", work.prefetch, "jobs leased beyond those, to begin at once")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1000}))
      ->capture_default_str();
  c.add_option("--name", work.name, "who works, for people (host and process)");
  c.add_option("--directory", work.directory, "where the program runs")->type_name("FOLDER");
  duration_option(c, "--lease-for", work.lease_for, "without a heartbeat, for another worker");
  duration_option(c, "--kill-after", work.kill_after, "from SIGTERM to SIGKILL (5s)");
  duration_option(c, "--grace", work.grace, "for what runs to finish when this ends (30s)");
  c.add_option("--jobs", work.jobs_max, "end after so many");
  c.add_flag("--no-result", work.ignore_output, "what the program prints is no result");
  c.add_flag("-q,--quiet", work.quiet, "say nothing about each job");
}

void add_workers(command_set& to) {
  auto& workers = to.keep<workers_arguments>();
  CLI::App& c = to.add("workers", "Show the workers of Faktory's protocol; quiet or end one.",
                       "  sluice workers\n"
                       "  sluice workers quiet 4f1c2a\n"
                       "  sluice workers terminate 4f1c2a\n"
                       "A worker hears it at its next beat, mostly within 15 seconds, and finishes "
                       "what it has.",
                       [&workers]() -> arguments { return workers; });
  add_connection(c, workers.to);
  c.require_subcommand(0, 1);
  c.add_option("--limit", workers.limit, "so many at most")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  c.add_option("--after", workers.after, "go on after this worker")->type_name("WID");
  using action = workers_arguments::action;
  const auto add = [&](const char* name, const char* about, action what) {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.add_option("wid", workers.wid, "the worker")->required();
    sub.final_callback([&workers, what] { workers.what = what; });
  };
  add("quiet", "It takes no more jobs, and finishes those that it has.", action::quiet);
  add("terminate", "The same, and then it ends.", action::terminate);
}

}  // namespace

void add_work_commands(command_set& to) {
  add_work(to);
  add_workers(to);
}

}  // namespace sluice::jobs::cli::detail
