#pragma once

// Writes the changes of one batch into the tables, inside a transaction that somebody else begins
// and ends.
//
// The hot path is an add and a drop of a job that stands alone (lone_rows.hpp): no allocation, a
// share of a prepared statement; jobs with a key or a batch have one too (gated_rows.hpp). What
// else waits for other jobs goes through the rules of gates.hpp. The counts of a queue are written
// once, whatever number of its jobs changed.

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

// In the order in which save_lease binds them.
inline constexpr const char* lease_columns =
    "job, queue, key, worker, until, began, lasts, progress, progress_text, cancelled, job_key";
inline constexpr int lease_columns_count = 11;

class batch_writer {
 public:
  // `lines_max`: as of gate_tables.
  batch_writer(std::size_t lines_max, std::shared_ptr<damage_report> damage)
      : damage_(damage), tables_(deltas_, lines_max, std::move(damage)) {}

  [[nodiscard]] bool prepare(connection& on);

  // False: it failed. `own_error` says why, or else the connection does.
  [[nodiscard]] bool write(const batch& b, applied& did);
  // One row that always changes.
  [[nodiscard]] bool mark() { return mark_.run(); }
  std::optional<error> own_error();
  // How the transaction ended. Undone: nothing that was seen in it holds.
  void committed() { tables_.committed(); }
  void undone() noexcept;

 private:
  // Where the change that was written ends, or zero: it failed.
  std::size_t write_next(const batch& b, std::size_t at, std::vector<conflict>& conflicts);
  bool flush() { return lone_.flush() && gated_.flush(); }
  bool add_group(const batch& b, std::size_t first, std::size_t end,
                 std::vector<conflict>& conflicts);
  // None: it could not be read.
  std::optional<job_id> find_holder(const change& c, unix_time now);
  bool add(std::size_t cause, const change& c);
  bool insert(const job& j, queue_number queue);
  bool take_key(const change& c);
  bool move(std::size_t cause, const change& c);
  bool write_move(const change& c, job_state to, unix_time due_at, bool has_place);
  bool add_error(const change& c, std::string& errors);
  bool drop(std::size_t cause, const change& c);
  bool drop_damaged(std::size_t cause, job_id id);
  bool free_key(const change& c);
  bool save_lease(const change& c);
  bool find_from(const change& c, bool& is_there);
  bool write_one(std::size_t cause, const change& c);
  // The job of a change as it is stored, if gates concern it; null if not.
  bool find_stored(const change& c, const job*& was);
  bool forget_expired_keys(const batch& b);
  bool write_counts();
  bool missing(const char* what, job_id id);

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
  job stored_;  // where what find_stored gives differs from what the change has
  job_state from_ = job_state::ready;  // of the change that is being written
  bool has_dropped_damaged_ = false;   // in this batch
  bool must_recount_ = false;          // the counts of queues, from the rows of the jobs
  std::optional<error> own_error_;
  // When the first key expires, if any does; long ago: not known, look.
  std::optional<unix_time> next_expiry_ = unix_time{};
};

}  // namespace sluice::jobs::detail
