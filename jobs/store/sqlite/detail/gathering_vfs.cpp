#include "jobs/store/sqlite/detail/gathering_vfs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "jobs/store/sqlite/detail/log_format.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

using offset_type = sqlite3_int64;

// The most that SQLite's own layer writes in one call: of a larger number it takes the lower 17
// bits.
constexpr int gathered_max = (1 << 17) - 1;

bool is_last_of_transaction(const char* frame_head) noexcept {
  return std::any_of(frame_head + at_size_after, frame_head + at_size_after + 4,
                     [](char byte) { return byte != 0; });
}

// A log that is open: made by xOpen in memory of SQLite's, ended by xClose.
class log_file {
 public:
  log_file(sqlite3_file* below, std::unique_ptr<char[]> room) noexcept
      : below_(below), gathered_(std::move(room)) {}

  static log_file& of(sqlite3_file* file) noexcept { return *reinterpret_cast<log_file*>(file); }
  sqlite3_file* below() const noexcept { return below_; }
  const sqlite3_io_methods& calls() const noexcept { return *below_->pMethods; }

  int write(const char* from, int count, offset_type offset) noexcept;
  int read(void* to, int count, offset_type offset) noexcept;
  int send_off() noexcept;

  sqlite3_file base{};  // first: SQLite knows nothing else

 private:
  static constexpr offset_type no_place = -1;

  offset_type gathered_from() const noexcept { return next_ - count_; }
  int write_at_once(const char* from, int count, offset_type offset) noexcept;

  sqlite3_file* const below_;  // behind this object
  const std::unique_ptr<char[]> gathered_;
  int count_ = 0;                // of the gathered bytes
  offset_type next_ = no_place;  // where a write goes on with the one before
  bool is_last_frame_ = false;   // what comes next is the page that ends a transaction
  offset_type failed_from_ = no_place;
  int failed_with_ = SQLITE_OK;
};

int log_file::write(const char* from, int count, offset_type offset) noexcept {
  if (failed_from_ != no_place) {
    if (offset > failed_from_) return failed_with_;  // what it goes on with is not there
    failed_from_ = no_place;
  }
  if (offset != next_ || count > gathered_max) return write_at_once(from, count, offset);
  if (count_ + count > gathered_max) {
    if (const int rc = send_off(); rc != SQLITE_OK) return rc;
  }
  std::memcpy(gathered_.get() + count_, from, static_cast<std::size_t>(count));
  count_ += count;
  next_ += count;
  if (count == frame_head_bytes) {
    is_last_frame_ = is_last_of_transaction(from);
    return SQLITE_OK;
  }
  return is_last_frame_ ? send_off() : SQLITE_OK;
}

// Pages and heads that are written anew where they are, and what begins at another place.
int log_file::write_at_once(const char* from, int count, offset_type offset) noexcept {
  if (const int rc = send_off(); rc != SQLITE_OK) return rc;
  if (const int rc = calls().xWrite(below_, from, count, offset); rc != SQLITE_OK) return rc;
  if (count != frame_head_bytes && count != log_head_bytes) return SQLITE_OK;
  next_ = offset + count;
  is_last_frame_ = count == frame_head_bytes && is_last_of_transaction(from);
  return SQLITE_OK;
}

int log_file::send_off() noexcept {
  if (count_ == 0) return SQLITE_OK;
  const offset_type from = gathered_from();
  const int rc = calls().xWrite(below_, gathered_.get(), count_, from);
  count_ = 0;
  if (rc != SQLITE_OK) {
    failed_from_ = from;
    failed_with_ = rc;
  }
  return rc;
}

int log_file::read(void* to, int count, offset_type offset) noexcept {
  if (count_ > 0 && offset + count > gathered_from()) {
    if (const int rc = send_off(); rc != SQLITE_OK) return rc;
  }
  return calls().xRead(below_, to, count, offset);
}

int write_log(sqlite3_file* file, const void* from, int count, sqlite3_int64 offset) {
  return log_file::of(file).write(static_cast<const char*>(from), count, offset);
}
int read_log(sqlite3_file* file, void* to, int count, sqlite3_int64 offset) {
  return log_file::of(file).read(to, count, offset);
}

// A call of the VFS below, once it has all that was written.
template <class Call, class... Args>
int after_sending(sqlite3_file* file, Call call, Args... args) {
  auto& log = log_file::of(file);
  if (const int rc = log.send_off(); rc != SQLITE_OK) return rc;
  return (log.calls().*call)(log.below(), args...);
}

