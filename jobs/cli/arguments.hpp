#pragma once

// The parsed arguments of each command, as plain values: commands do not depend on the flag parser,
// and tests of the parser run no command.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "jobs/auth/token_set.hpp"
#include "jobs/cli/exit_code.hpp"
#include "jobs/model/cron.hpp"
#include "jobs/model/events.hpp"
#include "jobs/model/plan.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/server/config.hpp"
#include "jobs/server/server_options.hpp"

namespace sluice::jobs::cli {

// Arguments of every command that calls a server.
struct connection_arguments {
  std::string url = "http://127.0.0.1:7433";
  std::string token_file;  // with the token in its first line; empty: SLUICE_TOKEN
  std::string ca_file;     // certificate authorities of an https server; empty: the system's
  bool json = false;
};

struct serve_arguments {
  server_options server;
  std::string program = "sluice";  // argv[0], for commands in the banner
  std::vector<std::string> words;  // the whole command line, for a restart
  std::string port_file;           // empty: none
  std::string user;                // to switch to after binding; empty: no change
  bool quiet = false;              // no banner
  bool refuses_binlog = false;     // do not start in a folder with a binlog of beanstalkd
  config_sources from;             // the sources of `server`, for a reload
  bool check_config = false;       // only print the effective settings
  std::string effective;           // the text for check_config
};

struct push_arguments {
  connection_arguments server;
  job_spec spec;                      // its args are set from `args`
  std::optional<milliseconds> delay;  // instead of spec.run_at
  std::string args;                   // a value, @FILE or -; empty: none
  bool as_bytes = false;              // args are not JSON
  std::string ndjson;                 // a file of jobs, or -; empty: the one job above
  bulk mode = bulk::each;
  milliseconds wait{30'000};  // for capacity in a full queue that blocks
  bool quiet = false;         // print ids only
};

struct get_arguments {
  connection_arguments server;
  job_id id = 0;
  std::optional<milliseconds> wait;  // for the end of the job
};

struct work_arguments {
  connection_arguments server;
  std::vector<std::string> queues = {"default"};
  std::string shell;                 // --exec; empty: `command`
  std::vector<std::string> command;  // after --
  std::string directory;
  std::string name;
  std::size_t concurrency = 0;  // 0: one for each processor
  std::size_t prefetch = 0;
  milliseconds lease_for{0};
  milliseconds kill_after{5'000};
  milliseconds grace{30'000};
  std::uint64_t jobs_max = 0;  // exit after this many; 0: no limit
  bool ignore_output = false;  // do not store standard output as the result
  bool strict = false;         // always lease from the first queue that has a job
  bool quiet = false;
};

// Workers over Faktory's protocol.
struct workers_arguments {
  enum class action : std::uint8_t { list, quiet, terminate };
  connection_arguments server;
  action operation = action::list;
  std::string wid;          // quiet, terminate
  std::string after;        // list
  std::size_t limit = 100;  // list
};

struct queues_arguments {
  enum class action : std::uint8_t { list, show, set, pause, resume, purge };
  connection_arguments server;
  action operation = action::list;
  std::string name;
  queue_patch patch;
  bool yes = false;  // purge without confirmation
};

struct jobs_arguments {
  enum class action : std::uint8_t { list, cancel, retry, remove };
  connection_arguments server;
  action operation = action::list;
  list_request filter;
  bool all = false;  // every page
  std::vector<job_id> ids;
};

struct stats_arguments {
  connection_arguments server;
  std::optional<milliseconds> watch;  // repeat at this interval
};

struct top_arguments {
  connection_arguments server;
  milliseconds every{1'000};
};

struct events_arguments {
  connection_arguments server;
  event_request request;
};

struct logs_arguments {
  connection_arguments server;
  job_id id = 0;
  std::uint64_t after = 0;  // the number of a line
  bool follow = false;      // until the end of the job
};

struct batch_arguments {
  enum class action : std::uint8_t { list, create, show, jobs, graph, close, cancel, retry };
  connection_arguments server;
  action operation = action::list;
  job_id id = 0;
  std::string file;                  // create: a batch in JSON, or -
  std::optional<milliseconds> wait;  // create, show: for its end
  job_id after = 0;                  // list, jobs
  std::size_t limit = 100;           // list, jobs
  bool yes = false;                  // cancel without confirmation
  bool quiet = false;
};

struct cron_arguments {
  enum class action : std::uint8_t { list, set, show, pause, resume, run, remove, next };
  connection_arguments server;
  action operation = action::list;
  cron_spec spec;         // name: all but list and next; schedule and zone: set, next
  std::string args;       // set: of its job, as in push
  bool as_bytes = false;  // set: args are not JSON
  std::size_t times = 5;  // next
};

struct plan_arguments {
  plan_request request;
  std::string queue = "default";
  bool json = false;
};

struct export_arguments {
  connection_arguments server;
  std::string queue;
  std::string kind;
  std::vector<job_state> states;  // empty: jobs that have not ended
  std::string file;               // empty: standard output
  bool detach = false;            // also write jobs that wait for others, without their conditions
  bool quiet = false;
};

struct import_arguments {
  enum class on_refused : std::uint8_t { stop, go_on };
  connection_arguments server;
  std::string file;   // or -
  std::string queue;  // overrides the queue of each line; empty: no override
  std::uint64_t from_line = 1;
  on_refused refused = on_refused::stop;
  std::string report;  // file for refused lines with their errors; empty: none
  milliseconds wait{30'000};
  bool quiet = false;
};

struct check_arguments {
  std::string path;  // a data folder or a file
  bool json = false;
  bool quiet = false;
};

struct backup_arguments {
  std::string data;  // a folder
  std::string file;
  bool json = false;
  bool quiet = false;
};

struct token_arguments {
  enum class action : std::uint8_t { list, create, revoke };
  action operation = action::list;
  std::string data;
  token_request make;
  std::optional<milliseconds> lasts;  // create: lifetime; unset: until revoked
  std::string id;                     // revoke
  bool json = false;
};

struct completion_arguments {
  enum class shell : std::uint8_t { bash, zsh, fish };
  shell of = shell::bash;
};

struct man_arguments {};

struct version_arguments {
  bool json = false;
};

using arguments =
    std::variant<serve_arguments, push_arguments, get_arguments, work_arguments, workers_arguments,
                 queues_arguments, jobs_arguments, stats_arguments, top_arguments, events_arguments,
                 logs_arguments, batch_arguments, cron_arguments, plan_arguments, export_arguments,
                 import_arguments, check_arguments, backup_arguments, token_arguments,
                 completion_arguments, man_arguments, version_arguments>;

// No command to run: help was requested, or the command line is invalid.
struct no_command {
  exit_code code = exit_code::ok;
  std::string text;  // the help, or the error and how to get help
};

// Parses the command line. argv[0] is the program; `beanstalkd` means `sluice beanstalkd`. Flags
// take precedence over the environment, and the environment over defaults.
std::variant<arguments, no_command> parse_arguments(int argc, const char* const* argv);

}  // namespace sluice::jobs::cli
