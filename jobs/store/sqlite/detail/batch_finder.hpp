#pragma once

// Looks up batches and the logs of jobs on a connection: what a store and its readers share.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class batch_finder {
 public:
  [[nodiscard]] bool prepare(connection& on);

  result<std::optional<batch_info>> get(job_id id);
  result<batch_page> list(job_id after, std::size_t limit);
  // A page ends once 4 MiB of lines are there.
  result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit);

 private:
  connection* on_ = nullptr;
  statement get_, list_, logs_;
};

}  // namespace sluice::jobs::detail
