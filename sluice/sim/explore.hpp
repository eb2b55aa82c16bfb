#pragma once

// Finds the interleaving that breaks a concurrent program: runs it again and again, one thread at a
// time, with another schedule each time, and shows the schedule in which it failed.
//
// Use it for anything that several threads share: your own code on Sluice's types, or on the
// standard ones. Prefer the thread sanitizer for large programs and real input: it sees only the
// interleavings that happen to happen.
//
// The program is the same source, built with the target sluice::sim in place of sluice::sluice.
// In that build std::jthread, std::mutex and std::condition_variable, sluice's own types and time
// belong to the explorer: threads run on fibers, sleeping takes no time, and every access of a
// sluice::atomic, every lock, wake and thread start is a point at which another thread may run.
// Loads give what the declared memory order allows, so a missing acquire or release is found also
// on a processor that would forgive it. Plain data is checked when it is marked (base/shared.hpp).
//
// Guarantees: the same seed and options give the same schedules; a failure carries a trace that
// replays it. `exhaustive` visits every schedule with at most `preemptions` switches away from a
// thread that could have gone on, and says whether it came to the end. A time-out that comes
// although threads could run counts as such a switch; a weak compare-exchange that fails for no
// reason is not tried by it, only by the random searches. The body runs once per schedule: it makes
// what it needs anew, starts threads, joins them, and checks. Statics keep their state from one
// schedule to the next. At most 32 threads at a time. Limits: std::atomic is no point for a switch
// (use sluice::atomic), and a loop that waits for one fails after `spin_max`, with its line; files
// and sockets are real. A use after free is seen of atomics, of
// shared<T>, of links of lists and through a pointer that was itself freed; malloc is not followed.
// Linux on x86-64 only. Cost: some microseconds a schedule.
//
//     auto found = sim::explore({.schedules = 10'000}, [] {
//       sluice::bounded_queue<int> q(1);
//       std::jthread maker([&] { (void)q.push(1); });
//       sim::check(q.pop().value() == 1, "what was pushed comes out");
//     });
//     if (found.failed()) std::puts(found.text().c_str());

#include <chrono>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

namespace sluice::sim {

enum class search : std::uint8_t {
  random,      // switches at random
  pct,         // random priorities that change at few random points. The first schedule measures;
               // of the others half have no chance in them but this one, and each of those finds a
               // bug of depth d among n threads with a probability of at least 1 / (n * k^(d-1)),
               // k the steps of the longest schedule so far
  mixed,       // random and pct in turn
  exhaustive,  // all, with a bound on preemptions; equal ones once, where that is safe
  replay,      // one, from a trace
};

enum class memory_order_model : std::uint8_t {
  weak,    // loads may be stale where the declared order allows it
  strong,  // loads give the newest; races of plain data are still found
};

enum class failure_kind : std::uint8_t {
  check,         // sim::check was false, or a contract of the library was broken
  race,          // plain data, unguarded
  deadlock,      // all wait, and nothing will wake them: also a lost wake-up
  livelock,      // no end, though every thread had its turn
  endless_loop,  // a thread computes on and on without a step
  exception,     // left a thread
  leak,
  use_after_free,
  crash,  // a bad address, abort
};
const char* to_string(failure_kind kind) noexcept;

struct options {
  std::string name{};
  search how = search::mixed;
  // At most so many. 0: no limit; then the search must end by itself (exhaustive), or by time_max.
  std::uint64_t schedules = 1'000;
  std::uint64_t seed = 1;
  unsigned depth = 3;        // of pct
  unsigned preemptions = 2;  // of exhaustive
  unsigned stale_reads = 1;  // of exhaustive: how many loads of a schedule give an older value
  memory_order_model memory = memory_order_model::weak;
  std::uint32_t steps_max = 20'000;  // then it is a livelock; the second half is scheduled fairly
  bool early_timeouts = true;        // time may pass although threads could run
  bool leaks = true;
  std::string trace{};                    // of replay
  std::chrono::milliseconds time_max{0};  // 0: none; one schedule is run in any case
  // Processor time that a thread may compute without a step, as a loop over a std::atomic does:
  // then it is an endless loop. 0: no limit.
  std::chrono::milliseconds spin_max{2'000};
  // How long a schedule that failed is made shorter, in real time; 0: it is shown as it is.
  std::chrono::milliseconds minimize_max{20'000};
  // Asked after each schedule, as by GoogleTest's macro: what else failed in it, in its first line
  // which check that was; empty: nothing. Each answer is about one schedule.
  std::function<std::string()> also_failed{};
};

struct result {
  std::uint64_t schedules = 0;  // that were run
  bool complete = false;        // exhaustive: there are no more
  std::uint64_t steps = 0;      // of all of them
  std::uint32_t steps_longest = 0;

  bool failed() const noexcept { return found; }
  bool found = false;
  failure_kind kind{};
  std::string message{};
  std::uint64_t schedule = 0;  // which one failed, from 1
  std::string trace{};         // of the smallest schedule that fails the same way
  std::string steps_text{};    // its steps, a column a thread
  // All of this, for people.
  std::string text() const;
  std::string name{};
  std::uint64_t seed = 0;
};

result explore(const options& how, const std::function<void()>& body);

// Ends the schedule as failed when it does not hold. Outside of explore() it aborts.
void check(bool holds, const char* what,
           std::source_location where = std::source_location::current());

// True on a thread that is explored.
bool exploring() noexcept;

// Gives the turn away, as a spin loop does that waits for somebody else.
void yield() noexcept;

}  // namespace sluice::sim
