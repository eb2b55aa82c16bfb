#include "benchmarks/line_trip.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

namespace sluice::bench {
namespace {

constexpr int trips = 3000;

void stay_on(std::size_t core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  ::pthread_setaffinity_np(::pthread_self(), sizeof only, &only);
}

double measure_once(std::size_t first_core, std::size_t second_core) {
  struct alignas(128) line {
    std::atomic<int> ball{0};
  } shared;
  const auto hit = [&](int expected, int next) {
    while (shared.ball.load(std::memory_order_acquire) != expected) {
    }
    shared.ball.store(next, std::memory_order_release);
  };
  std::chrono::steady_clock::time_point began;
  const std::jthread answers([&] {
    stay_on(second_core);
    for (int i = 0; i < trips; ++i) hit(2 * i + 1, 2 * i + 2);
  });
  std::chrono::duration<double, std::nano> took{};
  std::jthread([&] {
    stay_on(first_core);
    for (int i = 0; i < trips; ++i) {
      hit(2 * i, 2 * i + 1);
      if (i == 0) hit(2, 2);  // both have begun
      if (i == 0) began = std::chrono::steady_clock::now();
    }
    took = std::chrono::steady_clock::now() - began;
  }).join();
  return took.count() / (trips - 1);
}

}  // namespace

double line_round_trip_ns() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return 0;
  std::size_t first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  std::size_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) --last;
  std::array<double, 5> all{};
  for (double& one : all) one = measure_once(first, last);
  std::ranges::sort(all);
  return all[all.size() / 2];
}

}  // namespace sluice::bench
