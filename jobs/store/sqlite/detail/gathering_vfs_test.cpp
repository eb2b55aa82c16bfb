// SQLite on a log that is gathered, and beside it a connection that is not: what one has committed
// the other reads, whatever was spilled, undone or refused on the way.

#include "jobs/store/sqlite/detail/gathering_vfs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/testing/faulty_disk.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::detail {
namespace {

using testing::disk_event;
using testing::faulty_disk;
using testing::raw_database;

constexpr const char* path = "raw.db";

connection open_gathered(const faulty_disk& disk, const std::string& synchronous,
                         std::uint64_t cache_bytes = std::uint64_t{1} << 20) {
  auto opened = connection::open(
      path, {.vfs = disk.vfs(), .gathers_log = true, .cache_bytes = cache_bytes, .busy_ms = 0});
  EXPECT_TRUE(opened);
  const std::string setup =
      "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
      "PRAGMA synchronous = " +
      synchronous +
      ";"
      "CREATE TABLE IF NOT EXISTS t(k INTEGER PRIMARY KEY, v BLOB)";
  EXPECT_TRUE(opened->exec(setup.c_str()));
  return std::move(*opened);
}

std::int64_t log_writes_after(const faulty_disk& disk, std::uint64_t event) {
  return std::ranges::count_if(disk.events(), [&](const disk_event& e) {
    return e.number > event && e.what == disk_event::op::write && e.file.ends_with("-wal");
  });
}

class gathering_vfs_mode_test : public ::testing::TestWithParam<std::string> {};

TEST_P(gathering_vfs_mode_test, ATransactionIsOneWrite) {
  faulty_disk disk;
  auto db = open_gathered(disk, GetParam());
  for (int i = 0; i < 3; ++i) {
    const auto before = disk.now();
    ASSERT_TRUE(
        db.exec("INSERT INTO t(v) SELECT randomblob(3000) FROM "
                "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                "LIMIT 20) SELECT i FROM n)"));
    EXPECT_EQ(log_writes_after(disk, before), 1) << "transaction " << i;
  }
}

TEST_P(gathering_vfs_mode_test, ATransactionThatIsLargerThanWhatIsGatheredIsAFewWrites) {
  faulty_disk disk;
  auto db = open_gathered(disk, GetParam());
  const auto before = disk.now();
  // Two megabytes, 128 KiB a write.
  ASSERT_TRUE(db.exec("INSERT INTO t(v) VALUES(randomblob(1 << 21))"));
  EXPECT_GE(log_writes_after(disk, before), 16);
  EXPECT_LE(log_writes_after(disk, before), 18);
  raw_database other(disk);
  EXPECT_TRUE(other.is_sound());
  EXPECT_EQ(other.number("SELECT length(v) FROM t"), 1 << 21);
}

INSTANTIATE_TEST_SUITE_P(modes, gathering_vfs_mode_test,
                         ::testing::Values("FULL", "NORMAL", "OFF"));

// One writer, with so small a cache that pages of a transaction that is under way are in the log
// already, and are read from there and written once more.
class random_writer {
 public:
  random_writer(const faulty_disk& disk, const std::string& synchronous, std::uint64_t seed)
      : chance_(seed), db_(open_gathered(disk, synchronous, 1024 * (4 + chance_.below(40)))) {}

  // Whether it was committed.
  bool transaction() {
    auto changed = rows_;
    if (!db_.exec("BEGIN IMMEDIATE")) return false;
    bool ok = true;
    for (auto left = 1 + chance_.below(40); ok && left > 0; --left) ok = change(changed);
    if (ok && undoes_ && chance_.below(8) == 0) ok = undo_some();
    if (ok && chance_.below(6) != 0 && db_.exec("COMMIT")) {
      rows_ = std::move(changed);
      return true;
    }
    EXPECT_TRUE(!db_.in_transaction() || db_.exec("ROLLBACK"));
    return false;
  }
  void copy_log() {
    constexpr const char* ways[] = {"PRAGMA wal_checkpoint(PASSIVE)",
                                    "PRAGMA wal_checkpoint(RESTART)",
                                    "PRAGMA wal_checkpoint(TRUNCATE)"};
    (void)db_.exec(ways[chance_.below(3)]);
  }
  random& chance() { return chance_; }
  // SQLite 3.40 loses what follows when pages of a part that is undone were in the log already: the
  // heads of their frames stay without a sum. The store undoes whole transactions only.
  void undo_only_whole_transactions() { undoes_ = false; }

