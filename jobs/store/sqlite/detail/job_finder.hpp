#pragma once

// Reads jobs through a connection. Shared by a store and its readers.

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/damage_report.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class job_finder {
 public:
  explicit job_finder(std::shared_ptr<damage_report> damage) : damage_(std::move(damage)) {}

  [[nodiscard]] bool prepare(connection& on);

  // Returns the damaged_view of a damaged job.
  result<std::optional<job>> get(job_id id);
  // Returns a job as stored, with job::is_damaged set if it is damaged. None: no such job, or its
  // control columns are damaged.
  result<std::optional<job>> get_as_stored(job_id id);
  // Reads the job of the current row of `from`. None: the job is damaged, and was reported.
  result<std::optional<job>> read_sound(const statement& from);
  // A page is one snapshot. It reads at most 1000 rows plus ten per requested job, and ends when
  // its jobs have 4 MiB.
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit);

  // store::timed_after. A page is a snapshot only on the connection of the writer.
  result<timed_page> timed_after(queue_number queue, due_place after, std::size_t limit);

  queue_names& names() noexcept { return names_; }

 private:
  result<job_page> list_in_transaction(const job_filter& filter, job_id after, std::size_t limit);

  result<job> read(const statement& from, soundness& as);

  const std::shared_ptr<damage_report> damage_;
  connection* on_ = nullptr;
  statement get_, scan_, scan_state_, scan_batch_, scan_due_;
  queue_names names_;
};

}  // namespace sluice::jobs::detail
