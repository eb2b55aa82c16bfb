#pragma once

// RAII wrappers of SQLite's C interface, which turn failures into errors with the path and a
// remedy.
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
  struct options {
    bool read_only = false;
    std::string vfs;  // empty: the default
    std::uint64_t cache_bytes = std::uint64_t{1} << 20;
    int busy_ms = 1000;
  };
  static result<connection> open(const std::string& path, const options& o);

  sqlite3* handle() const noexcept { return db_.get(); }
  const std::string& path() const noexcept { return path_; }

  // Executes one or several statements without results.
  [[nodiscard]] bool exec(const char* sql) noexcept;
  // Returns the first column of the first row, or `otherwise` without a row.
  result<std::int64_t> number(const char* sql, std::int64_t otherwise = 0);

  // Returns the error of the previous call; `doing` completes "while ...".
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

// True if a transaction that failed with this code may be complete in the log, so that it is
// recovered after a crash unless another transaction overwrites it first.
bool may_have_been_logged(int extended) noexcept;

// Returns the error of a result code; `words` is SQLite's message.
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
  int step() noexcept { return sqlite3_step(handle_.get()); }
  // Makes the statement ready to be bound and stepped again.
  void reset() noexcept { sqlite3_reset(handle_.get()); }
  // Runs a statement without rows; true on success.
  [[nodiscard]] bool run() noexcept;

  // The values of the current row. Columns count from 0.
  std::int64_t number(int at) const noexcept { return sqlite3_column_int64(handle_.get(), at); }
  double real(int at) const noexcept { return sqlite3_column_double(handle_.get(), at); }
  int type(int at) const noexcept {
    return sqlite3_column_type(handle_.get(), at);
  }  // SQLITE_NULL, ...
  bool is_null(int at) const noexcept { return type(at) == SQLITE_NULL; }
  bool is_bytes(int at) const noexcept { return type(at) == SQLITE_BLOB; }
  std::string_view view(int at) const noexcept;  // of text or bytes; valid until the next step
  std::string string(int at) const { return std::string(view(at)); }

 private:
  struct finalizer {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
  };

  std::unique_ptr<sqlite3_stmt, finalizer> handle_;
};

// Resets a statement at the end of a scope: an open read prevents the log from being reused.
class reset_at_end {
 public:
  explicit reset_at_end(statement& s) noexcept : statement_(s) {}
  reset_at_end(const reset_at_end&) = delete;
  reset_at_end& operator=(const reset_at_end&) = delete;
  ~reset_at_end() { statement_.reset(); }

 private:
  statement& statement_;
};

}  // namespace sluice::jobs::detail
