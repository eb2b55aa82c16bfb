#include "jobs/store/sqlite/detail/schema.hpp"

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "jobs/store/sqlite/detail/row_soundness.hpp"

namespace sluice::jobs::detail {
namespace {

// Columns with defaults for a plain job are last and NULL, so they take one byte each. A ready job
// without a due time is in one index only, jobs_ready.
constexpr const char* tables_of_format_1 = R"(
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  state INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  due_at INTEGER,
  created_at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  args NOT NULL,
  ended_at INTEGER,
  attempts INTEGER,
  run_at INTEGER,
  lease_for INTEGER,
  time_limit INTEGER,
  keep_for INTEGER,
  retry_attempts INTEGER,
  retry_first INTEGER,
  retry_factor REAL,
  retry_longest INTEGER,
  retry_jitter REAL,
  unique_key TEXT,
  unique_until TEXT,
  unique_for INTEGER,
  metadata TEXT,
  errors TEXT,
  result
);
CREATE INDEX jobs_ready ON jobs (queue, rank, turn) WHERE state = 2;
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_by_state ON jobs (state) WHERE state <> 2;

CREATE TABLE queues (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  capacity_jobs INTEGER NOT NULL,
  capacity_bytes INTEGER NOT NULL,
  when_full TEXT NOT NULL,
  paused INTEGER NOT NULL,
  lease_for INTEGER NOT NULL,
  keep_done INTEGER NOT NULL,
  keep_results INTEGER NOT NULL,
  keep_dead INTEGER NOT NULL,
  scheduled INTEGER NOT NULL DEFAULT 0,
  ready INTEGER NOT NULL DEFAULT 0,
  retrying INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE unique_keys (
  queue INTEGER NOT NULL,
  key TEXT NOT NULL,
  job INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX unique_keys_expiring ON unique_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE leases (
  job INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  key INTEGER NOT NULL,
  worker TEXT NOT NULL,
  until INTEGER NOT NULL,
  began INTEGER NOT NULL
);

CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO meta VALUES ('ids_up_to', 0);
)";

// Tables for waiting jobs, logs and crons. A new file is created in format 1 and upgraded, so that
// each table has one definition.
constexpr const char* tables_of_format_2 = R"(
ALTER TABLE jobs ADD COLUMN key TEXT;
ALTER TABLE jobs ADD COLUMN line INTEGER;
ALTER TABLE jobs ADD COLUMN batch INTEGER;
ALTER TABLE jobs ADD COLUMN after TEXT;
ALTER TABLE jobs ADD COLUMN step TEXT;
ALTER TABLE jobs ADD COLUMN webhook TEXT;
ALTER TABLE jobs ADD COLUMN blockers INTEGER;
ALTER TABLE jobs ADD COLUMN has_place INTEGER;
ALTER TABLE jobs ADD COLUMN progress REAL;
ALTER TABLE jobs ADD COLUMN progress_text TEXT;
CREATE INDEX jobs_batch ON jobs (batch) WHERE batch IS NOT NULL;
CREATE INDEX jobs_line ON jobs (line, turn)
  WHERE state = 1 AND blockers IS NULL AND line IS NOT NULL;
CREATE INDEX jobs_placed ON jobs (turn, line)
  WHERE line IS NOT NULL AND (state = 2 OR state = 4 OR has_place = 1);

ALTER TABLE queues ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN rate REAL NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN rate_burst INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN concurrency INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN weight INTEGER NOT NULL DEFAULT 1;
ALTER TABLE queues ADD COLUMN key_concurrency INTEGER NOT NULL DEFAULT 1;
ALTER TABLE queues ADD COLUMN key_rate REAL NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN key_burst INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN deliver_url TEXT NOT NULL DEFAULT '';
ALTER TABLE queues ADD COLUMN deliver_concurrency INTEGER NOT NULL DEFAULT 8;
ALTER TABLE queues ADD COLUMN deliver_timeout INTEGER NOT NULL DEFAULT 30000;

CREATE TABLE lines (
  line INTEGER PRIMARY KEY,
  active INTEGER NOT NULL,
  waiting INTEGER NOT NULL
);

CREATE TABLE edges (
  on_id INTEGER NOT NULL,
  job INTEGER NOT NULL,
  condition INTEGER NOT NULL,
  PRIMARY KEY (on_id, job, condition)
) WITHOUT ROWID;
CREATE INDEX edges_job ON edges (job);

CREATE TABLE batches (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  open INTEGER NOT NULL,
  total INTEGER NOT NULL,
  pending INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  due_at INTEGER,
  keep_done INTEGER NOT NULL,
  keep_failed INTEGER NOT NULL
);
CREATE INDEX batches_due ON batches (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE logs (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  at INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job, number)
) WITHOUT ROWID;

CREATE TABLE crons (
  name TEXT PRIMARY KEY,
  schedule TEXT NOT NULL,
  zone TEXT NOT NULL,
  missed TEXT NOT NULL,
  paused INTEGER NOT NULL,
  next_at INTEGER,
  last_at INTEGER,
  last_job INTEGER,
  runs INTEGER NOT NULL,
  missed_runs INTEGER NOT NULL,
  queue_name TEXT NOT NULL,
  job_id, job_queue, job_state, job_rank, job_turn, job_due_at, job_created_at, job_kind,
  job_args, job_ended_at, job_attempts, job_run_at, job_lease_for, job_time_limit, job_keep_for,
  job_retry_attempts, job_retry_first, job_retry_factor, job_retry_longest, job_retry_jitter,
  job_unique_key, job_unique_until, job_unique_for, job_metadata, job_errors, job_result,
  job_key, job_line, job_batch, job_after, job_step, job_webhook, job_blockers, job_has_place,
  job_progress, job_progress_text
);
)";

// Checksums, finished attempts, and the columns of leases that survive a restart. The upgrade
// writes only rows of `meta`: a row without a checksum is unverified until it is next written.
constexpr const char* tables_of_format_3 = R"(
ALTER TABLE jobs ADD COLUMN history TEXT;
ALTER TABLE jobs ADD COLUMN checksum INTEGER;
ALTER TABLE queues ADD COLUMN checksum INTEGER;
ALTER TABLE batches ADD COLUMN checksum INTEGER;
ALTER TABLE logs ADD COLUMN checksum INTEGER;
ALTER TABLE crons ADD COLUMN job_history TEXT;
ALTER TABLE crons ADD COLUMN job_checksum INTEGER;
ALTER TABLE leases ADD COLUMN lasts INTEGER;
ALTER TABLE leases ADD COLUMN progress REAL;
ALTER TABLE leases ADD COLUMN progress_text TEXT;
ALTER TABLE leases ADD COLUMN cancelled INTEGER;
ALTER TABLE leases ADD COLUMN job_key TEXT;
ALTER TABLE leases ADD COLUMN checksum INTEGER;
ALTER TABLE unique_keys ADD COLUMN checksum INTEGER;
ALTER TABLE edges ADD COLUMN checksum INTEGER;
ALTER TABLE meta ADD COLUMN checksum INTEGER;
INSERT INTO meta SELECT 'unverified_up_to', value, NULL FROM meta WHERE name = 'ids_up_to';
UPDATE meta SET checksum = sluice_checksum(name, value);
)";

