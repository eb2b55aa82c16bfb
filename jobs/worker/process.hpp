#pragma once

// Runs a command for each job, written in any language. `sluice work --exec` is built on it.
//
// The command reads the job's arguments, unchanged, from standard input, and gets in its
// environment
//   SLUICE_JOB_ID SLUICE_JOB_KIND SLUICE_JOB_QUEUE SLUICE_JOB_ATTEMPT SLUICE_JOB_METADATA
//   SLUICE_JOB_TIME_LIMIT_MS (0: none)      SLUICE_JOB_ARGS_TYPE (json or bytes)
// Exit code 0: the job is done, and standard output is its result: JSON if it parses as JSON, else
// a JSON string if it is UTF-8 (without its last line end), else bytes; no output: no result. Any
// other exit code or a signal: the job has failed, and the message has the exit code or signal and
// the end of standard error.
// Lines of standard error are the log of the attempt. A line
//   sluice:progress 40 resizing
// sets the progress instead (0 to 100, then an optional text); it is neither logged nor part of the
// failure message.
// To stop a job (cancelled, lease lost, time limit, shutdown) the process group gets SIGTERM, and
// SIGKILL after `kill_after`.
//
// Guarantees: `run` returns when the command itself has ended, even if its children keep the pipes
// open. These children are killed if the job was stopped, and are left running otherwise. `run`
// leaves no zombie and no open descriptor, and the command inherits none of this program's
// descriptors. Standard input is a file in memory, so a command need not read it. Any number of
// threads may call `run` concurrently.
// Limits: standard output up to output_bytes_max, beyond which the job fails (the excess is read
// and dropped, so that the command is not blocked); of standard error the last error_tail_bytes are
// kept.
// Cost: one process per job, created by posix_spawn without copying this process; the calling
// thread sleeps until an event.
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

  std::string directory{};  // working directory; empty: the current one
  std::vector<std::pair<std::string, std::string>> environment{};  // added to the inherited one
  output standard_output = output::result;
  errors standard_error = errors::logged;
  std::size_t output_bytes_max = limits::result_bytes_max;
  std::size_t error_tail_bytes = 4096;  // of standard error, for the message of a failure
  milliseconds kill_after{5'000};       // from SIGTERM to SIGKILL
  time_source* time = nullptr;          // for kill_after; null: real_time()
};

class process_command {
 public:
  using options = process_options;

  // Runs the command with /bin/sh -c. Fails with `not_found` if the shell does not find the
  // command's first word, and with `invalid` if the shell cannot parse the command.
  static result<process_command> shell(std::string command, options o = {});
  // Runs a program without a shell. Fails with `not_found` if it does not exist or is not
  // executable.
  static result<process_command> program(std::vector<std::string> argv, options o = {});

  job_outcome run(job_context& ctx) const;
  const std::string& describe() const noexcept;  // for people

 private:
  struct settings;
  explicit process_command(std::shared_ptr<const settings> s) : settings_(std::move(s)) {}

  std::shared_ptr<const settings> settings_;
};

}  // namespace sluice::jobs
