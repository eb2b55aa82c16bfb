#pragma once

// The write-ahead log of a store's file: syncs it, copies it into the file when it is long, keeps
// its own file ahead of what is in it, and makes good what a sync that failed leaves in doubt.
//
// A system that could not write may take what it has for written, and say yes to the next sync. So
// after a failure what was to be synced is written again before anybody is told that it is safe:
//  - the log, where batches do not sync it themselves;
//  - the part of the log that SQLite has copied into the file without a sync. It does that while
//    somebody reads an old state, a backup for example: it copies up to there, takes that part
//    of the log for done, and syncs the file when it comes to the end.
// Readers of this process stay outside of a copy (`readers`), so that theirs is always a whole one.
//
// Not thread-safe: it belongs to the thread of its connection.

#include <sqlite3.h>

#include <cstdint>
#include <memory>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::jobs::detail {

class write_ahead_log {
 public:
  enum class synced_by : std::uint8_t { batches, flushes };

  write_ahead_log(connection& db, synced_by whom) : db_(db), synced_by_(whom) {}
  write_ahead_log(const write_ahead_log&) = delete;
  write_ahead_log& operator=(const write_ahead_log&) = delete;
  // A file in doubt is left to the next opening, which begins with the whole log.
  ~write_ahead_log();

  // From now on this is who copies it, in place of SQLite, whose failures nobody would hear of.
  void begin();

  // In a transaction that may write, before it does. A sync that has to make a file longer takes
  // twice as long (docs/decisions/0020): so zeros are put beyond the end of the log's file, a piece
  // at a time, and the frames of many batches then take their place.
  void grow_ahead() noexcept;
  void batch_was_written() noexcept { is_unsynced_ = true; }
  int pages() const noexcept { return pages_; }  // after the last batch
  // Copies it into the file, as SQLITE_CHECKPOINT_... says.
  void_result copy(int how);
  // Syncs what batches have written since it did so last.
  void_result flush();

  // To be held while a connection of this process reads.
  const std::shared_ptr<shared_mutex>& readers() const noexcept { return readers_; }

 private:
  sqlite3_file* file(int which);
  void_result sync(sqlite3_file* it);
  template <class Write>
  void_result write_again(Write what, sqlite3_file* synced);
  void_result write_log_again();
  void_result write_file_again();
  int copy_log_bytes();
  int copy_pages();

  connection& db_;
  const synced_by synced_by_;
  const std::shared_ptr<shared_mutex> readers_ = std::make_shared<shared_mutex>();
  int pages_ = 0;
  sqlite3_int64 file_bytes_ = 0;  // of the log, when they were asked for
  int copied_unsynced_ = 0;       // of the log's pages, in the file
  bool is_unsynced_ = false;      // there is something to flush
  bool log_is_doubtful_ = false;
  bool file_is_doubtful_ = false;
};

}  // namespace sluice::jobs::detail
