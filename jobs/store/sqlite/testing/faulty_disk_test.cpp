// The disk itself, under SQLite: synced data survives, and unsafe settings lose data.

#include "jobs/store/sqlite/testing/faulty_disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::testing::faulty_disk_test {
namespace {

struct setting {
  std::string journal = "WAL";
  std::string synchronous = "FULL";
};

// Adds pairs of rows, a pair per transaction, with a checkpoint or a deletion every third time.
class pairs {
 public:
  pairs(const faulty_disk& on, const setting& mode) : db_(on) {
    db_.run("PRAGMA journal_mode=" + mode.journal);
    db_.run("PRAGMA synchronous=" + mode.synchronous);
    db_.run("PRAGMA wal_autocheckpoint=12");
    db_.run("CREATE TABLE IF NOT EXISTS pair(n INTEGER, half INTEGER, data TEXT)");
  }

  bool add(std::int64_t n) {
    const auto number = std::to_string(n);
    const auto data = "'" + std::string(300, static_cast<char>('a' + n % 26)) + "'";
    return db_.run("BEGIN; INSERT INTO pair VALUES(" + number + ",1," + data +
                   "); INSERT INTO pair VALUES(" + number + ",2," + data + "); COMMIT") ==
           SQLITE_OK;
  }
  void roll_back() { db_.run("ROLLBACK"); }
  raw_database& database() { return db_; }

