#pragma once

// Keeps a server busy and ends it repeatedly, on the same data, and judges the history.
//
// SLUICE_SEED reproduces the times and the load, not the scheduling of threads and processes.

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "tests/crash/client.hpp"
#include "tests/crash/load.hpp"

namespace sluice::crash {

using jobs::cli::testing::server_program;
using jobs::cli::testing::temporary_folder;

inline constexpr sluice::testing::effort_counts usual_kills{.ci = 13, .full = 500, .sanitized = 5};

void pass(std::chrono::microseconds time);
std::chrono::microseconds below(random& chance, std::chrono::microseconds bound);

struct kill_plan {
  using end_function = void (*)(server_program&, random&);
  using connect_to = std::function<std::unique_ptr<client>(const server_program&)>;

  sluice::testing::effort_counts kills = usual_kills;
  end_function end_server = [](server_program& server, random&) {
    server.itself().signal(SIGKILL);
  };
  std::set<int> codes = {128 + SIGKILL};  // permitted exit codes
  std::vector<std::string> arguments{};   // additional ones of `serve`
  load busy{.pushers = 4, .workers = 4};
  std::chrono::milliseconds long_life{0};  // the least duration of every tenth life
  connect_to connect{};                    // empty: over HTTP
  connect_to connect_last{};               // to drain the server at the end; empty: over HTTP
  // Called after each life, when all clients have ended.
  std::function<void()> after_life{};
  // A condition that the load must also meet. Kills continue until then, at most ten times `kills`:
  // on a busy machine a server does less between two kills.
  bool (*has_shown)(const verdict&) = [](const verdict&) { return true; };
};

// Also expects that the verdict has no findings and that the load was large enough.
verdict end_repeatedly(const kill_plan& plan);

}  // namespace sluice::crash
