#pragma once

// The rows for gates.hpp in the tables of a store's file: lines, edges, batches, and the columns of
// waiting jobs.
//
// A line is in memory (line_book.hpp) if there was space when it was created, else in the table
// `lines`, never in both.
//
// Requires a transaction of the caller, and after it a call of `committed` or `undone`. Not
// thread-safe. A function returns false on failure; `own_error` has the error, or else the
// connection.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/store/count_deltas.hpp"
#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/damage_report.hpp"
#include "jobs/store/sqlite/detail/id_marks.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"
#include "jobs/store/sqlite/detail/line_book.hpp"

namespace sluice::jobs::detail {

class gate_tables final : public gate_rows {
 public:
  // `lines_max`: the number of lines kept in memory.
  gate_tables(count_deltas& counts, std::size_t lines_max, std::shared_ptr<damage_report> damage)
      : counts_(counts), lines_(lines_max), damage_(std::move(damage)) {}

  [[nodiscard]] bool prepare(connection& on);
  void committed();
  void undone();
  std::optional<error> own_error() { return std::exchange(own_error_, std::nullopt); }

  void set_queue(queue_number queue, const queue_options& options);
  // False: the job has no logs and no job waits for it. True: possibly.
  bool may_be_noted(job_id id) const noexcept { return marks_.may_have(id); }
  // Removes an active job from a line without waiting jobs. False: use leave_line.
  bool leave_at_once(line_number line);
  // The fields of a job that the store may have changed since the engine last read it.
  struct waiting {
    std::uint32_t blockers = 0;
    bool has_place = false;
  };
  [[nodiscard]] bool read_waiting(job_id id, waiting& found);
  // Delete the dependencies of a job; delete its logs.
  [[nodiscard]] bool drop_edges_of(job_id id);
  [[nodiscard]] bool drop_logs_of(job_id id);
  [[nodiscard]] bool add_logs(job_id id, const std::vector<log_line>& lines);

  bool enter_line(line_number line, std::uint32_t slots, bool& is_active) override;
  bool leave_line(line_number line, bool was_active, line_counts& left) override;
  bool move_up(line_number line) override;
  bool first_in_line(line_number line, placed_job& first) override;
  bool correct_line(line_number line, line_counts now) override;
  std::uint32_t slots_of(queue_number queue) override;
  bool may_be_waited_for(job_id on) override { return marks_.may_have(on); }
  bool edges_on(job_id on, std::vector<edge>& all) override;
  bool add_edge(job_id on, edge e) override;
  bool drop_edge(job_id on, edge e) override;
  bool state_of(job_id id, std::optional<job_state>& state) override;
  bool read_job(job_id id, placed_job& found) override;
  bool place(const placed_job& changed, job_state from) override;
  bool forget(const placed_job& gone) override;
  bool read_batch(job_id id, std::optional<batch_info>& found, bool& is_damaged) override;
  bool write_batch(const batch_info& b) override;
  bool forget_batch(job_id id) override;

 private:
  bool prepare_lines(connection& on);
  bool prepare_rows(connection& on);
  bool load_queues(connection& on);
  bool load_marks(connection& on);
  bool load_lines(connection& on);
  bool load_lines(connection& on, const char* sql, line_counts each);
  bool changed_one() const noexcept { return sqlite3_changes(on_->handle()) == 1; }

  connection* on_ = nullptr;
  count_deltas& counts_;
  statement make_line_, enter_, wait_, leave_active_, leave_waiting_, read_line_, drop_line_;
  statement move_up_, first_, correct_line_, take_out_of_line_;
  statement edges_on_, add_edge_, drop_edge_, edges_of_, drop_edges_of_;
  statement state_of_, read_job_, read_waiting_, place_, forget_, free_key_;
  statement read_batch_, write_batch_, forget_batch_;
  statement last_log_, add_log_, drop_logs_;
  queue_names names_;
  id_marks marks_;                                         // dependencies, and jobs with logs
  line_book lines_;                                        // the lines in memory
  id_marks stored_lines_;                                  // the lines in the table
  std::unordered_map<queue_number, std::uint32_t> slots_;  // as committed
  std::unordered_map<queue_number, std::uint32_t> new_slots_;
  const std::shared_ptr<damage_report> damage_;
  std::optional<error> own_error_;
};

// Reads a batch from a row of batch_columns.
inline constexpr const char* batch_columns =
    "id, name, open, total, pending, failed, created_at, ended_at, due_at, keep_done, keep_failed";
inline constexpr int batch_columns_count = 11;
batch_info read_batch_row(const statement& from);
inline constexpr const char* log_columns = "job, number, attempt, at, text";

}  // namespace sluice::jobs::detail
