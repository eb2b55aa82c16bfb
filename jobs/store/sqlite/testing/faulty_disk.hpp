#pragma once

// An in-memory disk for SQLite databases in tests, with faults: power cuts, failed syncs, a full
// disk, short writes, read errors, changed bytes.
//
// Synced data survives a power cut; of unsynced data any part may survive, in any order, torn at
// sectors (disk_file.hpp). The creation or deletion of a file may be lost until the folder is
// synced. The folder is synced by a deletion with that flag, and by the first sync of every handle
// that was opened to create a journal or WAL, even if the file existed already. Otherwise the disk
// behaves like SQLite's own layer on Linux, including the sector size and the error codes; an empty
// file does not exist for SQLITE_ACCESS_EXISTS.
//
// Every change of the disk is a numbered event, so a test can choose the event of a power cut, and
// can check the order of writes, syncs and its own marks.
//
// Guarantees: every function may be called from any thread. Equal calls with equal seeds produce
// equal disks.
// Destruction while a file is open is a broken contract.
// Limits: one folder; several connections of one process, no second process.
//
//     faulty_disk disk;
//     auto keep = open_sqlite({.path = "jobs.db", .vfs = disk.vfs()});
//     disk.power_off_after(40);                  // while a store uses it
//     ...
//     auto after = disk.power_cut(seed);         // the disk after the cut; open a store on it

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jobs::testing {

struct disk_event {
  enum class op : std::uint8_t { create, remove, write, truncate, sync, failed };

  std::uint64_t number = 0;  // counts from 1
  op type = op::write;       // failed: an operation that failed in part or completely
  std::string file;
  std::uint64_t offset = 0;  // of a truncate: the new size
  std::string bytes;         // of a write, if they are kept
};

// The state of unsynced data after a failed sync.
enum class failed_sync : std::uint8_t {
  keeps,    // still dirty: the next sync may succeed
  forgets,  // marked as written and never retried; reads return it
  reverts   // marked as written and never retried; reads return the old data
};

class faulty_disk {
 public:
  struct options {
    std::uint64_t seed = 1;   // of all random faults
    bool keep_bytes = false;  // of writes, in the events
  };

  faulty_disk() : faulty_disk(options{}) {}
  explicit faulty_disk(options o);
  faulty_disk(const faulty_disk&) = delete;
  faulty_disk& operator=(const faulty_disk&) = delete;
  ~faulty_disk();

  // The name of its SQLite VFS.
  const std::string& vfs() const noexcept;

  // Returns the disk after a power cut at this moment. This disk is unchanged.
  std::unique_ptr<faulty_disk> power_cut(std::uint64_t seed) const;
  // Cuts the power during the `events`-th event from now (1: the next one). The data of that event
  // counts as unsynced; from then on every call fails.
  void power_off_after(std::uint64_t events);
  void power_off();
  bool is_off() const;

  // The next `count` syncs fail, of this file or of any.
  void fail_next_sync(std::uint64_t count = 1, failed_sync then = failed_sync::keeps,
                      std::string_view of = {});
  // Sets the system error of all failures, such as ENOSPC of a sync without space.
  void fails_with(int system_errno);
  // Limits further growth to this many bytes, until space is freed or the limit changes.
  void full_after(std::uint64_t bytes);
  void free();
  // Returns the free bytes.
  std::uint64_t free_bytes() const;
  // Set the probability that a write fails after some of its bytes, and that a read fails.
  void short_writes(double probability);
  void read_errors(double probability);
  // Damages `bytes` bytes of a file. Returns false if the file does not exist or is shorter.
  bool corrupt(std::string_view file, std::uint64_t offset, std::uint64_t bytes);
  bool corrupt_page(std::string_view file, std::uint64_t page, std::uint64_t page_bytes = 4096) {
    return corrupt(file, page * page_bytes, page_bytes);
  }

  // The number of the last event.
  std::uint64_t now() const;
  std::vector<disk_event> events() const;
  std::uint64_t syncs() const;       // successful syncs
  std::uint64_t faults() const;      // operations that failed by one of the faults above
  std::uint64_t bytes_used() const;  // the sizes of all files
  std::vector<std::string> files() const;

  class impl;

 private:
  explicit faulty_disk(std::unique_ptr<impl> state);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::testing
