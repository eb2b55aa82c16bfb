#pragma once

// Does what was asked for, and returns the process's exit code. Commands hold no business logic:
// they ask a server (jobs/client), run a worker (jobs/worker) or are the server (jobs/server), and
// say what came of it.

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/console.hpp"

namespace sluice::jobs::cli {

// `serve` and `work` end with 128 and the number of a signal when a second one ended them.
int run(const serve_arguments& what, const console& to);
int run(const push_arguments& what, const console& to);
int run(const get_arguments& what, const console& to);
int run(const work_arguments& what, const console& to);
int run(const workers_arguments& what, const console& to);
int run(const queues_arguments& what, const console& to);
int run(const jobs_arguments& what, const console& to);
int run(const stats_arguments& what, const console& to);
int run(const top_arguments& what, const console& to);
int run(const events_arguments& what, const console& to);
int run(const logs_arguments& what, const console& to);
int run(const batch_arguments& what, const console& to);
int run(const cron_arguments& what, const console& to);
int run(const plan_arguments& what, const console& to);
int run(const export_arguments& what, const console& to);
int run(const import_arguments& what, const console& to);
int run(const check_arguments& what, const console& to);
int run(const backup_arguments& what, const console& to);
int run(const token_arguments& what, const console& to);
int run(const completion_arguments& what, const console& to);
int run(const man_arguments& what, const console& to);
int run(const version_arguments& what, const console& to);

}  // namespace sluice::jobs::cli