 private:
  raw_database db_;
};

struct verdict {
  std::int64_t lost = 0;     // committed pairs that do not exist
  std::int64_t torn = 0;     // pairs with only one half
  std::int64_t unsound = 0;  // SQLite finds the file damaged, or cannot read it
};

// Examines the database after `committed` pairs, counted from 1.
void judge(const faulty_disk& left, std::int64_t committed, verdict& all) {
  raw_database found(left);
  if (!found.is_sound()) {
    ++all.unsound;
    return;
  }
  if (committed == 0) return;
  const auto present =
      found.number("SELECT count(DISTINCT n) FROM pair WHERE n <= " + std::to_string(committed));
  all.lost += committed - std::max<std::int64_t>(present, 0);
  const auto halves =
      found.number("SELECT count(*) FROM (SELECT n FROM pair GROUP BY n HAVING count(*) <> 2)");
  all.torn += std::max<std::int64_t>(halves, 0);
}

// Cuts the power at a random event of a run of commits, and examines the result.
verdict cut_power(int times, const setting& mode, std::uint64_t seed) {
  verdict all;
  std::int64_t commits = 0;
  random chance(seed);
  for (int i = 0; i < times; ++i) {
    faulty_disk disk;
    std::int64_t committed = 0;
    {
      disk.power_off_after(1 + chance.below(250));
      pairs run(disk, mode);
      while (committed < 60 && run.add(committed + 1)) ++committed;
    }
    commits += committed;
    judge(*disk.power_cut(chance.next()), committed, all);
  }
  std::printf(
      "[          ] %d power cuts, seed %lu, %ld commits: lost %ld, torn %ld, unsound %ld\n", times,
      static_cast<unsigned long>(seed), static_cast<long>(commits), static_cast<long>(all.lost),
      static_cast<long>(all.torn), static_cast<long>(all.unsound));
  EXPECT_GT(commits, times);
  return all;
}

TEST(faulty_disk_test, CommitsSurviveAThousandPowerCutsWithAWal) {
  const auto found = cut_power(1000, {"WAL", "FULL"}, 1);
  EXPECT_EQ(found.lost, 0);
  EXPECT_EQ(found.torn, 0);
  EXPECT_EQ(found.unsound, 0);
}

TEST(faulty_disk_test, CommitsSurviveAThousandPowerCutsWithAJournal) {
  // In this mode the deletion of the journal is the commit, which needs a sync of the folder:
  // EXTRA.
  const auto found = cut_power(1000, {"DELETE", "EXTRA"}, 2);
  EXPECT_EQ(found.lost, 0);
  EXPECT_EQ(found.torn, 0);
  EXPECT_EQ(found.unsound, 0);
}

TEST(faulty_disk_test, WithoutSyncsTheSameCheckFindsLosses) {
  EXPECT_GT(cut_power(200, {"WAL", "OFF"}, 3).lost, 0);
  const auto journal = cut_power(200, {"DELETE", "OFF"}, 4);
  EXPECT_GT(journal.lost + journal.torn + journal.unsound, 0);
}

TEST(faulty_disk_test, SyncingOnlyAtCheckpointsLosesCommitsButNeverHalves) {
  const auto found = cut_power(300, {"WAL", "NORMAL"}, 5);
  EXPECT_GT(found.lost, 0);
  EXPECT_EQ(found.torn, 0);
  EXPECT_EQ(found.unsound, 0);
}

// Commits with repeated failures and retries, then cuts the power.
template <class Trouble>
verdict commit_through(Trouble trouble, int times, std::uint64_t seed) {
  verdict all;
  std::uint64_t faults = 0;
  random chance(seed);
  for (int i = 0; i < times; ++i) {
    faulty_disk disk({.seed = chance.next()});
    std::int64_t committed = 0;
    {
      pairs run(disk, {});
      for (int attempt = 0; attempt < 60; ++attempt) {
        trouble(disk, chance);
        if (run.add(committed + 1)) {
          ++committed;
        } else {
          run.roll_back();
        }
      }
      faults += disk.faults();
      disk.power_off();
    }
    // A failed commit may be stored nevertheless: its number was used again, so a pair can exist
    // twice, but never half of one.
    judge(*disk.power_cut(chance.next()), committed, all);
  }
  EXPECT_GT(faults, 0U);
  return all;
}

class failing_syncs_test : public ::testing::TestWithParam<failed_sync> {};

TEST_P(failing_syncs_test, NothingCommittedIsLost) {
  const auto found = commit_through(
      [](faulty_disk& disk, random& chance) {
        if (chance.below(4) == 0) disk.fail_next_sync(1 + chance.below(3), GetParam());
      },
      150, 6);
  EXPECT_EQ(found.lost, 0);
  EXPECT_EQ(found.unsound, 0);
}

std::string name_of(const ::testing::TestParamInfo<failed_sync>& mode) {
  return mode.param == failed_sync::keeps     ? "Keeps"
         : mode.param == failed_sync::forgets ? "Forgets"
                                              : "Reverts";
}

INSTANTIATE_TEST_SUITE_P(faulty_disk, failing_syncs_test,
                         ::testing::Values(failed_sync::keeps, failed_sync::forgets,
                                           failed_sync::reverts),
                         name_of);

TEST(faulty_disk_test, ShortWritesFailOnlyTheirCommit) {
  const auto found = commit_through(
      [](faulty_disk& disk, random& chance) { disk.short_writes(chance.below(2) * 0.1); }, 150, 7);
  EXPECT_EQ(found.lost, 0);
  EXPECT_EQ(found.torn, 0);
  EXPECT_EQ(found.unsound, 0);
}

TEST(faulty_disk_test, AFullDiskFailsWritesUntilSpaceIsFree) {
  faulty_disk disk;
  pairs run(disk, {});
  ASSERT_TRUE(run.add(1));
  disk.full_after(2000);
  EXPECT_EQ(disk.free_bytes(), 2000U);
  EXPECT_EQ(run.database().run("INSERT INTO pair VALUES(2,1,'x')"), SQLITE_FULL);
  run.roll_back();
  EXPECT_EQ(run.database().number("SELECT count(*) FROM pair"), 2);
  disk.free();
  EXPECT_TRUE(run.add(2));
  EXPECT_TRUE(run.database().is_sound());
  EXPECT_GT(disk.faults(), 0U);
}

TEST(faulty_disk_test, AReadErrorIsReportedAndTransient) {
  faulty_disk disk;
  {
    pairs run(disk, {});
    ASSERT_TRUE(run.add(1));
  }
  raw_database again(disk);
  disk.read_errors(1);
  EXPECT_EQ(again.run("SELECT * FROM pair") & 0xff, SQLITE_IOERR);
  disk.read_errors(0);
  EXPECT_EQ(again.number("SELECT count(*) FROM pair"), 2);
}

TEST(faulty_disk_test, CorruptionIsFound) {
  faulty_disk disk;
  {
    pairs run(disk, {});
    for (int n = 1; n <= 30; ++n) ASSERT_TRUE(run.add(n));
  }
  ASSERT_TRUE(disk.corrupt_page("raw.db", 1));
  EXPECT_FALSE(disk.corrupt_page("raw.db", 1000));
  EXPECT_FALSE(disk.corrupt_page("no.db", 0));
  raw_database again(disk);
  EXPECT_FALSE(again.is_sound());
}

TEST(faulty_disk_test, ACommitReturnsAfterTheSyncOfItsBytes) {
  faulty_disk disk({.keep_bytes = true});
  pairs run(disk, {});
  for (int n = 1; n <= 20; ++n) {
    const auto token = std::string(300, static_cast<char>('a' + n % 26));
    ASSERT_TRUE(run.add(n));
    const auto returned = disk.now();
    const auto events = disk.events();
    const auto written = std::ranges::find_if(events, [&](const disk_event& e) {
      return e.type == disk_event::op::write && e.bytes.find(token) != std::string::npos;
    });
    ASSERT_NE(written, events.end());
    const auto synced = std::find_if(written, events.end(), [&](const disk_event& e) {
      return e.type == disk_event::op::sync && e.file == written->file;
    });
    ASSERT_NE(synced, events.end());
    EXPECT_LE(synced->number, returned);
  }
}

TEST(faulty_disk_test, ThePowerFailsAtTheRequestedEvent) {
  faulty_disk disk;
  pairs run(disk, {});
  ASSERT_TRUE(run.add(1));
  const auto before = disk.now();
  disk.power_off_after(3);
  EXPECT_FALSE(disk.is_off());
  while (run.add(2)) continue;
  EXPECT_TRUE(disk.is_off());
  EXPECT_EQ(disk.now(), before + 3);
  EXPECT_EQ(disk.events().back().type, disk_event::op::failed);
  EXPECT_NE(run.database().run("SELECT * FROM pair"), SQLITE_OK);
}

TEST(faulty_disk_test, AnUnsyncedFolderMayLoseOrKeepAFile) {
  bool there = false;
  bool gone = false;
  bool back = false;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    faulty_disk disk;
    {
      raw_database made(disk);
      made.run("PRAGMA synchronous=OFF");
      made.run("PRAGMA journal_mode=WAL");
      made.run("CREATE TABLE t(a)");
      const auto cut = disk.power_cut(seed);
      (cut->files().empty() ? gone : there) = true;
      made.run("PRAGMA synchronous=FULL");
      made.run("INSERT INTO t VALUES(1)");
    }
    // SQLite does not sync the folder when it deletes the WAL at the end.
    const auto left = disk.power_cut(seed)->files();
    back = back || std::ranges::count(left, "raw.db-wal") > 0;
  }
  EXPECT_TRUE(there);
  EXPECT_TRUE(gone);
  EXPECT_TRUE(back);
}

