#pragma once

// A plain SQLite connection, on a disk for tests or on a file.

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>

#include "jobs/store/sqlite/testing/faulty_disk.hpp"

namespace sluice::jobs::testing {

class raw_database {
 public:
  explicit raw_database(const faulty_disk& on, const std::string& name = "raw.db") {
    constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    opened_ = sqlite3_open_v2(name.c_str(), &db_, flags, on.vfs().c_str());
  }
  // Opens a file of the system's disk.
  explicit raw_database(const std::string& path) {
    opened_ =
        sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  }
  raw_database(const raw_database&) = delete;
  raw_database& operator=(const raw_database&) = delete;
  ~raw_database() { sqlite3_close(db_); }

  // Returns SQLite's code; discards results.
  int run(const std::string& sql) {
    return opened_ != SQLITE_OK ? opened_
                                : sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  // Returns the first column of the first row; none without a row or after a failure.
  std::optional<std::string> text(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    std::optional<std::string> answer;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
      const auto* const found = sqlite3_column_text(statement, 0);
      answer = found != nullptr ? reinterpret_cast<const char*>(found) : "";
    }
    sqlite3_finalize(statement);
    return answer;
  }
  std::int64_t number(const std::string& sql) {
    const auto found = text(sql);
    return found ? std::stoll(*found) : -1;
  }
  bool is_sound() { return text("PRAGMA integrity_check") == "ok"; }

 private:
  sqlite3* db_ = nullptr;
  int opened_ = SQLITE_OK;
};

}  // namespace sluice::jobs::testing
