#pragma once

// Who works over Faktory's protocol: what a worker has said of itself, and what the server knows of
// it. Plain values, for those who look at workers and for those who tell them to end.
//
// Workers that lease jobs over HTTP or in C++ are not among these: they do not say who they are.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/time.hpp"

namespace sluice::jobs {

// What a worker does, or was told to do: whichever is further on the way to its end.
enum class worker_state : std::uint8_t {
  running,
  quiet,      // takes no more jobs, and finishes those that it has
  terminate,  // ... and then ends
};
std::string_view to_string(worker_state state) noexcept;
std::optional<worker_state> worker_state_from(std::string_view word) noexcept;

struct faktory_worker {
  std::string wid{};  // its name
  std::string hostname{};
  std::int64_t pid = 0;
  std::vector<std::string> labels{};
  worker_state state = worker_state::running;
  std::uint64_t rss_kb = 0;   // memory, as of its last beat; zero: it did not say
  unix_time since{};          // its first connection
  unix_time last_beat{};      // ... or since, if there was none
  std::uint64_t running = 0;  // jobs that it has fetched and not ended
};

struct faktory_worker_page {
  std::vector<faktory_worker> workers{};  // by wid
  std::optional<std::string> cursor{};    // the last of them; none: there are no more
};

}  // namespace sluice::jobs
