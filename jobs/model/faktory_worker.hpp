#pragma once

// Workers of Faktory's protocol: the report of a worker about itself, and its state on the server.
// Plain values, for calls that list workers or stop them.
//
// Workers that lease jobs over HTTP or in C++ are not listed: they do not register.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/time.hpp"

namespace sluice::jobs {

// The later of the worker's own state and the state requested by the server.
enum class worker_state : std::uint8_t {
  running,
  quiet,      // fetches no jobs, and finishes its running jobs
  terminate,  // finishes its running jobs, then ends
};
std::string_view to_string(worker_state state) noexcept;
std::optional<worker_state> worker_state_from(std::string_view word) noexcept;

struct faktory_worker {
  std::string wid{};  // its name
  std::string hostname{};
  std::int64_t pid = 0;
  std::vector<std::string> labels{};
  worker_state state = worker_state::running;
  std::uint64_t rss_kb = 0;   // memory, from its last beat; zero: not reported
  unix_time since{};          // its first connection
  unix_time last_beat{};      // equal to `since` before the first beat
  std::uint64_t running = 0;  // fetched jobs that have not ended
};

struct faktory_worker_page {
  std::vector<faktory_worker> workers{};  // by wid
  std::optional<std::string> cursor{};    // the last wid of the page; none: this is the last page
};

}  // namespace sluice::jobs