// Opens a file like SQLite, without SQLite.
class raw_file {
 public:
  raw_file(const std::string& vfs, std::string name, int flags)
      : vfs_(sqlite3_vfs_find(vfs.c_str())),
        name_(std::move(name)),
        memory_(static_cast<std::size_t>(vfs_->szOsFile) / sizeof(std::max_align_t) + 1) {
    constexpr int usual = SQLITE_OPEN_READWRITE;
    EXPECT_EQ(vfs_->xOpen(vfs_, name_.c_str(), file(), usual | flags, nullptr), SQLITE_OK);
  }
  raw_file(const raw_file&) = delete;
  raw_file& operator=(const raw_file&) = delete;
  ~raw_file() { file()->pMethods->xClose(file()); }

  void write() { EXPECT_EQ(file()->pMethods->xWrite(file(), "x", 1, 0), SQLITE_OK); }
  void sync() { EXPECT_EQ(file()->pMethods->xSync(file(), SQLITE_SYNC_NORMAL), SQLITE_OK); }
  bool exists() {
    int answer = -1;
    EXPECT_EQ(vfs_->xAccess(vfs_, name_.c_str(), SQLITE_ACCESS_EXISTS, &answer), SQLITE_OK);
    return answer == 1;
  }

 private:
  sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }

  sqlite3_vfs* const vfs_;
  const std::string name_;
  std::vector<std::max_align_t> memory_;
};

