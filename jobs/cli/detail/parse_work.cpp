// work, workers: running a program for each job, and the workers over Faktory's protocol.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_work(command_set& commands) {
  auto& work = commands.keep<work_arguments>();
  CLI::App& c = commands.add(
      "work", "Run a program for each job.",
      "  sluice work --exec 'python3 resize.py' --queue images --concurrency 4\n"
      "  sluice work -- ./send-mail --from noreply@example.com\n"
      "The program reads the args from standard input; SLUICE_JOB_ID, _KIND, _QUEUE and _ATTEMPT\n"
      "are in its environment. With exit code 0 the job is done, and standard output is its\n"
      "result; with any other the attempt fails, and the end of standard error is the reason.\n"
      "Ctrl-C ends it after the running jobs.",
      [&work]() -> arguments { return work; });
  add_connection(c, work.server);
  c.add_option("--exec", work.shell,
               "a command for /bin/sh; without a shell: -- PROGRAM [ARGS] at the end")
      ->type_name("COMMAND");
  c.add_option("--queue", work.queues, "the queues, served in proportion to their weights")
      ->delimiter(',')
      ->capture_default_str();
  c.add_flag("--strict", work.strict,
             "always lease from the first queue that has a job: the others may starve");
  c.add_option("-c,--concurrency", work.concurrency, "jobs at a time (one for each processor)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  c.add_option("--prefetch", work.prefetch, "jobs leased in advance, to start at once")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1000}))
      ->capture_default_str();
  c.add_option("--name", work.name, "name of the worker, for people (host and process)");
  c.add_option("--directory", work.directory, "working directory of the program")
      ->type_name("FOLDER");
  duration_option(c, "--lease-for", work.lease_for, "duration of a lease without a heartbeat");
  duration_option(c, "--kill-after", work.kill_after, "from SIGTERM to SIGKILL (5s)");
  duration_option(c, "--grace", work.grace, "time for running jobs at shutdown (30s)");
  c.add_option("--jobs", work.jobs_max, "exit after this many jobs");
  c.add_flag("--no-result", work.ignore_output, "do not store standard output as the result");
  c.add_flag("-q,--quiet", work.quiet, "no line for each job");
}

void add_workers(command_set& commands) {
  auto& workers = commands.keep<workers_arguments>();
  CLI::App& c =
      commands.add("workers", "List the workers over Faktory's protocol; quiet or end one.",
                   "  sluice workers\n"
                   "  sluice workers quiet 4f1c2a\n"
                   "  sluice workers terminate 4f1c2a\n"
                   "A worker is notified at its next beat, usually within 15 seconds, and "
                   "finishes its current jobs.",
                   [&workers]() -> arguments { return workers; });
  add_connection(c, workers.server);
  c.require_subcommand(0, 1);
  c.add_option("--limit", workers.limit, "largest number of workers")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  c.add_option("--after", workers.after, "start after this worker")->type_name("WID");
  using action = workers_arguments::action;
  const auto add = [&](const char* name, const char* summary, action operation) {
    CLI::App& sub = *c.add_subcommand(name, summary);
    sub.fallthrough();
    sub.add_option("wid", workers.wid, "the worker")->required();
    sub.final_callback([&workers, operation] { workers.operation = operation; });
  };
  add("quiet", "Fetch no new jobs and finish the current ones.", action::quiet);
  add("terminate", "Fetch no new jobs, finish the current ones, and exit.", action::terminate);
}

}  // namespace

void add_work_commands(command_set& commands) {
  add_work(commands);
  add_workers(commands);
}

}  // namespace sluice::jobs::cli::detail
