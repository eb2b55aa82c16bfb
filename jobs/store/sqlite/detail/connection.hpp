#pragma once

// SQLite's C interface, owned: a connection closes itself, a statement finalizes itself, and a
// failure becomes an error that says where it happened and what to do.
//
// Not thread-safe: a connection and its statements belong to one thread at a time.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

// SQLite has no unsigned numbers: a column holds the same bits.
constexpr std::int64_t signed_of(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value);
}
constexpr std::uint64_t unsigned_of(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value);
}

class connection {
 public:
  struct how {
    bool read_only = false;
    std::string vfs;  // empty: the default
    std::uint64_t cache_bytes = std::uint64_t{1} << 20;
    int busy_ms = 1000;
  };
  static result<connection> open(const std::string& path, const how& h);

  sqlite3* handle() const noexcept { return db_.get(); }
  const std::string& path() const noexcept { return path_; }

  // One or several statements without results.
  [[nodiscard]] bool exec(const char* sql) noexcept;
  // The first column of the first row, or `otherwise` when there is none.
  result<std::int64_t> number(const char* sql, std::int64_t otherwise = 0);

  // What went wrong in the call before; `doing` completes "while ...".
  error failure(std::string_view doing) const;
  int extended_code() const noexcept { return sqlite3_extended_errcode(db_.get()); }
  bool in_transaction() const noexcept { return sqlite3_get_autocommit(db_.get()) == 0; }
  // Rolls back a transaction that a failure has left open. Must precede a BEGIN, which would
  // otherwise fail with SQLITE_ERROR, and that means a damaged file. Returns false if it is still
  // open.
  [[nodiscard]] bool end_transaction() noexcept { return !in_transaction() || exec("ROLLBACK"); }

 private:
  struct closer {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
  };

  connection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

  std::unique_ptr<sqlite3, closer> db_;
  std::string path_;
};

// The advice for a damaged file; completes "...: ".
inline constexpr std::string_view corrupt_advice =
    "stop the server, keep a copy of the file and its -wal, run 'sluice check', and restore a "
    "backup (docs/reference/store.md#damage)";

// The error of a result code, from the words that SQLite has for it.
// Whether a transaction that ended with this code may be in the log with its end, so that it is
// there after a crash, unless another one has taken its place before.
bool may_have_been_logged(int extended) noexcept;

error sqlite_failure(const std::string& path, std::string_view doing, int extended_code,
                     int system_errno, std::string_view words);

class statement {
 public:
  statement() = default;
  [[nodiscard]] bool prepare(connection& on, std::string_view sql) noexcept;

  // Parameters count from 1. Text and bytes are not copied: they must outlive the next step.
  statement& number(int at, std::int64_t value) noexcept;
  statement& number_or_null(int at, std::int64_t value, bool is_null) noexcept;
  statement& real(int at, double value) noexcept;
  statement& text(int at, std::string_view value) noexcept;
  statement& bytes(int at, std::string_view value) noexcept;
  statement& null(int at) noexcept;

  // SQLITE_ROW, SQLITE_DONE, or a failure.
  int step() noexcept { return sqlite3_step(it_.get()); }
  // Ready to be bound and stepped again.
  void reset() noexcept { sqlite3_reset(it_.get()); }
  // For a statement without rows: true when it was done.
  [[nodiscard]] bool run() noexcept;

  // Of the row that step() came to. Columns count from 0.
  std::int64_t number(int at) const noexcept { return sqlite3_column_int64(it_.get(), at); }
  double real(int at) const noexcept { return sqlite3_column_double(it_.get(), at); }
  int type(int at) const noexcept {
    return sqlite3_column_type(it_.get(), at);
  }  // SQLITE_NULL, ...
  bool is_null(int at) const noexcept { return type(at) == SQLITE_NULL; }
  bool is_bytes(int at) const noexcept { return type(at) == SQLITE_BLOB; }
  std::string_view view(int at) const noexcept;  // of text or bytes; valid until the next step
  std::string string(int at) const { return std::string(view(at)); }

 private:
  struct finalizer {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
  };

  std::unique_ptr<sqlite3_stmt, finalizer> it_;
};

// Resets a statement at the end of a scope: a read that is not ended keeps the log from shrinking.
class reset_at_end {
 public:
  explicit reset_at_end(statement& s) noexcept : it_(s) {}
  reset_at_end(const reset_at_end&) = delete;
  reset_at_end& operator=(const reset_at_end&) = delete;
  ~reset_at_end() { it_.reset(); }

 private:
  statement& it_;
};

}  // namespace sluice::jobs::detail
