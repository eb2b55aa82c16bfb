#pragma once

// Runs each command and returns the exit code of the process. Commands contain no business logic:
// they call a server (jobs/client), run a worker (jobs/worker) or a server (jobs/server), and print
// the result.

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/console.hpp"

namespace sluice::jobs::cli {

// `serve` and `work` return 128 + the signal number if a second signal ended them.
int run(const serve_arguments& args, const console& io);
int run(const push_arguments& args, const console& io);
int run(const get_arguments& args, const console& io);
int run(const work_arguments& args, const console& io);
int run(const workers_arguments& args, const console& io);
int run(const queues_arguments& args, const console& io);
int run(const jobs_arguments& args, const console& io);
int run(const stats_arguments& args, const console& io);
int run(const top_arguments& args, const console& io);
int run(const events_arguments& args, const console& io);
int run(const logs_arguments& args, const console& io);
int run(const batch_arguments& args, const console& io);
int run(const cron_arguments& args, const console& io);
int run(const plan_arguments& args, const console& io);
int run(const export_arguments& args, const console& io);
int run(const import_arguments& args, const console& io);
int run(const check_arguments& args, const console& io);
int run(const backup_arguments& args, const console& io);
int run(const token_arguments& args, const console& io);
int run(const completion_arguments& args, const console& io);
int run(const man_arguments& args, const console& io);
int run(const version_arguments& args, const console& io);

}  // namespace sluice::jobs::cli
