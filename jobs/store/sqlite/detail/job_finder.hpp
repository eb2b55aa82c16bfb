#pragma once

// Looks up jobs on a connection: what a store and its readers share.

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

  // A damaged job as it is shown.
  result<std::optional<job>> get(job_id id);
  // As it is stored, job::is_damaged if it is damaged. None: there is no such job, or nothing of
  // its row can be relied on.
  result<std::optional<job>> get_as_stored(job_id id);
  // The job of the row that `from` stands at. None: it is damaged, and reported.
  result<std::optional<job>> read_sound(const statement& from);
  // One page is one snapshot. It reads no more than 1000 rows and ten for each job wanted, and ends
  // once 4 MiB of jobs are there.
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit);

  // store::timed_after. Not one snapshot, but for the one who writes.
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
