#pragma once

// What the registry knows of a wait, a hold, a use, as it was when it was looked at.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/call_site.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::inspect::detail {

// A wait as it was when it was looked at.
struct seen_wait {
  std::uint64_t number = 0;
  watch::party by{};
  time_point since{};
  bool has_deadline = false;
  bool can_be_stopped = false;
  bool is_served = false;  // it waits no more: it only has not run yet
  call_site at{};
  std::vector<watch::subject> on{};      // any one of them ends it
  std::vector<watch::party> holds_up{};  // who cannot go on either before it ends
};

struct seen_hold {
  const void* object = nullptr;
  std::uint64_t number = 0;
  const char* type = "";
  watch::held_as how = watch::held_as::alone;
  watch::party by{};
  std::int64_t count = 0;
  time_point since{};
  call_site at{};
  bool awaited = false;   // by a coroutine, be it of an actor's handler
  bool is_guess = false;  // somebody gave back, and it may have been this one
};

// A thread of an executor that has always the same ones.
struct seen_crew {
  const void* object = nullptr;  // the executor
  watch::party by{};
  std::int64_t count = 0;  // how many there are in all
};

// Who was seen at the two ends of a queue or channel.
struct seen_uses {
  static constexpr std::size_t parties_max = 12;

  const void* object = nullptr;
  std::array<std::array<watch::party, parties_max>, 2> parties{};  // by watch::side
  std::array<bool, 2> more{};                                      // there were others
};

struct seen_contention {
  const void* object = nullptr;  // of an actor: the key of its party
  watch::party actor{};
  const char* type = "";
  std::uint16_t life = 0;  // tells it from others that were in its place
  std::uint64_t waits = 0;
  std::uint64_t in_vain = 0;  // woken, and somebody else had been faster
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds longest{0};
  std::uint32_t waiting = 0;  // right now
  std::uint32_t waiting_most = 0;
};

}  // namespace sluice::inspect::detail
