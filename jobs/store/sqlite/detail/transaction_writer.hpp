#pragma once

// Writes the changes of one transaction into the tables, within an SQL transaction of the caller.
//
// The hot path is the add and the drop of a job without relations (lone_rows.hpp): no allocation, a
// share of a prepared statement; jobs with a key or a batch have a similar path (gated_rows.hpp).
// Other changes of waiting jobs use the rules of gates.hpp. The counts of a queue are written once,
// independent of the number of its changed jobs.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/count_deltas.hpp"
#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/damaged_rows.hpp"
#include "jobs/store/sqlite/detail/gate_tables.hpp"
#include "jobs/store/sqlite/detail/gated_rows.hpp"
#include "jobs/store/sqlite/detail/lone_rows.hpp"
#include "jobs/store/sqlite/detail/settings_rows.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

// In the order of save_lease.
inline constexpr const char* lease_columns =
    "job, queue, key, worker, until, began, lasts, progress, progress_text, cancelled, job_key";
inline constexpr int lease_columns_count = 11;

class transaction_writer {
 public:
  // `lines_max`: see gate_tables.
  transaction_writer(std::size_t lines_max, std::shared_ptr<damage_report> damage)
      : damage_(damage), tables_(deltas_, lines_max, std::move(damage)) {}

  [[nodiscard]] bool prepare(connection& on);

  // Returns false on failure; `own_error` has the error, or else the connection.
  [[nodiscard]] bool write(const transaction& t, applied& outcome);
  // Changes one row, with a new value each time.
  [[nodiscard]] bool mark() { return mark_.run(); }
  std::optional<error> own_error();
  // Must be called after the SQL transaction ended; `undone` discards cached data of it.
  void committed() { tables_.committed(); }
  void undone() noexcept;

 private:
  // Writes the change or group at `at`; returns its end, or zero on failure.
  std::size_t write_next(const transaction& t, std::size_t at, std::vector<conflict>& conflicts);
  bool flush() { return lone_.flush() && gated_.flush(); }
  bool add_group(const transaction& t, std::size_t first, std::size_t end,
                 std::vector<conflict>& conflicts);
  // Returns none if the row could not be read.
  std::optional<job_id> find_holder(const change& c, unix_time now);
  bool add(std::size_t cause, const change& c);
  bool insert(const job& j, queue_number queue);
  bool take_key(const change& c);
  bool move(std::size_t cause, const change& c);
  bool write_move(const change& c, job_state new_state, unix_time due_at, bool has_place);
  bool add_error(const change& c, std::string& errors);
  bool drop(std::size_t cause, const change& c);
  bool drop_damaged(std::size_t cause, job_id id);
  bool free_key(const change& c);
  bool save_lease(const change& c);
  bool find_from(const change& c, bool& is_there);
  bool write_one(std::size_t cause, const change& c);
  // Finds the job of a change as stored, if the rules of gates.hpp apply to it; else null.
  bool find_stored(const change& c, const job*& was);
  bool forget_expired_keys(const transaction& t);
  bool write_counts();
  bool missing(const char* done_to, job_id id);

  const std::shared_ptr<damage_report> damage_;
  connection* on_ = nullptr;
  count_deltas deltas_;
  gate_tables tables_;
  gates gates_{tables_};
  lone_rows lone_;
  gated_rows gated_{gates_, deltas_};
  settings_rows settings_;
  damaged_rows damaged_;
  statement add_, move_, drop_, read_errors_;
  statement find_key_, take_key_, free_key_, expired_keys_, drop_key_, next_expired_;
  statement count_, save_lease_, drop_leases_, ids_up_to_, mark_;
  job stored_;  // the result of find_stored, if it differs from the job of the change
  job_state from_ = job_state::ready;  // the state before the current change
  bool has_dropped_damaged_ = false;   // in this transaction
  bool must_recount_ = false;          // recount the queues from the rows of the jobs
  std::optional<error> own_error_;
  // The expiry of the first key, if any; the default, in the past: unknown, to be read.
  std::optional<unix_time> next_expiry_ = unix_time{};
};

}  // namespace sluice::jobs::detail
