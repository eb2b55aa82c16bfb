#pragma once

// A server in its own process for the duration of a run, and its CPU time and memory.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

class daemon_process {
 public:
  enum class end { must_be_clean, by_any_way };  // after SIGTERM

  // Starts `command`, with its output in the file `log`, and polls `is_up` until it returns true.
  // Ends the bench if it does not within a minute, or if the server ends before.
  daemon_process(const std::vector<std::string>& command, std::filesystem::path log, end ending,
                 const std::function<bool()>& is_up);
  // Sends SIGTERM, as an operator would. Fails the bench if the end must be clean and is not.
  ~daemon_process();
  daemon_process(const daemon_process&) = delete;
  daemon_process& operator=(const daemon_process&) = delete;

  pid_t pid() const { return pid_; }

  // Returns the CPU time of all its threads so far, in nanosecond resolution: the clock tick of
  // /proc/PID/stat is too coarse for an idle server.
  double cpu_us() const;
  double resident_mb() const;
  double peak_mb() const;  // peak resident memory

  // Sends SIGKILL.
  void kill();

 private:
  std::filesystem::path log_;
  end ending_;
  pid_t pid_ = 0;
  on_failure kill_;  // ends the server if the bench fails
};

}  // namespace sluice::bench
