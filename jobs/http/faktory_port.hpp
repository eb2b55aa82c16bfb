#pragma once

// What the HTTP server asks of the one that speaks Faktory's protocol: it shows its workers and
// tells them to end, and knows nothing else of it.
//
// Both are called on the server's threads, until its `stop`, and must be short.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "jobs/model/faktory_worker.hpp"

namespace sluice::jobs {

struct faktory_port {
  // Workers behind this wid, so many at most.
  std::function<faktory_worker_page(const std::string& after, std::size_t limit)> list;
  // Tells one to be quiet or to end, and gives what is known of it then. None: there is none.
  std::function<std::optional<faktory_worker>(const std::string& wid, worker_state what)> tell;
};

}  // namespace sluice::jobs