int sync_log(sqlite3_file* file, int flags) {
  return after_sending(file, &sqlite3_io_methods::xSync, flags);
}
int size_log(sqlite3_file* file, sqlite3_int64* size) {
  return after_sending(file, &sqlite3_io_methods::xFileSize, size);
}
int truncate_log(sqlite3_file* file, sqlite3_int64 size) {
  return after_sending(file, &sqlite3_io_methods::xTruncate, size);
}
int control_log(sqlite3_file* file, int what, void* argument) {
  return after_sending(file, &sqlite3_io_methods::xFileControl, what, argument);
}

// What is gathered still is a transaction without its end, which nobody would read.
int close_log(sqlite3_file* file) {
  auto& log = log_file::of(file);
  sqlite3_file* const below = log.below();
  log.~log_file();
  return below->pMethods->xClose(below);
}

int sector_size_of(sqlite3_file* file) {
  const auto& log = log_file::of(file);
  return log.calls().xSectorSize(log.below());
}
int characteristics_of(sqlite3_file* file) {
  const auto& log = log_file::of(file);
  return log.calls().xDeviceCharacteristics(log.below());
}

// SQLite locks the database, never its log.
int no_lock(sqlite3_file*, int) {
  return SQLITE_OK;
}
int no_reservation(sqlite3_file*, int* answer) {
  *answer = 0;
  return SQLITE_OK;
}

constexpr sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = close_log,
    .xRead = read_log,
    .xWrite = write_log,
    .xTruncate = truncate_log,
    .xSync = sync_log,
    .xFileSize = size_log,
    .xLock = no_lock,
    .xUnlock = no_lock,
    .xCheckReservedLock = no_reservation,
    .xFileControl = control_log,
    .xSectorSize = sector_size_of,
    .xDeviceCharacteristics = characteristics_of,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

using stacked = gathering_vfs::stacked;

sqlite3_vfs& below(sqlite3_vfs* vfs) noexcept {
  return *reinterpret_cast<stacked*>(vfs)->below;
}

// As SQLite aligns what it allocates.
constexpr int log_file_bytes = (static_cast<int>(sizeof(log_file)) + 7) / 8 * 8;

int open_on(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  sqlite3_vfs& on = below(vfs);
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_WAL) == 0) return on.xOpen(&on, name, file, flags, flags_out);
  std::unique_ptr<char[]> room(new (std::nothrow) char[gathered_max]);
  if (room == nullptr) return SQLITE_NOMEM;
  auto* const inner =
      reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + log_file_bytes);
  inner->pMethods = nullptr;
  const int rc = on.xOpen(&on, name, inner, flags, flags_out);
  if (rc != SQLITE_OK) {
    if (inner->pMethods != nullptr) inner->pMethods->xClose(inner);
    return rc;
  }
  auto* const made = new (file) log_file(inner, std::move(room));
  made->base.pMethods = &log_methods;
  return SQLITE_OK;
}

template <auto Call, class... Args>
int pass_on(sqlite3_vfs* vfs, Args... args) {
  return (below(vfs).*Call)(&below(vfs), args...);
}

std::string new_name() {
  static atomic<std::uint64_t> made = 0;
  return "sluice-gathering-" + std::to_string(++made);
}

}  // namespace

std::shared_ptr<const gathering_vfs> gathering_vfs::on(const std::string& name) {
  sqlite3_vfs* const found = sqlite3_vfs_find(name.empty() ? nullptr : name.c_str());
  return found == nullptr ? nullptr : std::make_shared<gathering_vfs>(*found);
}

gathering_vfs::gathering_vfs(sqlite3_vfs& on) : name_(new_name()) {
  it_.below = &on;
  it_.vfs.iVersion = 1;
  it_.vfs.szOsFile = log_file_bytes + on.szOsFile;
  it_.vfs.mxPathname = on.mxPathname;
  it_.vfs.zName = name_.c_str();
  it_.vfs.xOpen = open_on;
  it_.vfs.xDelete = pass_on<&sqlite3_vfs::xDelete>;
  it_.vfs.xAccess = pass_on<&sqlite3_vfs::xAccess>;
  it_.vfs.xFullPathname = pass_on<&sqlite3_vfs::xFullPathname>;
  it_.vfs.xRandomness = pass_on<&sqlite3_vfs::xRandomness>;
  it_.vfs.xSleep = pass_on<&sqlite3_vfs::xSleep>;
  it_.vfs.xCurrentTime = pass_on<&sqlite3_vfs::xCurrentTime>;
  it_.vfs.xGetLastError = pass_on<&sqlite3_vfs::xGetLastError>;
  check(sqlite3_vfs_register(&it_.vfs, 0) == SQLITE_OK, "gathering_vfs", "SQLite to take it");
}

gathering_vfs::~gathering_vfs() {
  sqlite3_vfs_unregister(&it_.vfs);
}

}  // namespace sluice::jobs::detail
