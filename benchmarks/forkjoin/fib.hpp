#pragma once

// The workload of ./bench forkjoin: fib(n) = fib(n - 1) + fib(n - 2), where every call above 1
// forks the first, calls the second, and joins. Nearly all of the time is forking and joining.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/child_process.hpp"
#include "benchmarks/harness.hpp"

namespace sluice::bench {

inline constexpr int fib_n = 27;
inline constexpr std::int64_t fib_result = 196'418;
inline constexpr std::uint64_t fib_forks = 317'810;  // calls above 1: fib(n + 1) - 1

inline unsigned fork_threads() { return std::max(1U, std::thread::hardware_concurrency()); }

// Calls `compute()`, which computes fib(fib_n) once, until the time has passed.
template <class Compute>
tally compute_repeatedly(seconds duration, Compute&& compute) {
  using clock = std::chrono::steady_clock;
  compute();  // wakes the threads
  const auto start = clock::now();
  std::uint64_t forks = 0;
  seconds took{0};
  while (took < duration) {
    expect_equal(static_cast<std::uint64_t>(compute()), fib_result, "fib(27)");
    forks += fib_forks;
    took = clock::now() - start;
  }
  return {.operations = forks, .took = took};
}

// A contender `Pool(threads)` whose `fib(n)` computes it on the pool.
template <class Pool>
void add_fib(suite& s, std::string who) {
  s.add("fib", std::move(who), nanoseconds_per_operation([](seconds duration) {
          Pool pool(fork_threads());
          return compute_repeatedly(duration, [&] { return pool.fib(fib_n); });
        }));
}

// A contender that is another program, and prints forks per second.
inline void add_child_fib(suite& s, std::string who, std::vector<std::string> program) {
  const auto per_second =
      child_run(std::move(program),
                {.workload = "fib", .consumers = static_cast<int>(fork_threads()),
                 .capacity = fib_n});
  s.add("fib", std::move(who),
        [per_second](const settings& with) { return 1e9 / per_second(with); });
}

}  // namespace sluice::bench