// In one transaction: after a crash the file has the old or the new format completely.
void_result run_in_transaction(connection& on, const std::string& changes, std::string_view doing) {
  const std::string sql = "BEGIN IMMEDIATE;" + changes +
                          "PRAGMA user_version = " + std::to_string(format_version) + "; COMMIT";
  if (on.exec(sql.c_str())) return done{};
  const error failure = on.failure(doing);
  if (on.in_transaction() && !on.exec("ROLLBACK")) return on.failure("rolling back its tables");
  return failure;
}

void_result make_tables(connection& on) {
  return run_in_transaction(on,
                            std::string(tables_of_format_1) + tables_of_format_2 +
                                tables_of_format_3 +
                                "PRAGMA application_id = " + std::to_string(application_id) + ";",
                            "creating its tables");
}

// Returns the number of jobs from the counts of the queues, without a scan.
result<std::int64_t> counted_jobs(connection& on, std::int64_t version) {
  const std::string held = version > 1 ? " + held" : "";
  const std::string sql =
      "SELECT coalesce(sum(scheduled + ready + retrying + done + dead + cancelled" + held +
      "), 0) FROM queues";
  return on.number(sql.c_str());
}

void_result upgrade(connection& on, std::int64_t from, const notice_callback& notice) {
  const auto jobs = counted_jobs(on, from);
  if (!jobs) return jobs.error();
  const std::string steps = on.path() + ": format " + std::to_string(from) + " to " +
                            std::to_string(format_version) + ", " + std::to_string(*jobs) +
                            " jobs: ";
  if (notice) notice({false, steps + "the upgrade begins (0 %)"});
  const std::string changes =
      (from == 1 ? std::string(tables_of_format_2) : std::string()) + tables_of_format_3;
  if (auto upgraded = run_in_transaction(on, changes, "upgrading its tables"); !upgraded) {
    return upgraded;
  }
  if (notice) {
    notice({false, steps + "upgraded (100 %). Older versions cannot open the file; jobs get a "
                           "checksum when they are next written"});
  }
  return done{};
}

