#pragma once

// The implementation of faulty_disk: its folder and its faults (faulty_disk.cpp), and its VFS for
// SQLite (faulty_disk_vfs.cpp).

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/store/sqlite/testing/disk_file.hpp"
#include "jobs/store/sqlite/testing/faulty_disk.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::testing {

// A file with its locks and the memory shared by its users. A power cut discards locks and memory.
struct disk_node {
  static constexpr std::size_t locks_max = SQLITE_SHM_NLOCK;

  std::string name;
  disk_file data;

  int shared = 0;  // holders of at least SQLITE_LOCK_SHARED
  const void* reserved = nullptr;
  const void* pending = nullptr;
  const void* exclusive = nullptr;

  std::vector<std::unique_ptr<char[]>> regions;
  std::array<int, locks_max> shm_shared{};
  std::array<const void*, locks_max> shm_exclusive{};
  int shm_users = 0;
};
using disk_node_ptr = std::shared_ptr<disk_node>;

class faulty_disk::impl {
 public:
  explicit impl(options o);
  ~impl();

  // Called by the VFS. Return SQLite's codes. Each takes the lock.
  int open(const char* name, int flags, disk_node_ptr& opened, bool& created);
  int remove(std::string_view name, bool sync_folder);
  // Returns false for an empty file, as SQLite's layer does for SQLITE_ACCESS_EXISTS.
  bool exists(std::string_view name) const;
  int read(disk_node& from, void* buffer, int count, std::int64_t offset);
  int write(disk_node& node, std::string_view bytes, std::int64_t offset);
  int truncate(disk_node& node, std::int64_t size);
  // Also syncs the folder if `with_folder`.
  int sync(disk_node& node, bool with_folder);
  int last_errno() const {
    const std::lock_guard hold(mutex_);
    return errno_;
  }
  std::int64_t size(const disk_node& node) const;

  // The files of a name: the visible one, the stable one, and all since the last sync of the
  // folder. Null: no file.
  struct entry {
    disk_node_ptr seen;
    disk_node_ptr stored;
    std::vector<disk_node_ptr> dirty;
  };

  void register_vfs();
  bool make_event(disk_event::op type, std::string_view file, std::uint64_t offset = 0,
                  std::string_view bytes = {});
  int fail(int code, std::string_view file, std::uint64_t offset);
  std::uint64_t free_bytes() const;
  std::uint64_t used() const;
  bool happens(double probability);
  void sync_folder();
  void bind(entry& at, disk_node_ptr node);

  // Constant after construction.
  const options options_;
  std::string name_;
  sqlite3_vfs vfs_{};

  mutable seam::os_mutex mutex_;
  // Protected by mutex_.
  random chance_;
  std::map<std::string, entry, std::less<>> folder_;
  std::vector<disk_event> events_;
  std::uint64_t syncs_ = 0;
  std::uint64_t faults_ = 0;
  int open_files_ = 0;
  bool off_ = false;
  std::optional<std::uint64_t> off_at_;  // number of an event
  std::uint64_t failing_syncs_ = 0;
  std::string failing_file_;  // empty: of any
  failed_sync after_failed_sync_ = failed_sync::keeps;
  int errno_ = 0;
  std::optional<std::uint64_t> capacity_;  // in bytes used
  double short_writes_ = 0;
  double read_errors_ = 0;
};

}  // namespace sluice::jobs::testing