constexpr int makes_log = SQLITE_OPEN_WAL | SQLITE_OPEN_CREATE;
constexpr int makes_journal = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_CREATE;

// Makes a journal durable and deletes it without a sync of the folder.
void make_and_delete_journal(const faulty_disk& on) {
  {
    raw_file journal(on.vfs(), "journal", makes_journal);
    journal.write();
    journal.sync();
  }
  sqlite3_vfs* const vfs = sqlite3_vfs_find(on.vfs().c_str());
  EXPECT_EQ(vfs->xDelete(vfs, "journal", 0), SQLITE_OK);
}

bool may_return(const faulty_disk& disk, const std::string& name) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    if (std::ranges::count(disk.power_cut(seed)->files(), name) > 0) return true;
  }
  return false;
}

TEST(faulty_disk_test, TheFirstSyncOfEachHandleThatMayCreateAJournalSyncsTheFolder) {
  faulty_disk disk;
  {
    raw_file log(disk.vfs(), "log", makes_log);
    log.write();
    log.sync();
  }
  make_and_delete_journal(disk);
  EXPECT_TRUE(may_return(disk, "journal"));
  raw_file log(disk.vfs(), "log", makes_log);
  EXPECT_TRUE(may_return(disk, "journal"));
  log.sync();
  EXPECT_FALSE(may_return(disk, "journal")) << "although the log existed before";

  make_and_delete_journal(disk);
  log.sync();
  EXPECT_TRUE(may_return(disk, "journal")) << "the handle has synced the folder before";
  raw_file existing(disk.vfs(), "log", SQLITE_OPEN_WAL);
  existing.sync();
  EXPECT_TRUE(may_return(disk, "journal")) << "a handle that cannot create the file";
}

TEST(faulty_disk_test, AnEmptyFileDoesNotExistForSqlite) {
  faulty_disk disk;
  raw_file log(disk.vfs(), "log", makes_log);
  EXPECT_FALSE(log.exists());
  log.write();
  EXPECT_TRUE(log.exists());
}

// Counts how often SQLite's own layer opens a folder, which it does only to sync it.
class folder_syncs {
 public:
  folder_syncs() {
    real = reinterpret_cast<call>(vfs_->xGetSystemCall(vfs_, "openDirectory"));
    set(counted);
  }
  folder_syncs(const folder_syncs&) = delete;
  folder_syncs& operator=(const folder_syncs&) = delete;
  ~folder_syncs() { set(real); }

  int count() const { return counter; }

 private:
  using call = int (*)(const char*, int*);

  static int counted(const char* path, int* fd) {
    ++counter;
    return real(path, fd);
  }
  void set(call c) {
    counter = 0;
    vfs_->xSetSystemCall(vfs_, "openDirectory", reinterpret_cast<sqlite3_syscall_ptr>(c));
  }

  static inline call real = nullptr;
  static inline int counter = 0;
  sqlite3_vfs* const vfs_ = sqlite3_vfs_find("unix");
};

