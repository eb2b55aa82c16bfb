#pragma once

// Writes the changes of one batch into the tables, inside a transaction that somebody else begins
// and ends.
//
// The hot path is a plain add and a plain drop (plain_rows.hpp): no allocation, a share of a
// prepared statement. The counts of a queue are written once, whatever number of its jobs changed.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "jobs/store/count_deltas.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/plain_rows.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class batch_writer {
 public:
  [[nodiscard]] bool prepare(connection& on);

  // False: it failed. `own_error` says why, or else the connection does.
  [[nodiscard]] bool write(const batch& b, std::vector<conflict>& conflicts);
  // One row that always changes.
  [[nodiscard]] bool mark() { return mark_.run(); }
  std::optional<error> own_error();
  // The transaction did not come to its end: nothing that was seen in it holds.
  void undone() noexcept { next_expiry_ = unix_time{}; }

 private:
  bool add_group(const batch& b, std::size_t first, std::size_t end,
                 std::vector<conflict>& conflicts);
  // None: it could not be read.
  std::optional<job_id> find_holder(const change& c, unix_time now);
  bool add(const change& c);
  bool take_key(const change& c);
  bool move(const change& c);
  bool add_error(const change& c, std::string& errors);
  bool drop(const change& c);
  bool free_key(const change& c);
  bool set_queue(const change& c);
  bool save_lease(const change& c);
  bool write_one(const change& c);
  bool forget_expired_keys(const batch& b);
  bool write_counts();
  bool missing(const char* what, job_id id);

  connection* on_ = nullptr;
  plain_rows plain_;
  statement add_, move_, drop_, read_errors_;
  statement find_key_, take_key_, free_key_, expired_keys_, drop_key_, next_expired_;
  statement set_queue_, count_, save_lease_, drop_leases_, ids_up_to_, mark_;
  count_deltas deltas_;
  std::optional<error> own_error_;
  // When the first key expires, if any does; long ago: not known, look.
  std::optional<unix_time> next_expiry_ = unix_time{};
};

}  // namespace sluice::jobs::detail
