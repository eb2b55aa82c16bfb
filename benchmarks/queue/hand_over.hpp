#pragma once

// The two throughput workloads: many threads that pass items, and two threads in ping-pong.
//
// A Queue is constructed with its capacity and has push(std::uint64_t) and std::uint64_t pop(),
// both blocking, and bool try_pop(std::uint64_t&). Every run checks the sum of the received items:
// a queue that loses, repeats or invents an item fails the bench.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/threads.hpp"

namespace sluice::bench {

inline constexpr std::size_t hand_over_capacity = 1024;

struct hand_over_shape {
  int producers;
  int consumers;
};

// The sum 1 + 2 + ... + n, modulo 2^64 as all sums here.
constexpr std::uint64_t sum_up_to(std::uint64_t n) {
  return n % 2 == 0 ? n / 2 * (n + 1) : (n + 1) / 2 * n;
}

// Every producer pushes 1, 2, 3, ... until the time has passed. The last of them to finish then
// pushes a 0 for each consumer, which stops it. (In a peer that is FIFO only for each producer a 0
// may overtake items; those are collected when the threads have ended.)
template <class Queue>
tally hand_over(hand_over_shape shape, seconds duration) {
  Queue queue(hand_over_capacity);
  std::atomic<int> still_producing = shape.producers;
  std::atomic<std::uint64_t> expected = 0;
  std::atomic<std::uint64_t> arrived = 0;
  std::vector<thread_body> bodies;
  for (int p = 0; p < shape.producers; ++p) {
    bodies.emplace_back([&](const run_clock& clock) {
      std::uint64_t item = 0;
      while (!clock.has_ended()) queue.push(++item);
      expected += sum_up_to(item);
      if (still_producing.fetch_sub(1) == 1) {
        for (int c = 0; c < shape.consumers; ++c) queue.push(0);
      }
      return item;
    });
  }
  for (int c = 0; c < shape.consumers; ++c) {
    bodies.emplace_back([&](const run_clock&) {
      std::uint64_t sum = 0;
      while (const std::uint64_t item = queue.pop()) sum += item;
      arrived += sum;
      return std::uint64_t{0};  // each item counts once, where it was pushed
    });
  }
  const tally result = run_threads(duration, std::move(bodies));
  for (std::uint64_t item = 0; queue.try_pop(item);) arrived += item;
  expect_equal(arrived, expected, "sum of the items that arrived");
  return result;
}

// One thread sends a number through one queue of capacity 1, the other sends it back, plus one,
// through a second queue. An operation is a round trip: two hand-overs, nothing in parallel. A 0
// ends it.
template <class Queue>
tally ping_pong(seconds duration) {
  Queue out(1);
  Queue back(1);
  const auto ping = [&](const run_clock& clock) {
    std::uint64_t ball = 0;
    std::uint64_t sum = 0;
    while (!clock.has_ended()) {
      out.push(++ball);
      sum += back.pop();
    }
    out.push(0);
    expect_equal(sum, sum_up_to(ball) + ball, "sum of the returned balls");
    return ball;
  };
  const auto pong = [&](const run_clock&) {
    while (const std::uint64_t ball = out.pop()) back.push(ball + 1);
    return std::uint64_t{0};
  };
  return run_threads(duration, {ping, pong});
}

// Adds a queue for many producers and consumers to 8P8C, 4P4C, 2P2C.
template <class Queue>
void add_many_to_many(suite& s, const std::string& who) {
  for (const int n : {8, 4, 2}) {
    const std::string name = std::to_string(n) + "P" + std::to_string(n) + "C";
    s.add(name, who, operations_per_second([n](seconds duration) {
            return hand_over<Queue>({.producers = n, .consumers = n}, duration);
          }));
  }
}

// Adds a queue, possibly for one producer and one consumer only, to 1P1C and pingpong.
template <class Queue>
void add_one_to_one(suite& s, const std::string& who) {
  s.add("1P1C", who, operations_per_second([](seconds duration) {
          return hand_over<Queue>({.producers = 1, .consumers = 1}, duration);
        }));
  s.add("pingpong", who, operations_per_second(ping_pong<Queue>));
}

}  // namespace sluice::bench
