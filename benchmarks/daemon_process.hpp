#pragma once

// A server as a process of its own, for as long as a run needs it, and what it costs.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

class daemon_process {
 public:
  enum class end { must_be_clean, by_any_way };  // of a server that is told to end

  // Starts `command`, with what it says in the file `log`, and returns when `is_up`, asked again
  // and again, says true. Ends the bench when it never does, or when the server ends before.
  daemon_process(const std::vector<std::string>& command, std::filesystem::path log, end how,
                 const std::function<bool()>& is_up);
  // SIGTERM, as an operator would; ends the bench when it must end cleanly and does not.
  ~daemon_process();
  daemon_process(const daemon_process&) = delete;
  daemon_process& operator=(const daemon_process&) = delete;

  pid_t pid() const { return pid_; }

  // Of all its threads, so far; to the nanosecond, where the kernel's clock tick of
  // /proc/PID/stat would hide what an idle server does.
  double cpu_us() const;
  double resident_mb() const;
  double peak_mb() const;  // the most that was resident at any time

  // SIGKILL: it has no time to do anything about its end.
  void kill();

 private:
  std::filesystem::path log_;
  end how_;
  pid_t pid_ = 0;
  on_failure dies_;  // with a bench that fails: nobody else would end it
};

}  // namespace sluice::bench
