#pragma once

// Notices that a store's files were deleted, replaced or cut, and saves the content of the open
// ones.
//
// Not thread-safe: it belongs to the thread of the connection.

#include <optional>
#include <string>

#include "jobs/model/result.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/file_watch.hpp"

namespace sluice::jobs::detail {

// `wanted`, or with the first number from 2 on behind it that no file has.
std::string unused_name(const std::string& wanted);

class store_watch {
 public:
  // The files as they are now are the right ones.
  void begin(connection& db, bool has_lock);
  // `corrupt`, once: a file was deleted, replaced or cut short. The message says where a copy of
  // the open database is. `log_pages`: how many frames are in the log.
  void_result check(connection& db, int log_pages);
  // Why nothing may be written any more; none: all is well.
  const std::optional<error>& lost() const noexcept { return lost_; }

 private:
  static std::string save_open_database(connection& db);

  file_watch files_;
  std::uint64_t page_bytes_ = 0;
  std::optional<error> lost_;
};

}  // namespace sluice::jobs::detail