// Compares the assumptions of the model with SQLite's own layer.
TEST(faulty_disk_test, SqlitesOwnLayerSyncsTheFolderAndSeesEmptyFilesAsTheModelDoes) {
  const sluice::testing::temporary_folder folder;
  const std::string path = folder.file("the.log");
  folder_syncs syncs;
  for (int handles = 1; handles <= 2; ++handles) {
    raw_file log("unix", path, makes_log);
    EXPECT_EQ(log.exists(), handles == 2);
    log.write();
    EXPECT_TRUE(log.exists());
    EXPECT_EQ(syncs.count(), handles - 1);
    log.sync();
    EXPECT_EQ(syncs.count(), handles);
    log.sync();
    EXPECT_EQ(syncs.count(), handles);
  }
  raw_file existing("unix", path, SQLITE_OPEN_WAL);
  existing.sync();
  EXPECT_EQ(syncs.count(), 2) << "a handle that cannot create the file";
}

TEST(faulty_disk_test, OneConnectionWritesWhileAnotherReads) {
  faulty_disk disk;
  pairs writer(disk, {});
  raw_database reader(disk);
  ASSERT_TRUE(writer.add(1));
  ASSERT_EQ(reader.run("BEGIN"), SQLITE_OK);
  EXPECT_EQ(reader.number("SELECT count(*) FROM pair"), 2);
  ASSERT_TRUE(writer.add(2));
  EXPECT_EQ(reader.number("SELECT count(*) FROM pair"), 2);  // its snapshot
  ASSERT_EQ(reader.run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(reader.number("SELECT count(*) FROM pair"), 4);

  ASSERT_EQ(reader.run("BEGIN IMMEDIATE"), SQLITE_OK);
  EXPECT_FALSE(writer.add(3));  // one writer at a time
  writer.roll_back();
  ASSERT_EQ(reader.run("COMMIT"), SQLITE_OK);
  EXPECT_TRUE(writer.add(3));
}

TEST(faulty_disk_test, AJournalExcludesReadersWhileItCommits) {
  faulty_disk disk;
  pairs writer(disk, {"DELETE", "FULL"});
  raw_database reader(disk);
  ASSERT_EQ(reader.run("BEGIN"), SQLITE_OK);
  EXPECT_EQ(reader.number("SELECT count(*) FROM pair"), 0);
  EXPECT_FALSE(writer.add(1));
  writer.roll_back();
  ASSERT_EQ(reader.run("COMMIT"), SQLITE_OK);
  EXPECT_TRUE(writer.add(1));
}

TEST(faulty_disk_test, ThreadsShareIt) {
  faulty_disk disk;
  pairs writer(disk, {});
  // A reader that finds the log's index in the middle of a change takes the writer's lock.
  writer.database().run("PRAGMA busy_timeout=10000");
  constexpr int rounds = 200;
  atomic<bool> failed = false;
  {
    const seam::thread other([&] {
      raw_database reader(disk);
      reader.run("PRAGMA busy_timeout=10000");
      std::int64_t last = 0;
      while (last < 2 * rounds && !failed) {
        const auto now = reader.number("SELECT count(*) FROM pair");
        EXPECT_EQ(now % 2, 0);
        EXPECT_GE(now, last);
        if (now < last) return;
        last = now;
        disk.power_cut(static_cast<std::uint64_t>(now) + 1);
      }
    });
    for (int n = 1; n <= rounds; ++n) EXPECT_TRUE(writer.add(n));
    failed = HasFailure();
  }
  EXPECT_EQ(writer.database().number("SELECT count(*) FROM pair"), 2 * rounds);
}

TEST(faulty_disk_test, EqualSeedsGiveEqualDisks) {
  faulty_disk disk;
  pairs run(disk, {"WAL", "OFF"});
  for (int n = 1; n <= 30; ++n) ASSERT_TRUE(run.add(n));
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto one = disk.power_cut(seed);
    const auto two = disk.power_cut(seed);
    EXPECT_EQ(one->files(), two->files());
    EXPECT_EQ(one->bytes_used(), two->bytes_used());
  }
}

TEST(faulty_disk_test, MustNotBeDestroyedWithOpenFiles) {
  EXPECT_DEATH(
      {
        auto disk = std::make_unique<faulty_disk>();
        raw_database open(*disk);
        open.run("CREATE TABLE t(a)");
        disk.reset();
      },
      "files to be closed");
}

}  // namespace
}  // namespace sluice::jobs::testing::faulty_disk_test
