#pragma once

// The loads on a running server: pushes alone, whole life cycles, and jobs at a steady rate.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/harness.hpp"
#include "benchmarks/server/server_process.hpp"

namespace sluice::bench {

inline constexpr int pushers = 8;
inline constexpr int workers = 8;
inline constexpr std::size_t args_bytes = 100;

struct served {
  std::uint64_t jobs = 0;
  seconds took{0};
  double server_cpu_us = 0;
};

// A job with 100 bytes of args that include `mark`; and a request that pushes `count` of them.
std::string job_json(std::uint64_t mark);
std::string push_body(std::size_t count);

// Pushes on 8 connections, each `bulk` jobs a request, one request after the other.
served push_for(server_process& server, seconds duration, std::size_t bulk);

// Pushes `count` jobs in bulk, as fast as the server accepts them.
void push_backlog(server_process& server, std::uint64_t count);

// The same with 8 workers on 8 further connections that lease up to `bulk` and ack them. Pushers
// stay at most 200 requests ahead, so that no backlog accumulates. Returns when all jobs are acked.
served work_for(server_process& server, seconds duration, std::size_t bulk);

// Leases and acks `count` ready jobs, 100 at a time, on 8 connections.
void work_off(server_process& server, std::uint64_t count);

// Returns the times from the scheduled push of a job until a waiting worker has it, in
// microseconds, sorted. There is one job every 1/rate; a push that is late because another was slow
// counts from its scheduled time.
std::vector<double> latencies_at(server_process& server, double rate, seconds duration);

}  // namespace sluice::bench
