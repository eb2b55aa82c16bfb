#include "jobs/store/sqlite/detail/connection.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

namespace sluice::jobs::detail {
namespace {

bool is_no_space(int system_errno) {
  return system_errno == ENOSPC || system_errno == EDQUOT;
}

error_code code_of(int extended, int system_errno) {
  switch (extended & 0xff) {
    case SQLITE_FULL:
      return error_code::disk_full;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return error_code::locked;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:       // a statement does not match the tables
    case SQLITE_CONSTRAINT:  // the stored rows are impossible
      return error_code::corrupt;
    case SQLITE_IOERR:
      // The shared memory file could not be extended.
      if (extended == SQLITE_IOERR_SHMSIZE) return error_code::disk_full;
      return is_no_space(system_errno) ? error_code::disk_full : error_code::io_error;
    case SQLITE_CANTOPEN:
      return is_no_space(system_errno) ? error_code::disk_full : error_code::io_error;
    default:
      return error_code::io_error;
  }
}

std::string_view advice(error_code code) {
  switch (code) {
    case error_code::disk_full:
      return "free some space on its disk; pushes are accepted again when there is enough";
    case error_code::locked:
      return "another program is writing to the file; end its transaction or stop it";
    case error_code::corrupt:
      return corrupt_advice;
    default:
      return "check the disk, the file's permissions and the system log";
  }
}

}  // namespace

bool may_have_been_logged(int extended) noexcept {
  // After a failed write the transaction is incomplete in the log. The sync and the index of the
  // log follow the last write, so after their failure it is complete.
  return (extended & 0xff) == SQLITE_IOERR && extended != SQLITE_IOERR_WRITE &&
         extended != SQLITE_IOERR_READ && extended != SQLITE_IOERR_SHORT_READ;
}

error sqlite_failure(const std::string& path, std::string_view doing, int extended,
                     int system_errno, std::string_view words) {
  const error_code code = code_of(extended, system_errno);
  std::string message = path + ": " + std::string(words);
  message += " (SQLite error " + std::to_string(extended);
  if (system_errno != 0) message += ", " + std::system_category().message(system_errno);
  message += ") while " + std::string(doing) + ": " + std::string(advice(code));
  return {code, std::move(message)};
}

result<connection> connection::open(const std::string& path, const options& o) {
  sqlite3* db = nullptr;
  // No mutex: one thread at a time uses a connection.
  const int flags =
      (o.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
  const int rc = sqlite3_open_v2(path.c_str(), &db, flags, o.vfs.empty() ? nullptr : o.vfs.c_str());
  connection opened(db, path);
  if (db == nullptr) return error{error_code::io_error, path + ": no memory to open it"};
  if (rc != SQLITE_OK) return opened.failure("opening it");
  sqlite3_busy_timeout(db, o.busy_ms);
  const std::string setup =
      "PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; "
      "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -" +
      std::to_string(o.cache_bytes / 1024);
  if (!opened.exec(setup.c_str())) return opened.failure("opening it");
  return opened;
}

bool connection::exec(const char* sql) noexcept {
  return sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

result<std::int64_t> connection::number(const char* sql, std::int64_t otherwise) {
  statement asked;
  if (!asked.prepare(*this, sql)) return failure("reading its settings");
  const int rc = asked.step();
  if (rc == SQLITE_ROW) return asked.number(0);
  if (rc == SQLITE_DONE) return otherwise;
  return failure("reading its settings");
}

error connection::failure(std::string_view doing) const {
  sqlite3* const db = db_.get();
  return sqlite_failure(path_, doing, sqlite3_extended_errcode(db), sqlite3_system_errno(db),
                        sqlite3_errmsg(db));
}

bool statement::prepare(connection& on, std::string_view sql) noexcept {
  sqlite3_stmt* made = nullptr;
  const int rc = sqlite3_prepare_v3(on.handle(), sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &made, nullptr);
  handle_.reset(made);
  return rc == SQLITE_OK;
}

statement& statement::number(int at, std::int64_t value) noexcept {
  sqlite3_bind_int64(handle_.get(), at, value);
  return *this;
}

statement& statement::number_or_null(int at, std::int64_t value, bool is_null) noexcept {
  return is_null ? null(at) : number(at, value);
}

statement& statement::real(int at, double value) noexcept {
  sqlite3_bind_double(handle_.get(), at, value);
  return *this;
}

// The pointer of an empty view may be null, which SQLite would bind as NULL.
statement& statement::text(int at, std::string_view value) noexcept {
  sqlite3_bind_text64(handle_.get(), at, value.empty() ? "" : value.data(), value.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

statement& statement::bytes(int at, std::string_view value) noexcept {
  sqlite3_bind_blob64(handle_.get(), at, value.empty() ? "" : value.data(), value.size(),
                      SQLITE_STATIC);
  return *this;
}

statement& statement::null(int at) noexcept {
  sqlite3_bind_null(handle_.get(), at);
  return *this;
}

bool statement::run() noexcept {
  const int rc = step();
  reset();
  return rc == SQLITE_DONE;
}

std::string_view statement::view(int at) const noexcept {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_.get(), at));
  const int size = sqlite3_column_bytes(handle_.get(), at);
  return data == nullptr ? std::string_view() : std::string_view(data, static_cast<unsigned>(size));
}

}  // namespace sluice::jobs::detail
