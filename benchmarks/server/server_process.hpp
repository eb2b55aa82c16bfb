#pragma once

// The real server, as a process of its own on a free port of this machine, and what it costs.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::bench {

class server_process {
 public:
  // Starts `sluice serve` on the data in `folder` and returns when it listens; ends the bench when
  // it does not within a minute.
  explicit server_process(const std::filesystem::path& folder, std::vector<std::string> more = {});
  // SIGTERM, as an operator would; ends the bench when that does not end it well.
  ~server_process();
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;

  std::uint16_t port() const { return port_; }
  std::chrono::steady_clock::time_point started() const { return started_; }

  // Of all its threads, so far; to the nanosecond, where the kernel's clock tick of
  // /proc/PID/stat would hide what an idle server does.
  double cpu_us() const;
  double resident_mb() const;
  double peak_mb() const;  // the most that was resident at any time

  // SIGKILL: it has no time to do anything about its end.
  void kill();

 private:
  std::filesystem::path log_;
  std::chrono::steady_clock::time_point started_;
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace sluice::bench
