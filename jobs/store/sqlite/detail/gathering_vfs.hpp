#pragma once

// Files for SQLite, the write-ahead log of which is written in few calls.
//
// SQLite writes its log frame by frame, and a frame in two calls: its head of 24 bytes, then its
// page. A transaction of six pages is twelve calls, and they cost a third of what the sync after
// them does. Here what is written one after another is gathered, and goes out in one call when the
// transaction is whole. All other files are those of the VFS below, untouched.
//
// Guarantees: when SQLite has handed over the last frame of a transaction, all of it is with the
// VFS below, before its index tells other connections of it; so it is before a sync and before
// anything of it is read. Bytes reach the file in the order in which they were handed over. A write
// that fails fails the call that sends it off, and every further write of that transaction: what
// was gathered is forgotten, and the log goes on where SQLite takes it up again.
//
// Cost: 128 KiB for each log that is open, and a copy of each page.
//
//     const auto files = gathering_vfs::on("");
//     sqlite3_open_v2(path, &db, flags, files->name());
//
// It must outlive the connections that were opened with it. Thread-safe, as the one below is.

#include <sqlite3.h>

#include <memory>
#include <string>

namespace sluice::jobs::detail {

class gathering_vfs {
 public:
  // What SQLite is given.
  struct stacked {
    sqlite3_vfs vfs{};  // first: SQLite knows nothing else
    sqlite3_vfs* below = nullptr;
  };

  // On top of the one of this name; empty: the default. Null: there is none.
  static std::shared_ptr<const gathering_vfs> on(const std::string& below);

  explicit gathering_vfs(sqlite3_vfs& below);
  gathering_vfs(const gathering_vfs&) = delete;
  gathering_vfs& operator=(const gathering_vfs&) = delete;
  ~gathering_vfs();

  const char* name() const noexcept { return name_.c_str(); }

 private:
  const std::string name_;
  stacked it_;
};

}  // namespace sluice::jobs::detail
