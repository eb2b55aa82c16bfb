// `sluice`, workload task_pingpong: two task<> on a work_stealing_pool of one thread for each core,
// over two channels of capacity 1; what two goroutines are to Go's scheduler. The tasks were
// spawned and can be cancelled: every wait hears the stop_token of its future.
#include <cstdint>
#include <thread>

#include "benchmarks/harness.hpp"
#include "benchmarks/threads.hpp"
#include "sluice/channel/channel.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/task.hpp"

namespace sluice::bench {
namespace {

using balls = channel<std::uint64_t>;

task<std::uint64_t> ping(balls& there, balls& back, const run_clock& clock) {
  std::uint64_t ball = 0;
  std::uint64_t arrived = 0;
  std::uint64_t expected = 0;
  while (!clock.is_over()) {
    if (!co_await there.async_send(++ball)) fail("a channel was closed");
    const auto returned = co_await back.async_receive();
    if (!returned) fail("a channel was closed");
    arrived += *returned;
    expected += ball + 1;
  }
  there.close();
  expect_equal(arrived, expected, "sum of the balls");
  co_return ball;
}

task<> pong(balls& there, balls& back) {
  while (const auto ball = co_await there.async_receive()) {
    if (!co_await back.async_send(*ball + 1)) fail("a channel was closed");
  }
}

tally task_pingpong(seconds duration) {
  work_stealing_pool pool;
  balls there(1);
  balls back(1);
  run_clock clock;
  const auto start = std::chrono::steady_clock::now();
  auto pongs = spawn(pool, pong(there, back));
  auto pings = spawn(pool, ping(there, back, clock));
  std::this_thread::sleep_for(duration);
  clock.end();
  const auto rounds = pings.get();
  pongs.get();
  return {rounds, std::chrono::steady_clock::now() - start};
}

const registration added{[](suite& s) {
  s.add("task_pingpong", "sluice", operations_per_second(task_pingpong));
}};

}  // namespace
}  // namespace sluice::bench
