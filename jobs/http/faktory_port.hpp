#pragma once

// The HTTP server's view of the Faktory server: lists its workers and changes their states.
//
// Both functions are called on the HTTP server's threads, until its `stop`, and must return
// quickly.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "jobs/model/faktory_worker.hpp"

namespace sluice::jobs {

struct faktory_port {
  // Returns at most `limit` workers, in the order of their wids, from the first behind `after`.
  std::function<faktory_worker_page(const std::string& after, std::size_t limit)> list;
  // Makes a worker quiet or terminates it; returns its record. None: no such worker.
  std::function<std::optional<faktory_worker>(const std::string& wid, worker_state)> set_state;
};

}  // namespace sluice::jobs
