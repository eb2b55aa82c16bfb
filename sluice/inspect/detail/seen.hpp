#pragma once

// Copies of the registry's records, taken at the time of inspection.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/call_site.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/sync/detail/wait_report.hpp"

namespace sluice::inspect::detail {

// A wait.
struct seen_wait {
  std::uint64_t number = 0;
  wait_report::party by{};
  time_point since{};
  bool has_deadline = false;
  bool can_be_stopped = false;
  bool is_served = false;  // the wait has ended, but its thread or coroutine has not run yet
  call_site at{};
  std::vector<wait_report::subject> on{};          // any of them ends the wait
  std::vector<wait_report::party> also_blocked{};  // other parties that are blocked until it ends
};

struct seen_hold {
  const void* object = nullptr;
  std::uint64_t number = 0;
  const char* type = "";
  wait_report::held_as mode = wait_report::held_as::alone;
  wait_report::party by{};
  std::int64_t count = 0;
  time_point since{};
  call_site at{};
  bool awaited = false;   // acquired by a coroutine, possibly in an actor's handler
  bool is_guess = false;  // a party of unknown identity released: it may have been this holder
};

// A thread of an executor with a fixed set of threads.
struct seen_crew {
  const void* object = nullptr;  // the executor
  wait_report::party by{};
  std::int64_t count = 0;  // of all threads of the executor
};

// The parties that were seen at the two ends of a queue or channel.
struct seen_uses {
  static constexpr std::size_t parties_max = 12;

  const void* object = nullptr;
  std::array<std::array<wait_report::party, parties_max>, 2> parties{};  // by wait_report::side
  std::array<bool, 2> more{};                                            // more parties than fit
};

struct seen_contention {
  const void* object = nullptr;  // for an actor, the key of its party
  wait_report::party actor{};
  const char* type = "";
  std::uint16_t life = 0;  // distinguishes it from earlier entries at its place
  std::uint64_t waits = 0;
  std::uint64_t futile_wakes = 0;  // woken, but another party was faster
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds longest{0};
  std::uint32_t waiting = 0;  // current waits
  std::uint32_t waiting_max = 0;
};

}  // namespace sluice::inspect::detail
