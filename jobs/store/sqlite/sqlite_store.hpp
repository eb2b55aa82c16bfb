#pragma once

// Keeps jobs in one SQLite file: acknowledged changes survive a crash or a power cut, and any
// SQLite tool can read the file.
//
// Use it wherever jobs must not be lost. Prefer memory_store where they may be.
//
// Guarantees: those of store.hpp. `apply` is one transaction of a write-ahead log; it is on stable
// storage when `apply` returns (sync_mode::full), after the next `flush` (interval), or at a time
// chosen by the system (off). In every mode a killed process loses no change, and the file stays
// consistent, also after a power cut.
// One server at a time: `<path>.lock` is held while the store is open, and a second open fails with
// `locked` and the id of the process. Programs that only read do not interfere; a program that
// holds SQLite's write lock for longer than `busy_for` makes `apply` fail with `locked`.
// Full disk: `free_bytes` is zero while less than `reserve_bytes` are free, so that pushes stop
// first; `<path>.reserve` is deleted if even a transaction without pushes does not fit, and created
// again when there is space. Opening on a full disk works the same way.
// Errors: disk_full, io_error, locked, corrupt, and invalid for a file of another program or a
// newer version; the store stays usable after an error. A change of a job that the file does not
// have is `corrupt`: another program has written to the file.
// Cost: near 2 us of CPU for a job's add and drop in transactions of 1024; a page cache of
// `cache_bytes`, and for keys in use the memory given by `key_lines_in_memory`. The time to open is
// independent of the number of jobs, except near 0.4 s of CPU per million jobs with a key.
//
// docs/reference/store.md describes the file.
//
//     auto store = open_sqlite({.path = "jobs.db", .sync = sync_mode::full});
//     if (!store) return fail(store.error().message);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/store/sqlite/notice.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs {

enum class sync_mode : std::uint8_t {
  full,      // on stable storage before apply returns
  interval,  // on stable storage before flush returns: a power cut loses at most the changes since
  off,       // written by the system, or at the next checkpoint: a power cut loses at most the
             // changes since
};
std::string_view to_string(sync_mode mode) noexcept;
std::optional<sync_mode> sync_mode_from(std::string_view word) noexcept;

struct sqlite_options {
  std::string path{};
  sync_mode sync = sync_mode::full;

  // Reserved on the disk for acks and deletes; less (a 16th) on a disk smaller than 1 GiB.
  std::uint64_t reserve_bytes = std::uint64_t{64} << 20;
  // The size of `<path>.reserve`; zero: no file.
  std::uint64_t reserve_file_bytes = std::uint64_t{16} << 20;

  std::uint64_t cache_bytes = std::uint64_t{4} << 20;
  std::uint32_t checkpoint_pages = 4000;  // of 4096 bytes: the length of the log that starts a
                                          // checkpoint
  milliseconds busy_for{1000};
  // Keys in use that are kept in memory, at most 32 bytes each. Further keys are kept in the file,
  // where a transaction that changes many of them writes many pages.
  std::size_t key_lines_in_memory = std::size_t{1} << 20;

  notice_callback on_notice{};

  // The name of a SQLite VFS, for tests; empty: the system's. With a VFS there are no lock and
  // reserve files and free_bytes() has no limit, unless `files_beside` is true.
  std::string vfs{};
  std::optional<bool> files_beside{};
};

result<std::unique_ptr<store>> open_sqlite(sqlite_options options);

// Disables SQLite's memory statistics in this process, which cost a lock per allocation. Also
// disables SQLite's memory limits, so only for programs that are servers. Must be called before the
// first use of SQLite; has no effect later.
void leave_sqlite_memory_uncounted() noexcept;

}  // namespace sluice::jobs
