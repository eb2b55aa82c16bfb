#pragma once

// The sizes of ./bench actor, and the functions that time and check a run.
//
// A contender spawns and starts its actors, and one of them reports the end at a `finish_line`,
// with a number that verifies the run. The thread that waits there measures the time: the start and
// the shutdown of a runtime are not included.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "benchmarks/harness.hpp"
#include "benchmarks/threads.hpp"

namespace sluice::bench {

// Sluice's own workloads. Ping-pong and ring run for the harness's time.
inline constexpr std::uint64_t ring_size = 100;
inline constexpr std::uint64_t fanin_senders = 8;
inline constexpr std::uint64_t fanin_messages = 1'000'000;  // from each sender
inline constexpr int fanin_capacity = 1024;  // of the receiver's mailbox, if it has a bound
inline constexpr std::uint64_t population_size = 1'000'000;

// Eight workloads of the Savina suite (Imam and Sarkar, 2014), with its structure and sizes that
// take 0.3 to 1 s on two cores.
namespace savina {
inline constexpr std::uint64_t pings = 1'000'000;            // ping-pong: and as many pongs
inline constexpr std::uint64_t ring_hops = 2'000'000;        // thread-ring, of ring_size
inline constexpr std::uint64_t increments = 4'000'000;       // counting
inline constexpr std::uint64_t forked_actors = 200'000;      // fork-join-create: a message for each
inline constexpr std::uint64_t fork_join_actors = 60;        // fork-join-throughput
inline constexpr std::uint64_t fork_join_messages = 30'000;  // ... to each, in turn
inline constexpr std::uint64_t chameneos = 100;
inline constexpr std::uint64_t meetings = 300'000;
inline constexpr std::uint64_t big_actors = 120;
inline constexpr std::uint64_t big_pings = 8'000;  // from each
inline constexpr std::uint64_t accounts = 1'000;   // bank-transaction
inline constexpr std::uint64_t transactions = 100'000;
inline constexpr std::uint64_t first_balance = 1'000'000'000;  // never spent
}  // namespace savina

// A smoke run does a hundredth of a fixed amount of work.
struct scale {
  std::uint64_t divisor = 1;
  std::uint64_t of(std::uint64_t full) const { return full / divisor; }
};

// A measure of work whose amount is fixed.
template <class Run>
measure work_per_second(Run run) {
  return [run](const settings& s) {
    const tally done = run(scale{s.quick ? 100u : 1u});
    return static_cast<double>(done.operations) / done.took.count();
  };
}

// Must outlive the actors that refer to it.
class finish_line {
 public:
  void arrive(std::uint64_t result) { result_.set_value(result); }
  std::uint64_t wait() { return result_.get_future().get(); }

 private:
  std::promise<std::uint64_t> result_;
};

// Counts ended actors; the last one arrives at the finish line.
class head_count {
 public:
  head_count(std::uint64_t expected, finish_line& done) : expected_(expected), done_(done) {}
  void one_more() {
    const std::uint64_t so_far = count_.fetch_add(1) + 1;
    if (so_far == expected_) done_.arrive(so_far);
  }

 private:
  const std::uint64_t expected_;
  finish_line& done_;
  std::atomic<std::uint64_t> count_ = 0;
};

// Calls `start` and waits at the finish line for the expected number.
template <class Start>
tally run_to_the_end(std::uint64_t operations, std::uint64_t expected, finish_line& done,
                     Start&& start) {
  const auto started = std::chrono::steady_clock::now();
  std::forward<Start>(start)();
  const std::uint64_t result = done.wait();
  const seconds took = std::chrono::steady_clock::now() - started;
  expect_equal(result, expected, "result of the actors");
  return {operations, took};
}

// The same for actors that check the clock and report the number of operations.
template <class Start>
tally run_for(seconds duration, run_clock& clock, finish_line& done, Start&& start) {
  const auto started = std::chrono::steady_clock::now();
  std::forward<Start>(start)();
  std::this_thread::sleep_for(duration);
  clock.end();
  const std::uint64_t operations = done.wait();
  return {operations, std::chrono::steady_clock::now() - started};
}

// The sum of 1, 2, ... n.
constexpr std::uint64_t sum_up_to(std::uint64_t n) {
  return n * (n + 1) / 2;
}

namespace savina {

// The computation for a message of the two fork-join workloads.
double compute();

enum class colour : std::uint8_t { red, yellow, blue };

// Returns the new colour of two meeting creatures: the third colour, or their common one.
constexpr colour complement(colour a, colour b) {
  return a == b ? a : static_cast<colour>(3 - static_cast<int>(a) - static_cast<int>(b));
}

constexpr colour colour_of(std::uint64_t index) {
  return static_cast<colour>(index % 3);
}

// Chooses the actor that an actor of `big` pings next; the choices are the same in every run.
class partner_picker {
 public:
  partner_picker(std::uint64_t own_index, std::uint64_t actors)
      : random_(static_cast<std::minstd_rand::result_type>(own_index + 1)), actors_(actors) {}
  std::uint64_t next() { return random_() % actors_; }

 private:
  std::minstd_rand random_;
  std::uint64_t actors_;
};

// A transfer goes to an account with a higher index, so that waits never form a cycle.
struct transfer {
  std::uint64_t payer;
  std::uint64_t payee;
  std::uint64_t amount;
};

class transfer_picker {
 public:
  transfer next();

 private:
  std::minstd_rand random_{7};
};

}  // namespace savina

}  // namespace sluice::bench
