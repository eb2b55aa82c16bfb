#pragma once

// The real server in its own process on a free port of this machine, and its CPU time and memory.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/daemon_process.hpp"

namespace sluice::bench {

class server_process {
 public:
  // Starts `sluice serve` on the data in `folder` and returns when it listens; ends the bench if it
  // does not within a minute.
  explicit server_process(const std::filesystem::path& folder,
                          const std::vector<std::string>& more = {});

  // Returns the port of http, or of a protocol enabled by --PROTOCOL 127.0.0.1:0.
  std::uint16_t port(const std::string& protocol = "http") const;
  std::chrono::steady_clock::time_point started() const { return started_; }

  double cpu_us() const { return runs_.cpu_us(); }
  double resident_mb() const { return runs_.resident_mb(); }
  double peak_mb() const { return runs_.peak_mb(); }
  void kill() { runs_.kill(); }

 private:
  std::chrono::steady_clock::time_point started_;
  std::map<std::string, std::uint16_t> ports_;
  daemon_process runs_;
};

}  // namespace sluice::bench
