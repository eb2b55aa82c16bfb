#include "jobs/store/sqlite/detail/write_ahead_log.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "jobs/store/sqlite/detail/log_format.hpp"

namespace sluice::jobs::detail {
namespace {

// Zeros appended to the log's file at a time, when fewer than one piece is left: more would show in
// the latency of a transaction. A shorter log is not extended, since it may stay short.
constexpr sqlite3_int64 ahead_bytes = 256 << 10;
constexpr std::array<char, 1 << 16> zeros{};
constexpr sqlite3_int64 page_bytes_usual = 4096;

std::uint32_t number_at(const std::array<unsigned char, 4>& bytes) {
  std::uint32_t value = 0;
  for (const unsigned char b : bytes) value = value << 8U | b;
  return value;
}

int read_number(sqlite3_file& from, sqlite3_int64 at, std::uint32_t& value) {
  std::array<unsigned char, 4> bytes{};
  const int rc = from.pMethods->xRead(&from, bytes.data(), static_cast<int>(bytes.size()), at);
  value = number_at(bytes);
  return rc;
}

}  // namespace

write_ahead_log::~write_ahead_log() {
  if (!file_is_doubtful_) return;
  sqlite3_db_config(db_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void write_ahead_log::begin() {
  sqlite3_wal_hook(
      db_.handle(),
      [](void* pages, sqlite3*, const char*, int now) {
        *static_cast<int*>(pages) = now;
        return SQLITE_OK;
      },
      &pages_);
}

// Safe: the caller has the write lock, and only bytes beyond the end are written. A failure cannot
// change a frame, and SQLite stops reading at the first invalid frame.
void write_ahead_log::grow_ahead() noexcept {
  if (synced_by_ != synced_by::commits) return;
  constexpr auto piece = static_cast<sqlite3_int64>(zeros.size());
  const sqlite3_int64 used = log_head_bytes + pages_ * (frame_head_bytes + page_bytes_usual);
  const sqlite3_int64 needed = used + piece;
  if (needed <= file_bytes_ || used < ahead_bytes) return;
  sqlite3_file* const log = file(SQLITE_FCNTL_JOURNAL_POINTER);
  if (log == nullptr || log->pMethods->xFileSize(log, &file_bytes_) != SQLITE_OK) return;
  if (needed <= file_bytes_) return;
  for (const sqlite3_int64 until = needed + ahead_bytes; file_bytes_ < until;) {
    // Up to a multiple of the piece, so that later pieces are aligned to blocks.
    const auto bytes = static_cast<int>(piece - file_bytes_ % piece);
    const int rc = log->pMethods->xWrite(log, zeros.data(), bytes, file_bytes_);
    // After a failure it is not tried again: it is only an optimisation.
    file_bytes_ = rc == SQLITE_OK ? file_bytes_ + bytes : std::numeric_limits<sqlite3_int64>::max();
  }
}

void_result write_ahead_log::copy(int mode) {
  const std::lock_guard alone(*readers_);
  // Pages must be safe in the log before they are copied from it.
  if (log_is_doubtful_) {
    if (auto written = write_log_again(); !written) return written;
  }
  if (file_is_doubtful_) {
    if (auto written = write_file_again(); !written) return written;
  }
  int in_log = -1;
  int copied = -1;
  const int rc = sqlite3_wal_checkpoint_v2(db_.handle(), nullptr, mode, &in_log, &copied);
  // Busy: a reader uses an old snapshot. A later checkpoint copies the rest.
  if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED) {
    if (in_log >= 0) copied_unsynced_ = copied < in_log ? copied : 0;
    return done{};
  }
  error failure = db_.failure("copying its log into it");
  file_is_doubtful_ = copied_unsynced_ > 0;
  // A checkpoint also syncs the log, unless commits have done so.
  if (synced_by_ != synced_by::commits) log_is_doubtful_ = true;
  return failure;
}

void_result write_ahead_log::flush() {
  if (!is_unsynced_) return done{};
  auto synced = log_is_doubtful_ ? write_log_again() : sync(file(SQLITE_FCNTL_JOURNAL_POINTER));
  log_is_doubtful_ = !synced.has_value();
  if (synced) is_unsynced_ = false;
  return synced;
}

// Returns the log or the main file, if open, else null.
sqlite3_file* write_ahead_log::file(int opcode) {
  sqlite3_file* found = nullptr;
  const int rc = sqlite3_file_control(db_.handle(), "main", opcode, &found);
  return rc == SQLITE_OK && found != nullptr && found->pMethods != nullptr ? found : nullptr;
}

void_result write_ahead_log::sync(sqlite3_file* open_file) {
  if (open_file == nullptr) return done{};  // no write since the open
  const int rc = open_file->pMethods->xSync(open_file, SQLITE_SYNC_NORMAL);
  if (rc == SQLITE_OK) return done{};
  return sqlite_failure(db_.path(), "writing it to stable storage", rc, 0, sqlite3_errstr(rc));
}

// Rewrites the same bytes, so that the system syncs them again.
template <class Write>
void_result write_ahead_log::write_again(Write writes, sqlite3_file* synced) {
  constexpr const char* doing = "rewriting data that was not synced";
  // Excludes other writers.
  if (!db_.end_transaction() || !db_.exec("BEGIN IMMEDIATE")) return db_.failure(doing);
  const int rc = writes();
  auto written = rc == SQLITE_OK
                     ? sync(synced)
                     : void_result(sqlite_failure(db_.path(), doing, rc, 0, sqlite3_errstr(rc)));
  if (!db_.exec("ROLLBACK") && written) written = db_.failure(doing);
  return written;
}

void_result write_ahead_log::write_log_again() {
  auto written =
      write_again([this] { return copy_log_bytes(); }, file(SQLITE_FCNTL_JOURNAL_POINTER));
  if (written) log_is_doubtful_ = false;
  return written;
}

void_result write_ahead_log::write_file_again() {
  auto written = write_again([this] { return copy_pages(); }, file(SQLITE_FCNTL_FILE_POINTER));
  if (!written) return written;
  file_is_doubtful_ = false;
  copied_unsynced_ = 0;
  return done{};
}

int write_ahead_log::copy_log_bytes() {
  sqlite3_file* const log = file(SQLITE_FCNTL_JOURNAL_POINTER);
  if (log == nullptr) return SQLITE_OK;
  constexpr sqlite3_int64 piece_bytes = 1 << 16;
  std::vector<char> piece(piece_bytes);
  sqlite3_int64 size = 0;
  int rc = log->pMethods->xFileSize(log, &size);
  for (sqlite3_int64 at = 0; rc == SQLITE_OK && at < size; at += piece_bytes) {
    const int bytes = static_cast<int>(std::min(piece_bytes, size - at));
    rc = log->pMethods->xRead(log, piece.data(), bytes, at);
    if (rc == SQLITE_OK) rc = log->pMethods->xWrite(log, piece.data(), bytes, at);
  }
  return rc;
}

// Copies the pages that SQLite marks as copied, each from its last frame among them.
int write_ahead_log::copy_pages() {
  sqlite3_file* const log = file(SQLITE_FCNTL_JOURNAL_POINTER);
  sqlite3_file* const disk = file(SQLITE_FCNTL_FILE_POINTER);
  if (log == nullptr || disk == nullptr) return SQLITE_IOERR;
  std::uint32_t page_bytes = 0;
  int rc = read_number(*log, at_page_size, page_bytes);
  if (page_bytes == 1) page_bytes = 65536;
  const auto frame = [&](int n) {
    return log_head_bytes + n * (frame_head_bytes + sqlite3_int64{page_bytes});
  };
  std::map<std::uint32_t, int> last;  // the last frame of each page
  for (int n = 0; rc == SQLITE_OK && n < copied_unsynced_; ++n) {
    std::uint32_t page = 0;
    rc = read_number(*log, frame(n), page);
    last[page] = n;
  }
  std::vector<char> bytes(page_bytes);
  const int count = static_cast<int>(page_bytes);
  for (const auto& [page, n] : last) {
    if (rc != SQLITE_OK) break;
    rc = log->pMethods->xRead(log, bytes.data(), count, frame(n) + frame_head_bytes);
    if (rc != SQLITE_OK) break;
    rc = disk->pMethods->xWrite(disk, bytes.data(), count, (page - 1) * sqlite3_int64{page_bytes});
  }
  return rc;
}

}  // namespace sluice::jobs::detail
