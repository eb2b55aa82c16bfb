#pragma once

// Detects that a store's files were deleted, replaced or truncated, and saves the content of the
// open files.
//
// Not thread-safe: used only by the thread of the connection.

#include <optional>
#include <string>

#include "jobs/model/result.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/file_watch.hpp"

namespace sluice::jobs::detail {

// Returns `wanted`, or `wanted` followed by the first number from 2 on for which no file exists.
std::string unused_name(const std::string& wanted);

class store_watch {
 public:
  // Records the current files.
  void begin(connection& db, bool has_lock);
  // Fails once with `corrupt` if a file was deleted, replaced or truncated. The message names the
  // copy of the open database. `log_pages`: the number of frames in the log.
  void_result check(connection& db, int log_pages);
  // The error of every further write; none: the files are in place.
  const std::optional<error>& lost() const noexcept { return lost_; }

 private:
  static std::string save_open_database(connection& db);

  file_watch files_;
  std::uint64_t page_bytes_ = 0;
  std::optional<error> lost_;
};

}  // namespace sluice::jobs::detail
