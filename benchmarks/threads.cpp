#include "benchmarks/threads.hpp"

#include <latch>
#include <thread>
#include <utility>

namespace sluice::bench {

tally run_threads(seconds duration, std::vector<thread_body> bodies) {
  run_clock clock;
  std::latch gathered(static_cast<std::ptrdiff_t>(bodies.size()));
  std::latch gate(1);
  std::atomic<std::uint64_t> operations = 0;
  std::vector<std::jthread> threads;
  threads.reserve(bodies.size());
  for (thread_body& body : bodies) {
    threads.emplace_back([&clock, &gathered, &gate, &operations, body = std::move(body)] {
      gathered.count_down();
      gate.wait();
      operations += body(clock);
    });
  }
  gathered.wait();
  const auto opened = std::chrono::steady_clock::now();
  gate.count_down();
  std::this_thread::sleep_for(duration);
  clock.end();
  for (std::jthread& thread : threads) thread.join();
  return {operations, std::chrono::steady_clock::now() - opened};
}

tally run_threads(seconds duration, int count,
                  const std::function<std::uint64_t(int, const run_clock&)>& body) {
  std::vector<thread_body> bodies;
  for (int i = 0; i < count; ++i) {
    bodies.emplace_back([&body, i](const run_clock& clock) { return body(i, clock); });
  }
  return run_threads(duration, std::move(bodies));
}

}  // namespace sluice::bench
