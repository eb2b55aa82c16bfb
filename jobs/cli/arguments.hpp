#pragma once

// What each command was asked to do: plain values, so that a command knows nothing of flags and a
// test of the flags runs no command.

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

// Of every command that talks to a server.
struct connection_arguments {
  std::string url = "http://127.0.0.1:7433";
  std::string token_file;  // whose first line is the token; empty: the environment's SLUICE_TOKEN
  std::string ca_file;     // whom an https server's certificate must be from; empty: the system's
  bool json = false;
};

struct serve_arguments {
  server_options server;
  std::string program = "sluice";  // how this was started, for lines to be pasted
  std::vector<std::string> words;  // all of the command line, to be started again with
  std::string port_file;           // empty: none
  std::string user;                // to become when it listens; empty: as it is
  bool quiet = false;              // no banner
  bool refuses_binlog = false;     // of beanstalkd, where the jobs are kept
  config_sources from;             // where `server` came from, to be read again
  bool check_config = false;       // only show what is effective
  std::string effective;           // for that
};

struct push_arguments {
  connection_arguments to;
  job_spec spec;                      // its args are filled in from `args`
  std::optional<milliseconds> delay;  // instead of spec.run_at
  std::string args;                   // a value, @FILE or -; empty: none
  bool as_bytes = false;              // args are not JSON
  std::string ndjson;                 // a file of jobs, or -; empty: the one job above
  bulk mode = bulk::each;
  milliseconds wait{30'000};  // for room in a full queue that blocks
  bool quiet = false;         // nothing but ids
};

struct get_arguments {
  connection_arguments to;
  job_id id = 0;
  std::optional<milliseconds> wait;  // until it has ended
};

struct work_arguments {
  connection_arguments to;
  std::vector<std::string> queues = {"default"};
  std::string shell;                 // --exec; empty: `command`
  std::vector<std::string> command;  // after --
  std::string directory;
  std::string name;
  std::size_t concurrency = 0;  // zero: one for each processor
  std::size_t prefetch = 0;
  milliseconds lease_for{0};
  milliseconds kill_after{5'000};
  milliseconds grace{30'000};
  std::uint64_t jobs_max = 0;  // ends after so many; zero: never
  bool ignore_output = false;  // standard output is no result
  bool strict = false;         // the first queue that has a job, and not each in its turn
  bool quiet = false;
};

// Of Faktory's protocol.
struct workers_arguments {
  enum class action : std::uint8_t { list, quiet, terminate };
  connection_arguments to;
  action what = action::list;
  std::string wid;          // quiet, terminate
  std::string after;        // list
  std::size_t limit = 100;  // list
};

struct queues_arguments {
  enum class action : std::uint8_t { list, show, set, pause, resume, purge };
  connection_arguments to;
  action what = action::list;
  std::string name;
  queue_patch patch;
  bool yes = false;  // purge without a question
};

struct jobs_arguments {
  enum class action : std::uint8_t { list, cancel, retry, remove };
  connection_arguments to;
  action what = action::list;
  list_request filter;
  bool all = false;  // every page
  std::vector<job_id> ids;
};

struct stats_arguments {
  connection_arguments to;
  std::optional<milliseconds> watch;  // again and again, this far apart
};

struct top_arguments {
  connection_arguments to;
  milliseconds every{1'000};
};

struct events_arguments {
  connection_arguments to;
  event_request what;
};

struct logs_arguments {
  connection_arguments to;
  job_id id = 0;
  std::uint64_t after = 0;  // the number of a line
  bool follow = false;      // until the job has ended
};

struct batch_arguments {
  enum class action : std::uint8_t { list, create, show, jobs, graph, close, cancel, retry };
  connection_arguments to;
  action what = action::list;
  job_id id = 0;
  std::string file;                  // create: a batch in JSON, or -
  std::optional<milliseconds> wait;  // create, show: until it has ended
  job_id after = 0;                  // list, jobs
  std::size_t limit = 100;           // list, jobs
  bool yes = false;                  // cancel without a question
  bool quiet = false;
};

struct cron_arguments {
  enum class action : std::uint8_t { list, set, show, pause, resume, run, remove, next };
  connection_arguments to;
  action what = action::list;
  cron_spec spec;         // its name, for all but list and next; its schedule and zone, for next
  std::string args;       // set: of its job, as of push
  bool as_bytes = false;  // set: args are not JSON
  std::size_t times = 5;  // next
};

struct plan_arguments {
  plan_request what;
  std::string queue = "default";
  bool json = false;
};

struct export_arguments {
  connection_arguments to;
  std::string queue;
  std::string kind;
  std::vector<job_state> states;  // empty: those that have not ended
  std::string file;               // empty: standard output
  bool detach = false;            // also jobs that wait for others, to run without waiting
  bool quiet = false;
};

struct import_arguments {
  enum class on_refused : std::uint8_t { stop, go_on };
  connection_arguments to;
  std::string file;   // or -
  std::string queue;  // instead of the one that a line says; empty: as it says
  std::uint64_t from_line = 1;
  on_refused refused = on_refused::stop;
  std::string report;  // where refused lines go, each with its reason; empty: nowhere
  milliseconds wait{30'000};
  bool quiet = false;
};

struct check_arguments {
  std::string path;  // a folder of data, or a file
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
  action what = action::list;
  std::string data;
  token_request make;
  std::optional<milliseconds> lasts;  // create; unset: until it is revoked
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

// There is nothing to run: help was asked for, or the command line is wrong.
struct no_command {
  exit_code code = exit_code::ok;
  std::string text;  // help, or what is wrong and where help is
};

// argv[0] is the program; one that is called beanstalkd is `sluice beanstalkd`. Flags come before
// the environment, the environment before defaults.
std::variant<arguments, no_command> parse_arguments(int argc, const char* const* argv);

}  // namespace sluice::jobs::cli
