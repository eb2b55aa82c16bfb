#pragma once

// Keeps jobs in one SQLite file, so that what was acknowledged is there after a crash or a power
// cut, and so that any tool that opens SQLite can look into it.
//
// Use it wherever jobs must not be lost. Prefer memory_store when they may be.
//
// Guarantees: those of store.hpp. `apply` is one transaction of a write-ahead log; when it returns,
// the batch is on stable storage (sync_mode::full), will be after the next `flush` (interval), or
// whenever the system likes (off). Whatever the mode, a killed process loses nothing, and the file
// stays whole, also when the power is cut.
// One server at a time: `<path>.lock` is held while the store is open, and a second one is refused
// with `locked` and the number of the process. Programs that only read do not disturb; one that
// holds SQLite's write lock for longer than `busy_for` makes `apply` fail with `locked`.
// Full disk: `room` says none while less than `reserve_bytes` are free, so that pushes stop first;
// `<path>.reserve` is given up when even a batch without pushes finds no room, and made again when
// there is some. Opening on a full disk works the same way.
// Errors: disk_full, io_error, locked, corrupt, and invalid for a file that is not ours to write;
// after one of them the store can be used on. A change of a job that the file does not have is
// `corrupt`: somebody else has written to it.
// Cost: near 2 us of CPU for a job's add and drop in batches of 1024; a page cache of
// `cache_bytes`, and of memory for keys in use what `key_lines_in_memory` says. Opening takes as
// long with ten million jobs as with ten, and near 0.4 s of CPU for a million that have a key.
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
  interval,  // ... before flush returns: a power cut may lose what came after the last one
  off,       // left to the system, or until the log is copied into the file: a power cut may lose
             // what came since
};
std::string_view to_string(sync_mode mode) noexcept;
std::optional<sync_mode> sync_mode_from(std::string_view word) noexcept;

struct sqlite_options {
  std::string path{};
  sync_mode sync = sync_mode::full;

  // Kept free on the disk for acks and deletes; less (a 16th) on a disk smaller than 1 GiB.
  std::uint64_t reserve_bytes = std::uint64_t{64} << 20;
  // Of `<path>.reserve`; zero: none is made.
  std::uint64_t reserve_file_bytes = std::uint64_t{16} << 20;

  std::uint64_t cache_bytes = std::uint64_t{4} << 20;
  std::uint32_t checkpoint_pages = 4000;  // of 4096 bytes: how long the log grows before it is
                                          // copied into the file
  milliseconds busy_for{1000};
  // Keys in use that are kept in memory, 32 bytes each at most. Those beyond are kept in the file,
  // where every batch that changes many of them writes many pages.
  std::size_t key_lines_in_memory = std::size_t{1} << 20;

  notice_callback on_notice{};

  // The name of a SQLite VFS; empty: the system's. A test's disk. The lock and reserve files are
  // left out then, and room() knows no limit, unless `files_beside` says yes.
  std::string vfs{};
  std::optional<bool> files_beside{};
};

result<std::unique_ptr<store>> open_sqlite(sqlite_options options);

// Has SQLite not count the memory that it takes in this process: to count it is a lock for every
// piece. For a program that is a server and nothing else, since SQLite's own limits of memory go
// with it. Before anything of SQLite is used; later it changes nothing.
void leave_sqlite_memory_uncounted() noexcept;

}  // namespace sluice::jobs
