#pragma once

// Finds interleavings in which a concurrent program fails: runs it repeatedly, one thread at a
// time, each time with another schedule, and shows the schedule that failed.
//
// Use it for anything that several threads share: code on Sluice's types or on the standard ones.
// Prefer the thread sanitizer for large programs and real input: it sees only the interleavings
// that occur in its runs.
//
// The program is the same source, built with the target sluice::sim in place of sluice::sluice. In
// that build std::jthread, std::mutex and std::condition_variable, sluice's own types and time are
// simulated: threads run on fibers, sleeping takes no real time, and every access of a
// sluice::atomic, every lock, wake and thread start is a point at which another thread may run.
// Loads return any value that the declared memory order allows, so a missing acquire or release is
// found on every processor. Plain data is checked if it is race_checked (base/race_checked.hpp).
//
// Guarantees: the same seed and options produce the same schedules; a failure has a trace that
// replays it. `exhaustive` visits every schedule with at most `preemptions` switches away from a
// thread that could have continued, and reports whether it visited all. An early time-out counts as
// such a switch. Only the random searches let a weak compare-exchange fail spuriously. The body
// runs once per schedule: it constructs its objects, starts threads, joins them, and checks.
// Statics keep their state between schedules. At most 32 threads at a time.
// Limits: std::atomic is not a switch point (use sluice::atomic); a loop that waits for one fails
// after `spin_max`, with its line. Files and sockets are real. A use after free is detected for
// atomics, race_checked<T>, links of lists and pointers read from freed memory; malloc is not
// tracked. Linux on x86-64 only.
// Cost: some microseconds per schedule.
//
//     auto found = sim::explore({.schedules = 10'000}, [] {
//       sluice::bounded_queue<int> q(1);
//       std::jthread maker([&] { (void)q.push(1); });
//       sim::check(q.pop().value() == 1, "the pushed item");
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
  pct,         // random priorities that change at a few random steps. The first schedule measures;
               // half of the others use no other randomness, and each of those finds a bug of depth
               // d among n threads with a probability of at least 1 / (n * k^(d-1)), where k is the
               // number of steps of the longest schedule so far
  mixed,       // random and pct alternately
  exhaustive,  // all schedules within the preemption bound; skips equivalent ones where safe
  replay,      // one schedule, from a trace
};

enum class memory_order_model : std::uint8_t {
  weak,    // loads may be stale where the declared order allows it
  strong,  // loads return the newest value; races of plain data are still found
};

enum class failure_kind : std::uint8_t {
  check,         // sim::check was false, or a contract of the library was broken
  race,          // unsynchronized accesses to plain data
  deadlock,      // all threads wait and none will be woken; also a lost wake-up
  livelock,      // no end, although every thread ran
  endless_loop,  // a thread computes without a step of the explorer
  exception,     // an exception left a thread
  leak,
  use_after_free,
  crash,  // a bad address, abort
};
const char* to_string(failure_kind kind) noexcept;

struct options {
  std::string name{};
  sim::search search = sim::search::mixed;
  // Maximum. 0: no limit; then the search ends by itself (exhaustive) or by time_max.
  std::uint64_t schedules = 1'000;
  std::uint64_t seed = 1;
  unsigned depth = 3;        // for pct
  unsigned preemptions = 2;  // for exhaustive
  unsigned stale_reads = 1;  // for exhaustive: the loads per schedule that may return an old value
  memory_order_model memory = memory_order_model::weak;
  std::uint32_t steps_max = 20'000;  // more are a livelock; the second half is scheduled fairly
  bool early_timeouts = true;        // a deadline may pass although threads could run
  bool leaks = true;
  std::string trace{};                    // for replay
  std::chrono::milliseconds time_max{0};  // 0: none; at least one schedule is run
  // The processor time that a thread may compute without a step, for example in a loop over a
  // std::atomic; more is an endless loop. 0: no limit.
  std::chrono::milliseconds spin_max{2'000};
  // The real time spent on minimizing a failed schedule; 0: shows it as found.
  std::chrono::milliseconds minimize_max{20'000};
  // Called after each schedule (used by GoogleTest's macro). Returns a further failure of that
  // schedule, or "". The first line identifies the failed check.
  std::function<std::string()> also_failed{};
};

struct result {
  std::uint64_t schedules = 0;  // schedules run
  bool complete = false;        // exhaustive: all schedules were run
  std::uint64_t steps = 0;      // of all schedules
  std::uint32_t steps_longest = 0;

  bool failed() const noexcept { return found; }
  bool found = false;
  failure_kind kind{};
  std::string message{};
  std::uint64_t schedule = 0;  // the number of the failed schedule, from 1
  std::string trace{};         // of the smallest schedule that fails in the same way
  std::string steps_text{};    // its steps, one column per thread
  // Returns all of this as readable text.
  std::string text() const;
  std::string name{};
  std::uint64_t seed = 0;
};

result explore(const options& o, const std::function<void()>& body);

// If `holds` is false, ends the schedule as failed; outside of explore(), aborts.
void check(bool holds, const char* expected,
           std::source_location where = std::source_location::current());

// Returns true on a thread of an explored program.
bool exploring() noexcept;

// Prefers the other threads at this point. Call it in a spin loop.
void yield() noexcept;

}  // namespace sluice::sim