  // Whether the rows are those that were committed, as another connection has them.
  void expect_in(raw_database& other) const {
    std::int64_t sum = 0;
    for (const auto& [key, bytes] : rows_) sum += key * bytes;
    EXPECT_EQ(other.number("SELECT count(*) FROM t"), static_cast<std::int64_t>(rows_.size()));
    EXPECT_EQ(other.number("SELECT coalesce(sum(k * length(v)), 0) FROM t"), sum);
    EXPECT_TRUE(other.is_sound());
  }

 private:
  bool change(std::map<std::int64_t, std::int64_t>& rows) {
    const std::int64_t key = 1 + chance_.below(300);
    const std::int64_t bytes = 1 + chance_.below(chance_.below(10) == 0 ? 20000 : 900);
    if (chance_.below(3) == 0) {
      rows.erase(key);
      return db_.exec(("DELETE FROM t WHERE k = " + std::to_string(key)).c_str());
    }
    rows[key] = bytes;
    return db_.exec(("REPLACE INTO t VALUES(" + std::to_string(key) + ", randomblob(" +
                     std::to_string(bytes) + "))")
                        .c_str());
  }
  bool undo_some() {
    std::map<std::int64_t, std::int64_t> undone;
    bool ok = db_.exec("SAVEPOINT some");
    for (auto left = 1 + chance_.below(40); ok && left > 0; --left) ok = change(undone);
    return ok && db_.exec("ROLLBACK TO some; RELEASE some");
  }

  random chance_;
  connection db_;
  bool undoes_ = true;
  std::map<std::int64_t, std::int64_t> rows_;  // key to bytes
};

TEST_P(gathering_vfs_mode_test, OthersReadWhatWasCommittedAtOnce) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    faulty_disk disk;
    random_writer writer(disk, GetParam(), seed);
    raw_database other(disk);
    for (int i = 0; i < 60 && !HasFailure(); ++i) {
      writer.transaction();
      writer.expect_in(other);
      if (writer.chance().below(10) == 0) writer.copy_log();
    }
  }
}

TEST(gathering_vfs_test, WhatWasCommittedSurvivesAPowerCut) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    faulty_disk disk;
    random_writer writer(disk, "FULL", seed);
    writer.undo_only_whole_transactions();
    for (int i = 0; i < 20; ++i) {
      if (writer.transaction()) {
        const auto left = disk.power_cut(seed * 100 + static_cast<std::uint64_t>(i));
        raw_database found(*left);
        writer.expect_in(found);
      }
      if (writer.chance().below(10) == 0) writer.copy_log();
    }
  }
}

TEST(gathering_vfs_test, AWriteThatFailsFailsItsTransactionAndNoOther) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    faulty_disk disk({.seed = seed});
    random_writer writer(disk, seed % 2 == 0 ? "FULL" : "NORMAL", seed);
    for (int i = 0; i < 40 && !HasFailure(); ++i) {
      const auto faults = disk.faults();
      if (writer.chance().below(3) == 0) disk.full_after(writer.chance().below(40000));
      disk.short_writes(writer.chance().below(3) == 0 ? 0.3 : 0);
      const bool committed = writer.transaction();
      EXPECT_TRUE(!committed || disk.faults() == faults) << "committed with what was not written";
      refused += disk.faults() - faults;
      disk.free();
      disk.short_writes(0);
      raw_database other(disk);
      writer.expect_in(other);
    }
  }
  EXPECT_GT(refused, 50U);
}

// The log alone, as SQLite writes it.
class gathered_log_test : public ::testing::Test {
 protected:
  static constexpr sqlite3_int64 page_bytes = 512;
  static constexpr sqlite3_int64 frame_bytes = 24 + page_bytes;
  enum class frame : std::uint8_t { inner, last };

  gathered_log_test() : memory_(static_cast<std::size_t>(vfs_->szOsFile)) {
    constexpr int flags = SQLITE_OPEN_WAL | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    EXPECT_EQ(vfs_->xOpen(vfs_, "raw.db-wal", log(), flags, nullptr), SQLITE_OK);
    EXPECT_EQ(write(std::string(32, 'h'), 0), SQLITE_OK);
  }
  ~gathered_log_test() override { log()->pMethods->xClose(log()); }

  static sqlite3_int64 at(int number) { return 32 + number * frame_bytes; }
  static std::string head(frame which) {
    std::string bytes(24, '\0');
    if (which == frame::last) bytes[7] = 1;
    return bytes;
  }
  int write(const std::string& bytes, sqlite3_int64 offset) {
    return log()->pMethods->xWrite(log(), bytes.data(), static_cast<int>(bytes.size()), offset);
  }
  int write_frame(frame which, int number) {
    const int rc = write(head(which), at(number));
    return rc != SQLITE_OK ? rc : write(std::string(page_bytes, 'p'), at(number) + 24);
  }
  int sync() { return log()->pMethods->xSync(log(), SQLITE_SYNC_NORMAL); }
  std::uint64_t last_write_ended_at() const {
    const auto all = disk_.events();
    return all.back().offset + all.back().bytes.size();
  }

