// Simulates a full disk in a process that preloads this library: while the file named by
// SLUICE_FULL_DISK exists, operations that need more space than it records fail with ENOSPC.
//
// That file holds one 64-bit number in native byte order, the free bytes, so that a restarted
// process finds the disk as full as before. Growing a file subtracts from it; truncating and
// deleting add to it; overwriting does not change it. While the file named by SLUICE_SHORT_WRITES
// exists, every write writes only half of its bytes.
//
// Only regular files are affected, not sockets and pipes.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool exists(const char* variable) {
  const char* const name = std::getenv(variable);
  struct stat found {};
  return name != nullptr && ::stat(name, &found) == 0;
}

// The number of free bytes, shared by all processes with the same file; null if there is no limit.
// Mapped for each call, since tests create and delete the file.
class free_space {
 public:
  free_space() {
    const char* const name = std::getenv("SLUICE_FULL_DISK");
    if (name == nullptr) return;
    const int file = ::open(name, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void* const at =
        ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (at != MAP_FAILED) bytes_ = static_cast<std::int64_t*>(at);
  }
  free_space(const free_space&) = delete;
  free_space& operator=(const free_space&) = delete;
  ~free_space() {
    if (bytes_ != nullptr) ::munmap(bytes_, sizeof(std::int64_t));
  }

  bool is_limited() const { return bytes_ != nullptr; }
  std::int64_t left() const { return __atomic_load_n(bytes_, __ATOMIC_SEQ_CST); }
  void give(std::int64_t count) { __atomic_add_fetch(bytes_, count, __ATOMIC_SEQ_CST); }
  bool take(std::int64_t count) {
    if (__atomic_sub_fetch(bytes_, count, __ATOMIC_SEQ_CST) >= 0) return true;
    give(count);
    return false;
  }

 private:
  std::int64_t* bytes_ = nullptr;
};

// Returns the size of a regular file; -1 for other files.
off_t size_of(int file) {
  struct stat found {};
  if (::fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) return -1;
  return found.st_size;
}

// Reserves space for growth to `end`, before the write. Fails with ENOSPC if the disk is full.
bool may_grow(int file, off_t end) {
  const auto size = size_of(file);
  if (size < 0 || end <= size) return true;
  free_space space;
  if (!space.is_limited() || space.take(end - size)) return true;
  errno = ENOSPC;
  return false;
}

size_t part_of(int file, size_t count) {
  const bool halves = count > 1 && size_of(file) >= 0 && exists("SLUICE_SHORT_WRITES");
  return halves ? count / 2 : count;
}

int truncate_to(int file, off_t size, int (*real)(int, off_t)) {
  const auto before = size_of(file);
  if (!may_grow(file, size)) return -1;
  const int code = real(file, size);
  free_space space;
  if (code == 0 && before > size && space.is_limited()) space.give(before - size);
  return code;
}

ssize_t write_at(int file, const void* from, size_t count, off_t offset,
                 ssize_t (*real)(int, const void*, size_t, off_t)) {
  const auto part = part_of(file, count);
  if (!may_grow(file, offset + static_cast<off_t>(part))) return -1;
  return real(file, from, part, offset);
}

int report(int code, struct statvfs* stats) {
  const free_space space;
  if (code == 0 && space.is_limited()) {
    const auto bytes = std::max<std::int64_t>(space.left(), 0);
    stats->f_bfree = stats->f_bavail = static_cast<fsblkcnt_t>(bytes) / stats->f_frsize;
  }
  return code;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* from, size_t count) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  const auto size = size_of(file);
  if (size < 0) return real(file, from, count);
  const auto part = part_of(file, count);
  const bool appends = (::fcntl(file, F_GETFL) & O_APPEND) != 0;
  const off_t at = appends ? size : ::lseek(file, 0, SEEK_CUR);
  if (!may_grow(file, at + static_cast<off_t>(part))) return -1;
  return real(file, from, part);
}

ssize_t pwrite(int file, const void* from, size_t count, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return write_at(file, from, count, offset, real);
}

ssize_t pwrite64(int file, const void* from, size_t count, off64_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite64");
  return write_at(file, from, count, offset, real);
}

int ftruncate(int file, off_t size) {
  static const auto real = next<int (*)(int, off_t)>("ftruncate");
  return truncate_to(file, size, real);
}

int ftruncate64(int file, off64_t size) {
  static const auto real = next<int (*)(int, off_t)>("ftruncate64");
  return truncate_to(file, size, real);
}

int fallocate(int file, int mode, off_t offset, off_t count) {
  static const auto real = next<int (*)(int, int, off_t, off_t)>("fallocate");
  return may_grow(file, offset + count) ? real(file, mode, offset, count) : -1;
}

int fallocate64(int file, int mode, off64_t offset, off64_t count) {
  return fallocate(file, mode, offset, count);
}

int posix_fallocate(int file, off_t offset, off_t count) {
  static const auto real = next<int (*)(int, off_t, off_t)>("posix_fallocate");
  return may_grow(file, offset + count) ? real(file, offset, count) : ENOSPC;
}

int posix_fallocate64(int file, off64_t offset, off64_t count) {
  return posix_fallocate(file, offset, count);
}

int unlink(const char* name) {
  static const auto real = next<int (*)(const char*)>("unlink");
  struct stat found {};
  const bool counts = ::stat(name, &found) == 0 && S_ISREG(found.st_mode);
  const int code = real(name);
  free_space space;
  if (code == 0 && counts && space.is_limited()) space.give(found.st_size);
  return code;
}

int statvfs(const char* name, struct statvfs* stats) {
  static const auto real = next<int (*)(const char*, struct statvfs*)>("statvfs");
  return report(real(name, stats), stats);
}

int statvfs64(const char* name, struct statvfs64* stats) {
  return statvfs(name, reinterpret_cast<struct statvfs*>(stats));
}

int fstatvfs(int file, struct statvfs* stats) {
  static const auto real = next<int (*)(int, struct statvfs*)>("fstatvfs");
  return report(real(file, stats), stats);
}

int fstatvfs64(int file, struct statvfs64* stats) {
  return fstatvfs(file, reinterpret_cast<struct statvfs*>(stats));
}

}  // extern "C"
