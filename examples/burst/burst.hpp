#pragma once

// The demonstration itself: one burst of tasks through one bounded queue, with counts.
//
// A producer makes `tasks` tasks within `arrival`, at an even pace. The queue holds at most
// `capacity` of them and applies its overflow policy to the rest. Workers take tasks, and each task
// is a short wait that uses no CPU, like a call to another machine. When all tasks are done, the
// workers stay idle for a while, to show the cost of idle workers.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "examples/burst/settings.hpp"
#include "sluice/base/overflow.hpp"

namespace burst {

using nanoseconds = std::chrono::nanoseconds;

enum class phase { burst, drain, idle };

// The state of a run, for display.
struct moment {
  burst::phase phase = phase::burst;
  nanoseconds since_start{};
  std::uint64_t arrived = 0;
  std::uint64_t done = 0;
  std::uint64_t rejected = 0;
  std::uint64_t dropped = 0;
  std::size_t depth = 0;
  nanoseconds cpu{};       // used since the start, without the watching thread
  nanoseconds idle_for{};  // in phase idle
  nanoseconds idle_cpu{};  // used since all tasks were done
};

// The result of a run.
struct report {
  sluice::overflow policy{};
  bool interrupted = false;
  std::uint64_t arrived = 0;   // as the producer counted
  std::uint64_t done = 0;      // as the workers counted
  std::uint64_t rejected = 0;  // `full` results of the producer
  std::uint64_t dropped = 0;   // calls of the drop callback
  std::size_t deepest = 0;
  nanoseconds drained_after{};  // from the first arrival to the end of the last task
  nanoseconds longest_wait{};   // of the producer, in one push
  nanoseconds cpu{};
  nanoseconds idle_for{};
  nanoseconds idle_cpu{};
  std::string queue_disagrees{};  // empty if the queue's own counters agree
};

// Called often, on the thread that called `run`.
using watcher = std::function<void(const moment&)>;

report run(const settings& s, sluice::overflow policy, std::stop_token stop, const watcher& watch);

// Empty if all tasks arrived and each was done, rejected or dropped; else the mismatch.
std::string find_error(const report& r, std::uint64_t tasks);

}  // namespace burst
