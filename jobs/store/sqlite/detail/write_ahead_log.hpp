#pragma once

// The write-ahead log of a store's file: syncs it, runs checkpoints, extends its file ahead of its
// content, and rewrites data whose sync failed.
//
// After a failed sync the system may mark the data as written, so that the next sync succeeds
// without it. So after a failure the data is rewritten before a sync is reported as successful:
//  - the log, if commits do not sync it themselves;
//  - the pages that SQLite has copied into the file without a sync. While a reader uses an old
//    snapshot, a backup for example, a checkpoint copies only up to that snapshot, marks that part
//    as done, and syncs the file only when it reaches the end of the log.
// Readers of this process exclude checkpoints (`readers`), so that these can always be complete.
//
// Not thread-safe: used only by the thread of its connection.

#include <sqlite3.h>

#include <cstdint>
#include <memory>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::jobs::detail {

class write_ahead_log {
 public:
  enum class synced_by : std::uint8_t { commits, flushes };

  write_ahead_log(connection& db, synced_by calls) : db_(db), synced_by_(calls) {}
  write_ahead_log(const write_ahead_log&) = delete;
  write_ahead_log& operator=(const write_ahead_log&) = delete;
  // Skips the checkpoint on close if the file is in doubt: the next open replays the whole log.
  ~write_ahead_log();

  // Disables SQLite's automatic checkpoints, whose errors are not reported; `copy` replaces them.
  void begin();

  // Called within a write transaction, before its first write. A sync that extends a file takes
  // twice as long (docs/decisions/0020): so zeros are appended to the log's file, many frames at a
  // time, and later transactions overwrite them.
  void grow_ahead() noexcept;
  void note_commit() noexcept { is_unsynced_ = true; }
  int pages() const noexcept { return pages_; }  // after the last transaction
  // Runs a checkpoint; `mode` is SQLITE_CHECKPOINT_...
  void_result copy(int mode);
  // Syncs the transactions since the last flush.
  void_result flush();

  // Must be held shared while a connection of this process reads.
  const std::shared_ptr<shared_mutex>& readers() const noexcept { return readers_; }

 private:
  sqlite3_file* file(int opcode);
  void_result sync(sqlite3_file* open_file);
  template <class Write>
  void_result write_again(Write writes, sqlite3_file* synced);
  void_result write_log_again();
  void_result write_file_again();
  int copy_log_bytes();
  int copy_pages();

  connection& db_;
  const synced_by synced_by_;
  const std::shared_ptr<shared_mutex> readers_ = std::make_shared<shared_mutex>();
  int pages_ = 0;
  sqlite3_int64 file_bytes_ = 0;  // last known size of the log's file
  int copied_unsynced_ = 0;       // pages of the log that were copied into the file without a sync
  bool is_unsynced_ = false;      // a transaction was written since the last flush
  bool log_is_doubtful_ = false;
  bool file_is_doubtful_ = false;
};

}  // namespace sluice::jobs::detail
