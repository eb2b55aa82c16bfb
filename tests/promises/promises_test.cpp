// The promised figures of the server, for the real program over real sockets: the memory of a
// backlog, the delay of a killed server's first lease, and the CPU time of waiting workers.

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "jobs/json/codec.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"
#include "tests/promises/measured_server.hpp"

namespace sluice::promises::promises_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

namespace json = jobs::json;

using jobs::cli::testing::program;
using jobs::cli::testing::server_program;
using jobs::cli::testing::temporary_folder;

constexpr std::uint64_t backlog = 1'000'000;
constexpr std::uint64_t args_bytes = 100;
constexpr std::uint64_t memory_max_kb = 64'000;
// Bytes read, as a share of the bytes stored. Most of them come from the write-ahead log, whose
// size is limited.
constexpr double restart_read_max = 0.25;
constexpr std::uint64_t own_leases = 1;  // the server itself waits for webhooks to post
constexpr auto idle_for = 10s;
constexpr auto idle_cpu_max = 10ms;

// Pushes them in bulk over some connections at a time; every one must be accepted.
void push_backlog(std::uint16_t port) {
  constexpr std::uint64_t connections = 4;
  constexpr std::uint64_t in_one_request = 1000;
  jobs::job_spec spec;
  spec.kind = "promised";
  spec.args.data = "\"" + std::string(args_bytes - 2, 'x') + "\"";
  json::push_call call;
  call.jobs.assign(in_one_request, spec);
  const std::string body = json::to_json(call);
  const std::string all_of_them = "\"accepted\":" + std::to_string(in_one_request);
  std::vector<seam::thread> pushers;  // joined at the end
  for (std::uint64_t c = 0; c < connections; ++c) {
    pushers.emplace_back([&] {
      wire w(port);
      for (std::uint64_t i = 0; i < backlog / connections / in_one_request; ++i) {
        w.request("POST", "/v1/jobs", body);
        const auto answered = w.receive();
        ASSERT_EQ(answered.status, 200) << answered.body;
        ASSERT_NE(answered.body.find(all_of_them), std::string::npos) << answered.body;
      }
    });
  }
}

std::uint64_t bytes_on_disk(const temporary_folder& folder) {
  std::uint64_t bytes = 0;
  for (const char* const name : {"data/jobs.db", "data/jobs.db-wal"}) {
    bytes += std::filesystem::file_size(folder.file(name));
  }
  return bytes;
}

// Starts the program and leases a job. Returns the bytes that the program read until then. How long
// it takes is a row of `./bench backlog`.
std::uint64_t read_until_first_lease(const temporary_folder& folder) {
  server_program server(folder);
  wire w(port_of(server));
  w.request("POST", "/v1/leases", R"({"queues":["default"]})");
  const auto answered = w.receive();
  const std::uint64_t read = bytes_read(server.itself());
  EXPECT_EQ(answered.status, 200) << answered.body;
  EXPECT_EQ(unfinished_jobs(w, "default"), backlog);
  const auto peak = peak_memory_kb(server.itself());
  EXPECT_LT(peak, memory_max_kb);
  std::printf("[          ] %.1f MB read from the start to the first lease, peak memory %.1f MB\n",
              static_cast<double>(read) / 1e6, static_cast<double>(peak) / 1000);
  server.itself().signal(SIGKILL);
  EXPECT_EQ(server.itself().wait().code, 128 + SIGKILL);
  return read;
}

TEST(promises_test, AMillionWaitingJobsTakeLittleMemoryAndDelayNoRestart) {
  const temporary_folder folder;
  std::uint64_t stored = 0;
  {
    server_program server(folder);
    const auto began = seam::now();
    push_backlog(port_of(server));
    ASSERT_FALSE(HasFailure()) << server.itself().err();
    const auto took = std::chrono::duration<double>(seam::now() - began).count();
    wire w(port_of(server));
    ASSERT_EQ(unfinished_jobs(w, "default"), backlog);
    const auto peak = peak_memory_kb(server.itself());
    stored = bytes_on_disk(folder);
    std::printf("[          ] %lu jobs pushed in %.1f s, %.1f MB on disk, peak memory %.1f MB\n",
                static_cast<unsigned long>(backlog), took, static_cast<double>(stored) / 1e6,
                static_cast<double>(peak) / 1000);
    EXPECT_GT(stored, backlog * args_bytes) << "the jobs are not in this store";
    EXPECT_LT(peak, memory_max_kb);
    server.itself().signal(SIGKILL);
    EXPECT_EQ(server.itself().wait().code, 128 + SIGKILL);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(static_cast<double>(read_until_first_lease(folder)),
              restart_read_max * static_cast<double>(stored));
  }
}

std::uint64_t waiting_leases(wire& w) {
  w.request("GET", "/v1/stats");
  const auto stats = json::read<jobs::engine_stats>(w.receive().body);
  EXPECT_TRUE(stats);
  return stats ? stats->waiting_leases : 0;
}

TEST(promises_test, WaitingWorkersCostAnIdleServerNothing) {
  const temporary_folder folder;
  server_program server(folder);
  std::vector<wire> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back(port_of(server))
        .request("POST", "/v1/leases", R"({"queues":["default"],"wait":"60s"})");
  }
  wire asking(port_of(server));
  sluice::testing::eventually([&] { return waiting_leases(asking) == own_leases + workers.size(); },
                              "every worker to wait");

  const auto before = cpu_time(server.itself());
  event never_set;
  (void)never_set.wait(idle_for);
  const auto used = cpu_time(server.itself()) - before;
  std::printf("[          ] CPU in 10 s with 8 waiting workers: %.3f ms\n",
              std::chrono::duration<double, std::milli>(used).count());
  EXPECT_LT(used, idle_cpu_max);

  EXPECT_EQ(waiting_leases(asking), own_leases + workers.size())
      << "a worker did not wait for the whole time";
  for (std::size_t i = 0; i < workers.size(); ++i) {
    asking.request("POST", "/v1/jobs", R"({"kind":"promised"})");
    EXPECT_EQ(asking.receive().status, 201);
  }
  for (auto& worker : workers) EXPECT_EQ(worker.receive().status, 200);
}

}  // namespace
}  // namespace sluice::promises::promises_test
