#pragma once

// Functions that measure the real program: requests over plain sockets, and counters of the kernel.

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "jobs/http/testing/wire.hpp"
#include "jobs/json/codec.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::promises {

using jobs::testing::wire;

inline std::uint16_t port_of(const jobs::cli::testing::server_program& server) {
  const auto& url = server.url();
  std::uint16_t port = 0;
  std::from_chars(url.data() + url.rfind(':') + 1, url.data() + url.size(), port);
  return port;
}

// Returns a counter of the kernel for a process: the line `name` of /proc/PID/`file`.
inline std::uint64_t counted_by_kernel(const jobs::cli::testing::program& of,
                                       const std::string& file, const std::string& name) {
  std::ifstream lines("/proc/" + std::to_string(of.pid()) + "/" + file);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size(), nullptr, 10);
  }
  ADD_FAILURE() << "no " << name << " in /proc/PID/" << file;
  return ~std::uint64_t{0};
}

// Returns the peak resident memory.
inline std::uint64_t peak_memory_kb(const jobs::cli::testing::program& of) {
  return counted_by_kernel(of, "status", "VmHWM:");
}

// Returns the bytes that its system calls read, from a disk or a cache.
inline std::uint64_t bytes_read(const jobs::cli::testing::program& of) {
  return counted_by_kernel(of, "io", "rchar:");
}

// Returns the CPU time of all its threads, including ended ones. Exact: the ticks of
// /proc/<pid>/stat are as long as the whole allowance.
inline std::chrono::nanoseconds cpu_time(const jobs::cli::testing::program& of) {
  clockid_t clock{};
  EXPECT_EQ(::clock_getcpuclockid(of.pid(), &clock), 0);
  timespec used{};
  EXPECT_EQ(::clock_gettime(clock, &used), 0);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// Pushes the jobs that `line` writes for 0, 1, ... as streams of lines, over some connections at a
// time; every one must be accepted.
inline void push_lines(std::uint16_t port, std::uint64_t count,
                       const std::function<std::string(std::uint64_t)>& line) {
  constexpr std::uint64_t connections = 4;
  constexpr std::uint64_t in_one_request = 10'000;
  std::vector<seam::thread> pushers;  // joined at the end
  for (std::uint64_t c = 0; c < connections; ++c) {
    pushers.emplace_back([&, c] {
      wire w(port);
      for (std::uint64_t at = c * in_one_request; at < count; at += connections * in_one_request) {
        const std::uint64_t end = std::min(at + in_one_request, count);
        std::string body;
        for (std::uint64_t i = at; i < end; ++i) body += line(i) + "\n";
        w.request("POST", "/v1/jobs", body, "Content-Type: application/x-ndjson\r\n");
        const auto answered = w.receive();
        ASSERT_EQ(answered.status, 200) << answered.body;
        const std::string all_of_them = "\"accepted\":" + std::to_string(end - at) + ",";
        ASSERT_NE(answered.body.find(all_of_them), std::string::npos)
            << answered.body.substr(0, 200);
      }
    });
  }
}

// Returns the number of ready and running jobs.
inline std::uint64_t unfinished_jobs(wire& w, const std::string& queue) {
  w.request("GET", "/v1/queues/" + queue);
  const auto info = jobs::json::read<jobs::queue_info>(w.receive().body);
  EXPECT_TRUE(info);
  return info ? info->counts.ready + info->counts.running : 0;
}

// Returns the jobs of a lease reply; empty if none came in time.
inline std::vector<jobs::leased_job> leased_in(const jobs::testing::reply& answered) {
  if (answered.status == 204) return {};
  EXPECT_EQ(answered.status, 200) << answered.body;
  auto got = jobs::json::read<std::vector<jobs::leased_job>>(answered.body);
  EXPECT_TRUE(got) << answered.body;
  return got ? *got : std::vector<jobs::leased_job>{};
}

inline void ack(wire& w, const jobs::leased_job& done) {
  w.request("POST", "/v1/jobs/" + std::to_string(done.job->id) + "/ack",
            "{\"lease\":" + std::to_string(done.key) + "}");
  const auto answered = w.receive();
  EXPECT_EQ(answered.status, 204) << answered.body;
}

}  // namespace sluice::promises
