#pragma once

// A server that is kept busy and ended again and again, on the same data, and the judgement on it.
//
// SLUICE_SEED repeats the moments and the load, not how threads and processes run.

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
  using end_it = void (*)(server_program&, random&);
  using connect_to = std::function<std::unique_ptr<client>(const server_program&)>;

  sluice::testing::effort_counts kills = usual_kills;
  end_it how = [](server_program& server, random&) { server.itself().signal(SIGKILL); };
  std::set<int> codes = {128 + SIGKILL};  // with which it may end
  std::vector<std::string> words{};       // of `serve`, beside the usual ones
  load busy{.pushers = 4, .workers = 4};
  std::chrono::milliseconds long_life{0};  // every tenth lasts so long at least
  connect_to connect{};                    // empty: over HTTP
  connect_to connect_last{};               // for what is left at the end; empty: over HTTP
  // After each life, when all clients have ended.
  std::function<void()> after_life{};
  // A condition that the load must also meet. Kills continue until then, at most ten times `kills`:
  // on a busy machine a server does less between two kills.
  bool (*has_shown)(const verdict&) = [](const verdict&) { return true; };
};

// Also expects that nothing that may not happen has happened, and that the load has shown enough.
verdict end_again_and_again(const kill_plan& plan);

}  // namespace sluice::crash