  faulty_disk disk_{{.keep_bytes = true}};

 private:
  sqlite3_file* log() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }

  std::shared_ptr<const gathering_vfs> files_ = gathering_vfs::on(disk_.vfs());
  sqlite3_vfs* const vfs_ = sqlite3_vfs_find(files_->name());
  std::vector<std::max_align_t> memory_;
};

TEST_F(gathered_log_test, WaitsForTheEndOfATransaction) {
  const auto before = disk_.now();
  write_frame(frame::inner, 0);
  write_frame(frame::inner, 1);
  EXPECT_EQ(disk_.now(), before);
  write_frame(frame::last, 2);
  EXPECT_EQ(disk_.now(), before + 1);
  EXPECT_EQ(last_write_ended_at(), static_cast<std::uint64_t>(at(3)));
}

TEST_F(gathered_log_test, WritesTheRestOfALastFrameAtOnce) {
  write(head(frame::last), at(0));
  write(std::string(page_bytes / 2, 'p'), at(0) + 24);
  write(std::string(page_bytes / 2, 'p'), at(0) + 24 + page_bytes / 2);
  EXPECT_EQ(last_write_ended_at(), static_cast<std::uint64_t>(at(1)));
}

// As SQLite does with a page that a transaction has in the log already: it is written anew where
// it is, and then the heads from there to the end, without a page behind the last.
TEST_F(gathered_log_test, WritesAtOnceWhatIsWrittenAnew) {
  write_frame(frame::inner, 0);
  write_frame(frame::last, 1);
  write(std::string(page_bytes, 'q'), at(0) + 24);
  EXPECT_EQ(last_write_ended_at(), static_cast<std::uint64_t>(at(1)));
  const auto before = disk_.now();
  write(head(frame::last), at(1));
  EXPECT_EQ(disk_.now(), before + 1) << "it is in the file";
}

TEST_F(gathered_log_test, RefusesWhatGoesOnWithAWriteThatFailed) {
  write_frame(frame::last, 0);
  write_frame(frame::inner, 1);
  disk_.full_after(0);
  EXPECT_NE(sync(), SQLITE_OK);
  disk_.free();
  EXPECT_NE(write_frame(frame::last, 2), SQLITE_OK) << "what it goes on with is not there";
  EXPECT_EQ(sync(), SQLITE_OK) << "what was there before is to be had";
  EXPECT_EQ(write_frame(frame::inner, 1), SQLITE_OK) << "taken up where it ended";
  EXPECT_EQ(write_frame(frame::last, 2), SQLITE_OK);
  EXPECT_EQ(last_write_ended_at(), static_cast<std::uint64_t>(at(3)));
}

TEST(gathering_vfs_test, WritesToRealFilesWhateverTheSize) {
  const sluice::testing::temporary_folder folder;
  const auto file = folder.file("real.db");
  auto db = connection::open(file, {.vfs = {}, .gathers_log = true});
  ASSERT_TRUE(db);
  ASSERT_TRUE(db->exec("PRAGMA journal_mode = WAL; CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB)"));
  std::int64_t all = 0;
  for (std::int64_t bytes = 1; bytes <= 1 << 21; bytes = 2 * bytes + 17) {
    ASSERT_TRUE(
        db->exec(("INSERT INTO t(v) VALUES(randomblob(" + std::to_string(bytes) + "))").c_str()))
        << bytes << " bytes: " << db->failure("writing").message;
    all += bytes;
    raw_database other(file);
    EXPECT_EQ(other.number("SELECT sum(length(v)) FROM t"), all);
  }
  raw_database other(file);
  EXPECT_TRUE(other.is_sound());
}

TEST(gathering_vfs_test, StandsOnAVfsThatIsThere) {
  EXPECT_EQ(gathering_vfs::on("no such thing"), nullptr);
  const auto one = gathering_vfs::on("");
  const auto two = gathering_vfs::on("");
  ASSERT_NE(one, nullptr);
  EXPECT_STRNE(one->name(), two->name());
  const std::string name = one->name();
  EXPECT_NE(sqlite3_vfs_find(name.c_str()), nullptr);
}

}  // namespace
}  // namespace sluice::jobs::detail
