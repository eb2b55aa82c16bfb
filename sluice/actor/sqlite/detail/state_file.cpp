#include "sluice/actor/sqlite/detail/state_file.hpp"

#include <system_error>

#include "sluice/actor/actor_store.hpp"

namespace sluice::detail {
namespace {

constexpr long long application = 0x536c4163;  // "SlAc"
constexpr long long format = 1;

// Blobs: a key is arbitrary bytes, and is compared as such.
constexpr const char* make_tables = R"(
BEGIN IMMEDIATE;
CREATE TABLE actor_states (
  type BLOB NOT NULL,
  key BLOB NOT NULL,
  state BLOB NOT NULL,
  PRIMARY KEY (type, key)
) WITHOUT ROWID;
PRAGMA application_id = 1399603555;
PRAGMA user_version = 1;
COMMIT;
)";
static_assert(application == 1399603555 && format == 1);

std::string_view advice(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return ": free some space on its disk";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ": another program has it open";
    case SQLITE_CORRUPT:
      return ": the file is damaged; restore a backup, or try the .recover command of sqlite3";
    case SQLITE_NOTADB:
      return ": it is not a SQLite database, or its header is damaged";
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return ": check its folder and the permissions";
    default:
      return "";
  }
}

}  // namespace

state_file::state_file(const std::string& path) : path_(path) {
  sqlite3* db = nullptr;
  // No mutex: the store uses it on one thread.
  const int rc = sqlite3_open_v2(
      path.c_str(), &db,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  db_.reset(db);
  if (db == nullptr) refuse("no memory to open it");
  if (rc != SQLITE_OK) fail("opening it");
  exec(
      "PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
      "PRAGMA locking_mode = EXCLUSIVE;",
      "opening it");
  check_format();
  exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", "opening it");
  // The first write takes the lock and keeps it: no other process can write from here on.
  exec("BEGIN IMMEDIATE; COMMIT;", "opening it");
  load_ = prepare("SELECT state FROM actor_states WHERE type = ? AND key = ?");
  save_ = prepare(
      "INSERT INTO actor_states (type, key, state) VALUES (?, ?, ?) "
      "ON CONFLICT (type, key) DO UPDATE SET state = excluded.state");
  remove_ = prepare("DELETE FROM actor_states WHERE type = ? AND key = ?");
}

// Must run before the file is changed.
void state_file::check_format() {
  const long long id = number("PRAGMA application_id");
  const long long version = number("PRAGMA user_version");
  const long long tables = number("SELECT count(*) FROM sqlite_schema");
  if (id == 0 && version == 0 && tables == 0) {
    exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", "making it");
    return exec(make_tables, "making it");
  }
  if (id != application) refuse("it is a database of another program, and was not changed");
  if (version > format) {
    refuse("it was written by a newer version (format " + std::to_string(version) +
           ", this version reads " + std::to_string(format) + "), and was not changed");
  }
  if (version != format) refuse("it has an unknown format " + std::to_string(version));
}

void state_file::begin() {
  exec("BEGIN", "beginning to write");
}
void state_file::commit() {
  exec("COMMIT", "writing");
}
void state_file::roll_back() noexcept {
  if (sqlite3_get_autocommit(db_.get()) == 0) {
    (void)sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

std::optional<std::string> state_file::load(std::string_view type, std::string_view key) {
  bind(load_, 1, type);
  bind(load_, 2, key);
  const int rc = sqlite3_step(load_.get());
  std::optional<std::string> found;
  if (rc == SQLITE_ROW) {
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(load_.get(), 0));
    const int size = sqlite3_column_bytes(load_.get(), 0);
    found.emplace(bytes == nullptr ? "" : bytes, static_cast<std::size_t>(size));
  }
  // Returns the code of the step again if that failed.
  const int reset = sqlite3_reset(load_.get());
  if (reset != SQLITE_OK || (rc != SQLITE_ROW && rc != SQLITE_DONE)) fail("reading a state");
  return found;
}

void state_file::save(std::string_view type, std::string_view key, std::string_view state) {
  bind(save_, 1, type);
  bind(save_, 2, key);
  bind(save_, 3, state);
  run(save_, "saving a state");
}

void state_file::remove(std::string_view type, std::string_view key) {
  bind(remove_, 1, type);
  bind(remove_, 2, key);
  run(remove_, "removing a state");
}

// ---- SQLite

void state_file::exec(const char* sql, std::string_view doing) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(doing);
}

long long state_file::number(const char* sql) {
  const statement query = prepare(sql);
  if (sqlite3_step(query.get()) != SQLITE_ROW) fail("reading its format");
  return sqlite3_column_int64(query.get(), 0);
}

state_file::statement state_file::prepare(const char* sql) {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v3(db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr) !=
      SQLITE_OK) {
    fail("reading its tables");
  }
  return statement(prepared);
}

// The bytes are not copied: they outlive the step. An empty view may have a null address, which
// SQLite would store as NULL.
void state_file::bind(const statement& s, int at, std::string_view bytes) {
  if (sqlite3_bind_blob64(s.get(), at, bytes.empty() ? "" : bytes.data(), bytes.size(),
                          SQLITE_STATIC) != SQLITE_OK) {
    fail("taking a state");
  }
}

void state_file::run(const statement& s, std::string_view doing) {
  const int rc = sqlite3_step(s.get());
  const int reset = sqlite3_reset(s.get());
  if (rc != SQLITE_DONE || reset != SQLITE_OK) fail(doing);
}

void state_file::fail(std::string_view doing) const {
  const int code = sqlite3_extended_errcode(db_.get());
  const int system = sqlite3_system_errno(db_.get());
  std::string text(sqlite3_errmsg(db_.get()));
  text += " (SQLite error " + std::to_string(code);
  if (system != 0) text += ", " + std::system_category().message(system);
  refuse(text + ") while " + std::string(doing) + std::string(advice(code)));
}

void state_file::refuse(const std::string& why) const {
  throw actor_store_error(path_ + ": " + why);
}

}  // namespace sluice::detail
