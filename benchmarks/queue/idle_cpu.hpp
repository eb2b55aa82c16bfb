#pragma once

// The CPU time of idle consumers.

#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "benchmarks/cpu_time.hpp"
#include "benchmarks/harness.hpp"

namespace sluice::bench {

// Eight consumers block in pop() on an empty queue for two seconds. The window opens when the last
// of them is about to call pop(), so the time that it spins before it parks counts. Returns the CPU
// time of the whole process in that window, in ms.
template <class Queue>
double idle_cpu_ms(const settings& s) {
  constexpr int consumers = 8;
  const auto window = std::chrono::milliseconds(s.quick ? 50 : 2000);
  Queue queue(1024);
  std::latch arriving(consumers);
  double used_ms = 0;
  {
    std::vector<std::jthread> threads;
    for (int c = 0; c < consumers; ++c) {
      threads.emplace_back([&] {
        arriving.count_down();
        keep(queue.pop());
      });
    }
    arriving.wait();
    const double before_ms = process_cpu_ms();
    std::this_thread::sleep_for(window);
    used_ms = process_cpu_ms() - before_ms;
    for (int c = 0; c < consumers; ++c) {
      queue.push(1);
    }
  }
  return used_ms;
}

}  // namespace sluice::bench
