#pragma once

// The two workloads of a pool. A Pool is constructed with its number of threads and has
// submit(function), called from one thread, and finish(), which returns when all submitted
// functions have run.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "benchmarks/cpu_time.hpp"
#include "benchmarks/harness.hpp"

namespace sluice::bench {

inline constexpr std::uint64_t functions_per_round = 1'000'000;

inline unsigned pool_threads() {
  return std::max(1U, std::thread::hardware_concurrency());
}

// Rounds of a million functions, each with a new pool, until the time has passed. The time of a
// round begins after the pool has started and includes its end. An unmeasured round before checks
// that the pool runs its functions.
template <class Pool>
tally submit_empty(seconds duration) {
  using clock = std::chrono::steady_clock;
  {
    std::atomic<std::uint64_t> ran = 0;
    Pool pool(pool_threads());
    for (int i = 0; i < 10'000; ++i) pool.submit([&ran] { ++ran; });
    pool.finish();
    expect_equal(ran, 10'000, "functions that were run");
  }
  tally total{.operations = 0, .took = seconds(0)};
  do {
    Pool pool(pool_threads());
    const auto start = clock::now();
    for (std::uint64_t i = 0; i < functions_per_round; ++i) pool.submit([] {});
    pool.finish();
    total.took += clock::now() - start;
    total.operations += functions_per_round;
  } while (total.took < duration);
  return total;
}

// Sixteen threads that have all run a function are idle for two seconds. The window opens when the
// last function has run, so the time that threads spin before they sleep counts.
template <class Pool>
double idle_pool_cpu_ms(const settings& s) {
  constexpr int threads = 16;
  Pool pool(threads);
  std::atomic<int> inside = 0;
  std::atomic<int> left = 0;
  for (int i = 0; i < threads; ++i) {
    pool.submit([&] {
      ++inside;
      while (inside < threads) std::this_thread::yield();  // so that each needs another thread
      ++left;
    });
  }
  while (left < threads) std::this_thread::yield();
  const double before_ms = process_cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(s.quick ? 50 : 2000));
  const double used_ms = process_cpu_ms() - before_ms;
  pool.finish();
  return used_ms;
}

template <class Pool>
void add_pool(suite& s, const std::string& who) {
  s.add("submit", who, operations_per_second(submit_empty<Pool>));
}

}  // namespace sluice::bench
