#pragma once

// Deletes jobs whose control columns are damaged.
//
// The queue, state, line and batch of such a row may be wrong. So the counts that include the job
// are recounted from the rows of the other jobs: those of its line and its batch at once, those of
// the queues at the end of the transaction.
//
// Requires a transaction of the caller. A function returns false on failure; the connection has the
// error.
// Cost: count_jobs reads every job.

#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/gate_tables.hpp"

namespace sluice::jobs::detail {

class damaged_rows {
 public:
  [[nodiscard]] bool prepare(connection& on);

  // Deletes the job with its unique key, its logs and its dependencies.
  [[nodiscard]] bool forget(job_id id, gate_tables& tables, gates::remains& left);
  // Recounts and writes the counts of all queues.
  [[nodiscard]] bool count_jobs();

 private:
  bool count_line(line_number line, line_counts& now);

  connection* on_ = nullptr;
  statement read_, drop_, free_keys_, count_line_, count_pending_, count_;
};

}  // namespace sluice::jobs::detail
