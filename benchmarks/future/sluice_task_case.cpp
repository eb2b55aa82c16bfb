// `sluice`, workload task_pingpong: two task<> on a work_stealing_pool of one thread for each core,
// over two channels of capacity 1, comparable to two goroutines. The tasks are spawned and can be
// cancelled: every wait ends if the stop_token of its future is stopped.
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

task<std::uint64_t> ping(balls& out, balls& back, const run_clock& clock) {
  std::uint64_t ball = 0;
  std::uint64_t arrived = 0;
  std::uint64_t expected = 0;
  while (!clock.has_ended()) {
    if (!co_await out.async_send(++ball)) fail("a channel was closed");
    const auto returned = co_await back.async_receive();
    if (!returned) fail("a channel was closed");
    arrived += *returned;
    expected += ball + 1;
  }
  out.close();
  expect_equal(arrived, expected, "sum of the balls");
  co_return ball;
}

task<> pong(balls& out, balls& back) {
  while (const auto ball = co_await out.async_receive()) {
    if (!co_await back.async_send(*ball + 1)) fail("a channel was closed");
  }
}

tally task_pingpong(seconds duration) {
  work_stealing_pool pool;
  balls out(1);
  balls back(1);
  run_clock clock;
  const auto start = std::chrono::steady_clock::now();
  auto pongs = spawn(pool, pong(out, back));
  auto pings = spawn(pool, ping(out, back, clock));
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
