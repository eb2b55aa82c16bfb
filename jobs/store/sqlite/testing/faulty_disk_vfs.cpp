// The VFS of a faulty_disk and its files: each method forwards from C to faulty_disk::impl. Locks
// and shared memory are those of one process, on the heap.

#include <cstring>
#include <new>

#include "jobs/store/sqlite/testing/faulty_disk_impl.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::testing {
namespace {

using disk = faulty_disk::impl;

constexpr int sector_size = 4096;  // as SQLite's own layer on Linux
constexpr int path_max = 1024;

// SQLite's object of an open file: constructed by xOpen in memory of SQLite, destroyed by xClose.
struct open_file {
  sqlite3_file base;  // must be first: SQLite uses only this part
  disk* on;
  disk_node_ptr node;
  int lock = SQLITE_LOCK_NONE;
  int persist_wal = 0;
  bool uses_shm = false;
  bool syncs_folder = false;  // its next sync also makes names durable
};

open_file& of(sqlite3_file* file) {
  return *reinterpret_cast<open_file*>(file);
}
disk& of(sqlite3_vfs* vfs) {
  return *static_cast<disk*>(vfs->pAppData);
}
sqlite3_vfs* system_vfs() {
  return sqlite3_vfs_find("unix");
}

// The locks of a connection on a database. A stronger lock includes the weaker ones.
void drop_strong_locks(open_file& me) {
  auto& node = *me.node;
  if (node.exclusive == &me) node.exclusive = nullptr;
  if (node.pending == &me) node.pending = nullptr;
  if (node.reserved == &me) node.reserved = nullptr;
}

int lock_file(sqlite3_file* file, int wanted) {
  auto& me = of(file);
  const std::lock_guard hold(me.on->mutex_);
  auto& node = *me.node;
  if (me.lock >= wanted) return SQLITE_OK;
  if (wanted == SQLITE_LOCK_SHARED) {
    if (node.pending != nullptr || node.exclusive != nullptr) return SQLITE_BUSY;
    ++node.shared;
    me.lock = wanted;
    return SQLITE_OK;
  }
  check(me.lock >= SQLITE_LOCK_SHARED, "faulty_disk", "a shared lock before a stronger one");
  if (node.reserved != nullptr && node.reserved != &me) return SQLITE_BUSY;
  if (wanted == SQLITE_LOCK_RESERVED) {
    node.reserved = &me;
    me.lock = wanted;
    return SQLITE_OK;
  }
  if (node.pending != nullptr && node.pending != &me) return SQLITE_BUSY;
  node.pending = &me;  // no new readers
  me.lock = SQLITE_LOCK_PENDING;
  if (node.shared > 1) return SQLITE_BUSY;
  node.exclusive = &me;
  me.lock = SQLITE_LOCK_EXCLUSIVE;
  return SQLITE_OK;
}

int unlock_file(sqlite3_file* file, int wanted) {
  auto& me = of(file);
  const std::lock_guard hold(me.on->mutex_);
  if (me.lock <= wanted) return SQLITE_OK;
  drop_strong_locks(me);
  if (wanted == SQLITE_LOCK_NONE) --me.node->shared;
  me.lock = wanted;
  return SQLITE_OK;
}

int is_reserved(sqlite3_file* file, int* answer) {
  auto& me = of(file);
  const std::lock_guard hold(me.on->mutex_);
  *answer = me.node->reserved != nullptr ? 1 : 0;
  return SQLITE_OK;
}

int map_shm(sqlite3_file* file, int region, int bytes, int extend, void volatile** at) {
  auto& me = of(file);
  const std::lock_guard hold(me.on->mutex_);
  auto& node = *me.node;
  if (!me.uses_shm) {
    me.uses_shm = true;
    ++node.shm_users;
  }
  const auto index = static_cast<std::size_t>(region);
  *at = nullptr;
  if (index >= node.regions.size() && extend == 0) return SQLITE_OK;
  while (index >= node.regions.size()) {
    node.regions.push_back(std::make_unique<char[]>(static_cast<std::size_t>(bytes)));
  }
  *at = node.regions[index].get();
  return SQLITE_OK;
}

int lock_shm(sqlite3_file* file, int first, int count, int flags) {
  auto& me = of(file);
  const std::lock_guard hold(me.on->mutex_);
  auto& node = *me.node;
  const auto from = static_cast<std::size_t>(first);
  const auto end = from + static_cast<std::size_t>(count);
  check(end <= disk_node::locks_max, "faulty_disk", "a lock of shared memory that exists");
  const bool shared = (flags & SQLITE_SHM_SHARED) != 0;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    for (auto i = from; i < end; ++i) {
      if (shared) {
        if (node.shm_shared[i] > 0) --node.shm_shared[i];
      } else if (node.shm_exclusive[i] == &me) {
        node.shm_exclusive[i] = nullptr;
      }
    }
    return SQLITE_OK;
  }
  for (auto i = from; i < end; ++i) {
    if (node.shm_exclusive[i] != nullptr) return SQLITE_BUSY;
    if (!shared && node.shm_shared[i] > 0) return SQLITE_BUSY;
  }
  for (auto i = from; i < end; ++i) {
    if (shared) {
      ++node.shm_shared[i];
    } else {
      node.shm_exclusive[i] = &me;
    }
  }
  return SQLITE_OK;
}

