#pragma once

// A disk for tests, in memory, that SQLite can keep a database on, and that can do to it what disks
// do: lose power, fail to sync, fill up, write half, not read, rot.
//
// Everything that was synced survives a power cut; of everything else any part may, in any order,
// torn at sectors (disk_file.hpp). A file that was made or deleted may turn out not to have been
// until the folder is synced. The folder is synced by a deletion with that flag, and by the first
// sync of every handle that was opened to create a journal or WAL, even if the file existed
// already. Otherwise the disk behaves as SQLite's own layer on Linux does, from the sector size it
// names to the error codes; an empty file does not exist for SQLITE_ACCESS_EXISTS.
//
// Every change of the disk is an event with a number, so a test can say at which of them the power
// goes, and can show in which order writes, syncs and its own doings came.
//
// Guarantees: any thread may call anything. The same calls with the same seeds give the same disk.
// Destruction while a file is open is a broken contract.
// Limits: one folder; several connections of one process, no second process.
//
//     faulty_disk disk;
//     auto keep = open_sqlite({.path = "jobs.db", .vfs = disk.vfs()});
//     disk.power_off_after(40);                  // while somebody uses it
//     ...
//     auto after = disk.power_cut(seed);         // what is left; open that

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jobs::testing {

struct disk_event {
  enum class op : std::uint8_t { create, remove, write, truncate, sync, failed };

  std::uint64_t number = 0;  // counts from 1
  op what = op::write;       // failed: one that was refused, in part or whole
  std::string file;
  std::uint64_t offset = 0;  // of a truncate: the new size
  std::string bytes;         // of a write, if they are kept
};

// What has become of unsynced data after a sync that failed.
enum class failed_sync : std::uint8_t {
  keeps,    // it is still to be written: the next sync may succeed
  forgets,  // the system takes it for written and will not try again, but reads still see it
  reverts   // the same, and reads see what was there before
};

class faulty_disk {
 public:
  struct options {
    std::uint64_t seed = 1;   // of everything that happens with a probability
    bool keep_bytes = false;  // of writes, in the events
  };

  faulty_disk() : faulty_disk(options{}) {}
  explicit faulty_disk(options o);
  faulty_disk(const faulty_disk&) = delete;
  faulty_disk& operator=(const faulty_disk&) = delete;
  ~faulty_disk();

  // The name under which SQLite knows it.
  const std::string& vfs() const noexcept;

  // The disk as it would be if the power went now. This one goes on.
  std::unique_ptr<faulty_disk> power_cut(std::uint64_t seed) const;
  // The power goes for good while the `events`-th event from now is under way (1: the next one).
  // What was to be written by it counts as not synced; from then on every call fails.
  void power_off_after(std::uint64_t events);
  void power_off();
  bool is_off() const;

  // The next `count` syncs fail, of this file or of any.
  void fail_next_sync(std::uint64_t count = 1, failed_sync then = failed_sync::keeps,
                      std::string_view of = {});
  // The system's number for whatever fails, as ENOSPC of a sync that finds no room.
  void fails_with(int system_errno);
  // No more than this many further bytes, until space is freed or there is room again.
  void full_after(std::uint64_t bytes);
  void free();
  // How many more bytes there is room for.
  std::uint64_t room() const;
  // A write fails after some of its bytes, a read fails, with this probability.
  void short_writes(double probability);
  void read_errors(double probability);
  // Damages `bytes` bytes of a file. False: there is no such file, or it ends before.
  bool corrupt(std::string_view file, std::uint64_t offset, std::uint64_t bytes);
  bool corrupt_page(std::string_view file, std::uint64_t page, std::uint64_t page_bytes = 4096) {
    return corrupt(file, page * page_bytes, page_bytes);
  }

  // The number of the last event.
  std::uint64_t now() const;
  std::vector<disk_event> events() const;
  std::uint64_t syncs() const;       // that succeeded
  std::uint64_t faults() const;      // operations that failed for one of the reasons above
  std::uint64_t bytes_used() const;  // the sizes of all files
  std::vector<std::string> files() const;

  class impl;

 private:
  explicit faulty_disk(std::unique_ptr<impl> it);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::testing
