#pragma once

// Does a job by running a command, in whatever language it is written: what is behind
// `sluice work --exec`.
//
// The command gets the job's arguments on its standard input, as they were pushed, and the rest in
// its environment:
//   SLUICE_JOB_ID SLUICE_JOB_KIND SLUICE_JOB_QUEUE SLUICE_JOB_ATTEMPT SLUICE_JOB_METADATA
//   SLUICE_JOB_TIME_LIMIT_MS (0: none)      SLUICE_JOB_ARGS_TYPE (json or bytes)
// Exit code 0: the job is done, and what the command wrote to standard output is its result: as
// JSON if it is JSON, else as a JSON string if it is UTF-8 (without its last line end), else as
// bytes; nothing written: no result. Any other end: the job has failed, and the message has the
// exit code or the signal, and the end of what it wrote to standard error.
// What it writes to standard error, line by line, is the log of the attempt. A line
//   sluice:progress 40 resizing
// says how far it is instead (0 to 100, then a text if it likes), and is in neither.
// When the job is to stop (cancelled, lease lost, time limit, shutdown) the whole process group
// gets SIGTERM, and SIGKILL `kill_after` later.
//
// Guarantees: `run` returns when the command has ended, not when all that it started has; children
// of it that hold its pipes open hold up nobody. Once told to stop, they are killed with it; after
// an ordinary end they are left alone. It leaves no zombie and no descriptor, and gives none of
// this program's descriptors to the command. Standard input is a file: a command that does not read
// it, or not all of it, has done nothing wrong. Any number of threads may call `run` at a time.
// Bounds: standard output by output_bytes_max, beyond which the job fails (what is beyond is read
// and thrown away, so the command is not held up); of standard error the end is kept.
// Cost: a process a job, started without copying this one; the calling thread sleeps until
// something happens.
//
//     auto command = process_command::shell("python3 resize.py");
//     if (!command) return complain(command.error());
//     w.handle_others([c = *command](job_context& ctx) { return c.run(ctx); });

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobs/model/job.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "jobs/worker/handler.hpp"
#include "jobs/worker/job_context.hpp"

namespace sluice::jobs {

struct process_options {
  enum class output : std::uint8_t { result, ignored };
  enum class errors : std::uint8_t { logged, kept_for_failure };

  std::string directory{};                                         // where it runs; empty: here
  std::vector<std::pair<std::string, std::string>> environment{};  // beside this program's own
  output standard_output = output::result;
  errors standard_error = errors::logged;
  std::size_t output_bytes_max = limits::result_bytes_max;
  std::size_t error_tail_bytes = 4096;  // of standard error, in the message of a failure
  milliseconds kill_after{5'000};       // from SIGTERM to SIGKILL
  time_source* time = nullptr;          // of kill_after; null: real_time()
};

class process_command {
 public:
  using options = process_options;

  // By /bin/sh -c. not_found: the shell knows no command of the name that it begins with; invalid:
  // the shell does not understand it.
  static result<process_command> shell(std::string command, options o = {});
  // A program and its arguments, without a shell. not_found: no such program, or not executable.
  static result<process_command> program(std::vector<std::string> argv, options o = {});

  job_outcome run(job_context& ctx) const;
  const std::string& describe() const noexcept;  // for people

 private:
  struct settings;
  explicit process_command(std::shared_ptr<const settings> s) : settings_(std::move(s)) {}

  std::shared_ptr<const settings> settings_;
};

}  // namespace sluice::jobs