void fence_shm(sqlite3_file* file) {
  const std::lock_guard fence(of(file).on->mutex_);
}

int unmap_shm(sqlite3_file* file, int) {
  auto& me = of(file);
  const std::lock_guard hold(me.on->mutex_);
  if (!me.uses_shm) return SQLITE_OK;
  me.uses_shm = false;
  // As after the last process closed the -shm file: the next one rebuilds it from the WAL.
  if (--me.node->shm_users == 0) me.node->regions.clear();
  return SQLITE_OK;
}

int close_file(sqlite3_file* file) {
  auto& me = of(file);
  unmap_shm(file, 0);
  unlock_file(file, SQLITE_LOCK_NONE);
  disk& on = *me.on;
  me.~open_file();
  const std::lock_guard hold(on.mutex_);
  --on.open_files_;
  return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* buffer, int count, sqlite3_int64 offset) {
  return of(file).on->read(*of(file).node, buffer, count, offset);
}
int write_file(sqlite3_file* file, const void* from, int count, sqlite3_int64 offset) {
  const std::string_view bytes(static_cast<const char*>(from), static_cast<std::size_t>(count));
  return of(file).on->write(*of(file).node, bytes, offset);
}
int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  return of(file).on->truncate(*of(file).node, size);
}
int sync_file(sqlite3_file* file, int) {
  auto& me = of(file);
  const int code = me.on->sync(*me.node, me.syncs_folder);
  if (code == SQLITE_OK) me.syncs_folder = false;
  return code;
}
int size_file(sqlite3_file* file, sqlite3_int64* size) {
  *size = of(file).on->size(*of(file).node);
  return SQLITE_OK;
}

int control_file(sqlite3_file* file, int opcode, void* argument) {
  if (opcode != SQLITE_FCNTL_PERSIST_WAL) return SQLITE_NOTFOUND;
  auto& value = *static_cast<int*>(argument);
  if (value >= 0) of(file).persist_wal = value != 0 ? 1 : 0;
  value = of(file).persist_wal;
  return SQLITE_OK;
}

int sector_size_of(sqlite3_file*) {
  return sector_size;
}
// As on Linux: a write does not change adjacent bytes, even if it is interrupted.
int characteristics_of(sqlite3_file*) {
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

constexpr sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = size_file,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = is_reserved,
    .xFileControl = control_file,
    .xSectorSize = sector_size_of,
    .xDeviceCharacteristics = characteristics_of,
    .xShmMap = map_shm,
    .xShmLock = lock_shm,
    .xShmBarrier = fence_shm,
    .xShmUnmap = unmap_shm,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open_on(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  file->pMethods = nullptr;
  disk_node_ptr node;
  bool created = false;
  const int code = of(vfs).open(name, flags, node, created);
  if (code != SQLITE_OK) return code;
  auto* const made = new (file) open_file{{}, &of(vfs), std::move(node)};
  made->base.pMethods = &file_methods;
  // As in unixOpen: the flags decide, not the existence of the file.
  constexpr int journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
  made->syncs_folder = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & journals) != 0;
  if (flags_out != nullptr) *flags_out = flags;
  return SQLITE_OK;
}

int remove_from(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  return of(vfs).remove(name, sync_folder != 0);
}

int access_on(sqlite3_vfs* vfs, const char* name, int, int* answer) {
  *answer = of(vfs).exists(name) ? 1 : 0;
  return SQLITE_OK;
}

int full_name(sqlite3_vfs*, const char* name, int size, char* result) {
  const auto length = std::strlen(name) + 1;
  if (length > static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(result, name, length);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs*, int count, char* buffer) {
  return system_vfs()->xRandomness(system_vfs(), count, buffer);
}
int pause_for(sqlite3_vfs*, int microseconds) {
  return system_vfs()->xSleep(system_vfs(), microseconds);
}
int current_time(sqlite3_vfs*, double* days) {
  return system_vfs()->xCurrentTime(system_vfs(), days);
}
int last_error(sqlite3_vfs* vfs, int, char*) {
  return static_cast<disk*>(vfs->pAppData)->last_errno();
}

}  // namespace

void faulty_disk::impl::register_vfs() {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(open_file);
  vfs_.mxPathname = path_max;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = open_on;
  vfs_.xDelete = remove_from;
  vfs_.xAccess = access_on;
  vfs_.xFullPathname = full_name;
  vfs_.xRandomness = randomness;
  vfs_.xSleep = pause_for;
  vfs_.xCurrentTime = current_time;
  vfs_.xGetLastError = last_error;
  check(sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK, "faulty_disk", "SQLite to take it");
}

}  // namespace sluice::jobs::testing
