#pragma once

// Reads batches and the logs of jobs through a connection. Shared by a store and its readers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/damage_report.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class batch_finder {
 public:
  explicit batch_finder(std::shared_ptr<damage_report> damage) : damage_(std::move(damage)) {}

  [[nodiscard]] bool prepare(connection& on);

  // Fails with `corrupt` and error::job if the batch is damaged.
  result<std::optional<batch_info>> get(job_id id);
  // Skips and reports damaged batches.
  result<batch_page> list(job_id after, std::size_t limit);
  // A page ends when its lines have 4 MiB. The text of a damaged line is replaced by a notice.
  result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit);

 private:
  const std::shared_ptr<damage_report> damage_;
  connection* on_ = nullptr;
  statement get_, list_, logs_;
};

}  // namespace sluice::jobs::detail