std::uint64_t big_endian(const unsigned char* at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value;
}

}  // namespace

void_result ensure_schema(connection& on, const notice_callback& notice) {
  if (!define_row_functions(on)) return on.failure("preparing to use it");
  const auto id = on.number("PRAGMA application_id");
  if (!id) return id.error();
  const auto version = on.number("PRAGMA user_version");
  if (!version) return version.error();
  const auto things = on.number("SELECT count(*) FROM sqlite_schema");
  if (!things) return things.error();

  if (*id == 0 && *things == 0 && *version == 0) return make_tables(on);
  if (*id != application_id) {
    return error{error_code::invalid,
                 on.path() + " is a SQLite database of another program (application_id " +
                     std::to_string(*id) + "): choose another file; this one was not changed"};
  }
  if (*version > format_version) {
    return error{error_code::invalid, on.path() + " was made by a newer version (format " +
                                          std::to_string(*version) + ", this program supports " +
                                          std::to_string(format_version) +
                                          "): use that version; the file was not changed"};
  }
  if (*version == format_version) return done{};
  if (*version < 1) {
    return error{error_code::corrupt, on.path() + " has format " + std::to_string(*version) +
                                          ", which does not exist: restore a backup"};
  }
  return upgrade(on, *version, notice);
}

result<connection> open_to_look(const std::string& path, std::uint64_t cache_bytes) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) {
    return error{error_code::invalid, path + " is not a file: name the file of a store"};
  }
  constexpr int busy_ms = 5000;
  auto on = connection::open(
      path, {.read_only = true, .vfs = {}, .cache_bytes = cache_bytes, .busy_ms = busy_ms});
  if (!on) return on;
  const auto id = on->number("PRAGMA application_id");
  if (!id) return id.error();
  if (*id != application_id) {
    return error{error_code::invalid, path + " is not a store (application_id " +
                                          std::to_string(*id) + "): name the file of a store"};
  }
  const auto version = on->number("PRAGMA user_version");
  if (!version) return version.error();
  if (*version != format_version) {
    return error{error_code::invalid,
                 path + " has format " + std::to_string(*version) + ", but this program supports " +
                     std::to_string(format_version) +
                     (*version < format_version ? ": start the server with it once"
                                                : ": use the version that created it")};
  }
  return on;
}

void_result check_length(const std::string& path) {
  std::error_code none;
  const auto length = std::filesystem::file_size(path, none);
  if (none || length == 0) return done{};
  // With a log beside it the file may be shorter: the log has the rest.
  if (const auto log = std::filesystem::file_size(path + "-wal", none); !none && log > 0) {
    return done{};
  }
  std::array<char, 100> header{};
  std::ifstream file(path, std::ios::binary);
  file.read(header.data(), header.size());
  if (file.gcount() != static_cast<std::streamsize>(header.size()) ||
      std::string_view(header.data(), 15) != "SQLite format 3") {
    return done{};  // not a database: SQLite reports that
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(header.data());
  std::uint64_t page_bytes = big_endian(bytes + 16, 2);
  if (page_bytes == 1) page_bytes = 65536;
  const std::uint64_t expected = page_bytes * big_endian(bytes + 28, 4);
  // The number of pages is valid only if it was written with the last change.
  const bool is_valid = big_endian(bytes + 24, 4) == big_endian(bytes + 92, 4);
  if (!is_valid || length >= expected) return done{};
  return error{error_code::corrupt, path + " is truncated: it has " + std::to_string(length) +
                                        " of " + std::to_string(expected) +
                                        " bytes; restore a backup"};
}

}  // namespace sluice::jobs::detail
