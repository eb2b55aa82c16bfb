#pragma once

// What each command was asked to do: plain values, so that a command knows nothing of flags and a
// test of the flags runs no command.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "jobs/cli/exit_code.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/server/server_options.hpp"

namespace sluice::jobs::cli {

// Of every command that talks to a server.
struct connection_arguments {
  std::string url = "http://127.0.0.1:7433";
  bool json = false;
};

struct serve_arguments {
  server_options server;
  std::string program = "sluice";  // how this was started, for lines to be pasted
  std::string port_file;           // empty: none
  bool quiet = false;              // no banner
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
  bool quiet = false;
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

struct version_arguments {
  bool json = false;
};

using arguments =
    std::variant<serve_arguments, push_arguments, get_arguments, work_arguments, queues_arguments,
                 jobs_arguments, stats_arguments, version_arguments>;

// There is nothing to run: help was asked for, or the command line is wrong.
struct no_command {
  exit_code code = exit_code::ok;
  std::string text;  // help, or what is wrong and where help is
};

// argv[0] is the program. Flags come before the environment, the environment before defaults.
std::variant<arguments, no_command> parse_arguments(int argc, const char* const* argv);

}  // namespace sluice::jobs::cli
