// The SQLite store on a disk that fails, loses power, or is full.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <string>

#include "jobs/store/sqlite/sqlite_store.hpp"
#include "jobs/store/sqlite/testing/faulty_disk.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "jobs/store/testing/store_words.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::testing::sqlite_fault_test {
namespace {

class sqlite_fault_test : public ::testing::Test {
 protected:
  std::unique_ptr<store> open(sync_mode sync = sync_mode::full) { return open_on(disk, sync); }
  std::unique_ptr<store> open_on(faulty_disk& where, sync_mode sync = sync_mode::full) {
    auto db = must(open_sqlite({.path = "jobs.db", .sync = sync, .vfs = where.vfs()}));
    if (must(db->load()).queues.empty())
      must(db->apply(a_transaction(start, setting(1, "default"))));
    return db;
  }
  void add(store& s, job_id id) { must(s.apply(a_transaction(start, adding(a_job(id))))); }
  error refused(store& by, transaction b) {
    const auto applied = by.apply(b);
    EXPECT_FALSE(applied);
    return applied ? error{} : applied.error();
  }
  std::uint64_t ready(store& in) { return must(in.ready_after(1, {}, {})).size(); }

  faulty_disk disk;
};

bool says(const error& e, std::string_view part) {
  return e.message.find(part) != std::string::npos;
}

// ---- when it syncs

TEST_F(sqlite_fault_test, FullSyncsEveryTransactionBeforeItReturns) {
  auto db = open();
  for (job_id id = 1; id <= 20; ++id) {
    const auto before = disk.syncs();
    add(*db, id);
    EXPECT_EQ(disk.syncs(), before + 1);
    auto cut = disk.power_cut(id);
    EXPECT_TRUE(must(open_on(*cut)->get(id)).has_value()) << "lost with the power";
  }
  const auto before = disk.syncs();
  must(db->flush());
  EXPECT_EQ(disk.syncs(), before) << "there is nothing left to flush";
}

TEST_F(sqlite_fault_test, IntervalSyncsOnFlushIfThereAreChanges) {
  auto db = open(sync_mode::interval);
  must(db->flush());
  const auto before = disk.syncs();
  for (job_id id = 1; id <= 20; ++id) add(*db, id);
  EXPECT_EQ(disk.syncs(), before);
  must(db->flush());
  EXPECT_EQ(disk.syncs(), before + 1);
  must(db->flush());
  EXPECT_EQ(disk.syncs(), before + 1);
  auto cut = disk.power_cut(7);
  EXPECT_EQ(ready(*open_on(*cut)), 20U);
}

TEST_F(sqlite_fault_test, OffSyncsNothingBeforeACheckpoint) {
  auto db = must(open_sqlite(
      {.path = "jobs.db", .sync = sync_mode::off, .checkpoint_pages = 100, .vfs = disk.vfs()}));
  must(db->load());
  must(db->apply(a_transaction(start, setting(1, "default"))));
  const auto before = disk.syncs();
  for (job_id id = 1; id <= 10; ++id) add(*db, id);
  must(db->flush());
  EXPECT_EQ(disk.syncs(), before);
  for (job_id id = 11; id <= 100; ++id) add(*db, id);
  EXPECT_GT(disk.syncs(), before) << "or a power cut could damage the file";
}

// A part of the log is synced, the sync of the rest fails, and the system marks it as written. If a
// checkpoint copied the log into the file now, a power cut before the log restarts would leave a
// new file and an old start of the log: a state that never existed.
TEST_F(sqlite_fault_test, NoPowerCutAfterAFailedSyncMixesTwoStates) {
  for (std::uint64_t events = 1; events <= 60; ++events) {
    faulty_disk one({.seed = events});
    auto db = must(open_sqlite({.path = "jobs.db",
                                .sync = sync_mode::interval,
                                .checkpoint_pages = 40,
                                .vfs = one.vfs()}));
    must(db->load());
    must(db->apply(a_transaction(start, setting(1, "default"))));
    job_id id = 0;
    while (id < 5) add(*db, ++id);
    must(db->flush());
    // From here on another table is written too, which is not in the synced part of the log.
    const auto add_leased = [&] {
      const job j = a_job(++id);
      return db->apply(a_transaction(start, adding(j), saving_lease(j, {id, "w", start, start})));
    };
    const auto faults = one.faults();
    one.fail_next_sync(1, failed_sync::forgets);
    while (one.faults() == faults) must(add_leased());  // until a checkpoint
    one.power_off_after(events);
    for (int n = 0; n < 100 && !one.is_off(); ++n) (void)add_leased();
    ASSERT_TRUE(one.is_off());
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      auto cut = one.power_cut(seed);
      raw_database raw(*cut, "jobs.db");
      EXPECT_TRUE(raw.is_sound()) << events << " events, seed " << seed;
      EXPECT_EQ(raw.number("SELECT count(*) FROM jobs"), raw.number("SELECT ready FROM queues"))
          << events << " events, seed " << seed;
      EXPECT_EQ(raw.number("SELECT count(*) FROM leases WHERE job NOT IN (SELECT id FROM jobs)"), 0)
          << events << " events, seed " << seed;
    }
  }
}

TEST_F(sqlite_fault_test, AFailedFlushIsRepairedByTheNext) {
  for (const failed_sync then :
       {failed_sync::keeps, failed_sync::forgets}) {  // reverts: its readers see old pages already
    faulty_disk one;
    auto db = open_on(one, sync_mode::interval);
    must(db->flush());
    for (job_id id = 1; id <= 20; ++id) add(*db, id);
    one.fail_next_sync(1, then);
    const auto failed = db->flush();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, error_code::io_error);
    add(*db, 21);
    must(db->flush());
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      auto cut = one.power_cut(seed);
      EXPECT_EQ(ready(*open_on(*cut)), 21U) << "seed " << seed;
    }
  }
}

// ---- when the disk fails

TEST_F(sqlite_fault_test, AFailedSyncFailsOnlyItsTransaction) {
  for (const failed_sync then : {failed_sync::keeps, failed_sync::forgets, failed_sync::reverts}) {
    faulty_disk one;
    auto db = open_on(one);
    add(*db, 1);
    one.fail_next_sync(1, then);
    const error failure = refused(*db, a_transaction(start, adding(a_job(2)), dropping(a_job(1))));
    EXPECT_EQ(failure.code, error_code::io_error);
    EXPECT_TRUE(says(failure, "jobs.db")) << failure.message;
    EXPECT_FALSE(must(db->get(2)).has_value());
    EXPECT_TRUE(must(db->get(1)).has_value());
    add(*db, 3);
    db.reset();
    auto again = open_on(one);
    EXPECT_EQ(ids_of(must(again->ready_after(1, {}, {}))), (ids{1, 3}));
    EXPECT_EQ(must(open_on(*one.power_cut(3))->get(3)), a_job(3));
  }
}

// The transaction is complete in the log by then: if it were reported as disk_full, its callers
// would not expect it after a crash.
TEST_F(sqlite_fault_test, ATransactionWhoseSyncFindsNoSpaceIsCertainlyUndoneOrNotReportedAsFull) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    faulty_disk one({.seed = seed});
    add(*open_on(one), 1);
    auto db = open_on(one);
    // SQLite does not read the system's error at a commit: it returns the last one it has.
    one.fails_with(ENOSPC);
    one.read_errors(1.0);
    ASSERT_FALSE(db->ready_after(1, {}, {}));
    one.read_errors(0);
    one.fail_next_sync(1);
    const error once = refused(*db, a_transaction(start, adding(a_job(2))));
    EXPECT_EQ(once.code, error_code::disk_full) << once.message;
    EXPECT_FALSE(must(open_on(*one.power_cut(seed))->get(2)).has_value())
        << "refused, and there after a crash";
    one.fail_next_sync(2);
    const error twice = refused(*db, a_transaction(start, adding(a_job(3))));
    EXPECT_EQ(twice.code, error_code::io_error);
    EXPECT_TRUE(says(twice, "may still be stored")) << twice.message;
    add(*db, 4);
    EXPECT_EQ(ids_of(must(db->ready_after(1, {}, {}))), (ids{1, 4}));
  }
}

TEST_F(sqlite_fault_test, AnEmptyTransactionIsWrittenAndSyncedToTestTheDisk) {
  auto db = open();
  const auto before = disk.syncs();
  must(db->apply(transaction{}));
  must(db->apply(transaction{}));
  EXPECT_EQ(disk.syncs(), before + 2);
  disk.fail_next_sync();
  EXPECT_EQ(refused(*db, transaction{}).code, error_code::io_error);
}

TEST_F(sqlite_fault_test, ShortWritesFailOnlyTheirTransactions) {
  auto db = open();
  disk.short_writes(0.2);
  ids acknowledged;
  std::size_t failed = 0;
  for (job_id id = 1; id <= 200; ++id) {
    if (db->apply(a_transaction(start, adding(a_job(id))))) {
      acknowledged.push_back(id);
    } else {
      ++failed;
    }
  }
  EXPECT_GT(failed, 0U) << "the fault was never met";
  EXPECT_FALSE(acknowledged.empty());
  disk.short_writes(0);
  EXPECT_EQ(ids_of(must(db->ready_after(1, {}, {}))), acknowledged);
  add(*db, 1000);
  db.reset();
  acknowledged.push_back(1000);
  db = must(open_sqlite({.path = "jobs.db", .vfs = disk.vfs()}));
  EXPECT_EQ(must(db->load()).queues.at(0).counts.ready, acknowledged.size());
  EXPECT_EQ(ids_of(must(db->ready_after(1, {}, {}))), acknowledged);
}

TEST_F(sqlite_fault_test, ReadErrorsAreReportedAndTransient) {
  {
    auto db = open();
    for (job_id id = 1; id <= 50; ++id) add(*db, id);
  }
  auto db = open();
  disk.read_errors(1.0);
  const auto failed = db->ready_after(1, {}, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, error_code::io_error);
  disk.read_errors(0);
  EXPECT_EQ(ready(*db), 50U);
}

TEST_F(sqlite_fault_test, AReadErrorNeverChangesAJob) {
  {
    auto db = open();
    job later = a_job(1);
    later.state = job_state::scheduled;
    later.due_at = start;
    must(db->apply(a_transaction(start, adding(later))));
  }
  int failures = 0;
  for (int i = 0; i < 100; ++i) {
    auto db = must(open_sqlite({.path = "jobs.db", .vfs = disk.vfs()}));  // nothing in its cache
    disk.read_errors(0.3);
    const auto shaky = db->due(start, 10);
    disk.read_errors(0);
    const auto steady = must(db->due(start, 10));
    failures += shaky ? 0 : 1;
    const auto& seen = shaky ? shaky->jobs : steady.jobs;
    EXPECT_EQ(seen.at(0)->spec.queue, "default");
    EXPECT_EQ(steady.jobs.at(0)->spec.queue, "default");
  }
  EXPECT_GT(failures, 0);
}

TEST_F(sqlite_fault_test, ADamagedPageIsCorrupt) {
  {
    auto db = open();
    for (job_id id = 1; id <= 500; ++id) {
      job j = a_job(id);
      j.spec.args.data.assign(500, 'x');
      must(db->apply(a_transaction(start, adding(j))));
    }
  }
  for (std::uint64_t page = 40; page < 70; ++page) ASSERT_TRUE(disk.corrupt_page("jobs.db", page));
  auto db = open();
  const auto failed = db->ready_after(1, {}, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, error_code::corrupt);
  EXPECT_TRUE(says(failed.error(), "restore a backup")) << failed.error().message;
}

// ---- when it is full

TEST_F(sqlite_fault_test, AFullDiskRejectsAddsUntilSpaceIsFree) {
  auto db = open();
  add(*db, 1);
  disk.full_after(0);
  job large = a_job(2);
  large.spec.args.data.assign(100'000, 'x');
  const error failure = refused(*db, a_transaction(start, adding(large)));
  EXPECT_EQ(failure.code, error_code::disk_full);
  EXPECT_TRUE(says(failure, "free some space")) << failure.message;
  EXPECT_FALSE(must(db->get(2)).has_value());
  disk.free();
  must(db->apply(a_transaction(start, adding(large))));
  EXPECT_EQ(must(db->get(2)), large);
}

TEST_F(sqlite_fault_test, DropsWorkOnAFullDiskInTheSpaceOfTheLog) {
  {
    auto db = open();
    for (job_id id = 1; id <= 300; ++id) add(*db, id);
  }
  auto db = open();
  for (job_id id = 1; id <= 10; ++id) must(db->apply(a_transaction(start, dropping(a_job(id)))));
  disk.full_after(0);
  job large = a_job(301);
  large.spec.args.data.assign(200'000, 'x');
  EXPECT_EQ(refused(*db, a_transaction(start, adding(large))).code, error_code::disk_full);
  for (job_id id = 11; id <= 300; ++id) must(db->apply(a_transaction(start, dropping(a_job(id)))));
  EXPECT_EQ(ready(*db), 0U);
  disk.free();
  db.reset();
  EXPECT_EQ(ready(*open()), 0U);
}

TEST_F(sqlite_fault_test, AFailedCheckpointStopsAddsUntilOneSucceeds) {
  auto db = must(open_sqlite({.path = "jobs.db", .checkpoint_pages = 1, .vfs = disk.vfs()}));
  must(db->load());
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)))));
  ids acknowledged{1};
  bool was_refused = false;
  for (job_id id = 2; id <= 200; ++id) {
    if (id == 10) disk.short_writes(0.1);
    if (id == 150) disk.short_writes(0);
    const auto applied = db->apply(a_transaction(start, adding(a_job(id))));
    if (applied) acknowledged.push_back(id);
    was_refused = was_refused || (!applied && says(applied.error(), "copying its log into it"));
  }
  EXPECT_TRUE(was_refused) << "no copying failed";
  EXPECT_EQ(acknowledged.back(), 200U) << "it takes adds again";
  EXPECT_EQ(ids_of(must(db->ready_after(1, {}, {}))), acknowledged);
  db.reset();
  EXPECT_EQ(ids_of(must(open()->ready_after(1, {}, {}))), acknowledged);
}

// While a reader uses an old snapshot, a checkpoint copies the log only up to it, without a sync.
// If the sync of a later checkpoint fails, that part is in doubt too.
void fail_to_sync_after_a_copy_in_part(failed_sync mode, job_id read_at) {
  SCOPED_TRACE(std::to_string(static_cast<int>(mode)) + ", " + std::to_string(read_at));
  faulty_disk disk;
  auto db = must(open_sqlite({.path = "jobs.db", .checkpoint_pages = 40, .vfs = disk.vfs()}));
  must(db->load());
  must(db->apply(a_transaction(start, setting(1, "default"))));
  job_id id = 0;
  ids acknowledged;
  const auto add_one = [&] {
    job large = a_job(++id);  // on its own pages, which are not written again
    large.spec.args.data.assign(20'000, 'x');
    if (db->apply(a_transaction(start, adding(large)))) acknowledged.push_back(id);
  };
  while (id < read_at) add_one();
  {
    raw_database other(disk, "jobs.db");
    ASSERT_EQ(other.run("BEGIN"), SQLITE_OK);
    ASSERT_EQ(other.number("SELECT count(*) FROM jobs"), static_cast<std::int64_t>(read_at));
    while (id < 2 * read_at) add_one();
    ASSERT_EQ(other.run("COMMIT"), SQLITE_OK);
  }
  const auto faults = disk.faults();
  disk.fail_next_sync(1, mode, "jobs.db");
  while (disk.faults() == faults) add_one();
  for (int n = 0; n < 100; ++n) add_one();
  EXPECT_GT(acknowledged.size(), 2 * read_at);
  db.reset();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto cut = disk.power_cut(seed);
    raw_database raw(*cut, "jobs.db");
    EXPECT_TRUE(raw.is_sound());
    const auto has = [&](job_id job) {
      return raw.number("SELECT count(*) FROM jobs WHERE id = " + std::to_string(job)) == 1;
    };
    EXPECT_TRUE(std::ranges::all_of(acknowledged, has));
  }
}

TEST_F(sqlite_fault_test, AFailedSyncAfterAPartialCheckpointLosesNothing) {
  for (const auto mode : {failed_sync::keeps, failed_sync::forgets, failed_sync::reverts}) {
    for (job_id read_at = 30; read_at < 36; ++read_at) {
      fail_to_sync_after_a_copy_in_part(mode, read_at);
    }
  }
}

// ---- the log's file, which is extended ahead of its content

constexpr std::uint64_t long_log = 256 << 10;  // from here on

class long_log_test : public ::testing::Test {
 protected:
  void open() {
    db = must(open_sqlite({.path = "jobs.db", .vfs = disk.vfs()}));
    must(db->load());
    must(db->apply(a_transaction(start, setting(1, "default"))));
  }
  // About three pages of the log.
  bool add_one() { return bool(db->apply(a_transaction(start, adding(a_job(++last))))); }

  // The events of the log's file.
  std::vector<disk_event> of_log() const {
    std::vector<disk_event> all = disk.events();
    std::erase_if(all, [](const disk_event& e) { return e.file != "jobs.db-wal"; });
    return all;
  }
  static bool is_zeros(const disk_event& e) {
    return e.type == disk_event::op::write && e.bytes.size() > 4096 &&
           e.bytes.find_first_not_of('\0') == std::string::npos;
  }

  faulty_disk disk{{.keep_bytes = true}};
  std::unique_ptr<store> db;
  job_id last = 0;
};

TEST_F(long_log_test, FewTransactionsExtendItsFile) {
  open();
  while (last < 500) ASSERT_TRUE(add_one());
  std::uint64_t end = 0;
  std::uint64_t longer = 0;  // syncs of a file that is longer than at the previous sync
  bool is_longer = false;
  for (const disk_event& e : of_log()) {
    if (e.type == disk_event::op::sync) {
      longer += is_longer && end > long_log ? 1 : 0;
      is_longer = false;
    } else if (e.type == disk_event::op::write && e.offset + e.bytes.size() > end) {
      EXPECT_TRUE(end >= long_log || !is_zeros(e)) << "a short log is not extended";
      EXPECT_TRUE(end < 2 * long_log || is_zeros(e)) << "frames overwrite zeros";
      if (is_zeros(e)) {
        EXPECT_EQ(e.offset, end) << "existing bytes are not overwritten";
      }
      end = e.offset + e.bytes.size();
      is_longer = true;
    }
  }
  EXPECT_GT(end, std::uint64_t{4} << 20) << "500 batches of three pages";
  EXPECT_LE(longer, end / long_log + 1);
}

TEST_F(long_log_test, APowerCutWhileItGrowsLosesNothing) {
  int unsynced_zeros = 0;  // cuts that had some
  for (std::uint64_t events = 1; events <= 250; events += 2) {
    faulty_disk one({.seed = events, .keep_bytes = true});
    auto on = must(open_sqlite({.path = "jobs.db", .vfs = one.vfs()}));
    must(on->load());
    must(on->apply(a_transaction(start, setting(1, "default"))));
    job_id id = 0;
    const auto add = [&](job_id next) {
      job j = a_job(next);
      j.spec.args.data = '"' + std::string(3000, 'x') + '"';
      return bool(on->apply(a_transaction(start, adding(j))));
    };
    while (one.bytes_used() < 2 * long_log) ASSERT_TRUE(add(++id));  // the file has a part of it
    one.power_off_after(events);
    while (add(id + 1)) ++id;
    on.reset();
    for (const disk_event& e : std::views::reverse(one.events())) {
      if (e.type == disk_event::op::sync) break;
      if (!is_zeros(e)) continue;
      ++unsynced_zeros;
      break;
    }
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      auto cut = one.power_cut(seed);
      raw_database raw(*cut, "jobs.db");
      EXPECT_TRUE(raw.is_sound()) << events << " events, seed " << seed;
      EXPECT_GE(raw.number("SELECT count(*) FROM jobs"), static_cast<std::int64_t>(id))
          << events << " events, seed " << seed;
    }
  }
  EXPECT_GT(unsynced_zeros, 5);
}

TEST_F(long_log_test, ALogLeftByACrashGrowsNoFaster) {
  open();
  while (last < 100) ASSERT_TRUE(add_one());
  auto cut = disk.power_cut(1);
  const std::uint64_t before = cut->bytes_used();
  db = must(open_sqlite({.path = "jobs.db", .vfs = cut->vfs()}));
  must(db->load());
  for (int n = 0; n < 5; ++n) ASSERT_TRUE(add_one());
  EXPECT_LE(cut->bytes_used(), before + 2 * long_log);
  db.reset();
}

TEST_F(long_log_test, AFullDiskStoresTransactionsWithoutTheZeros) {
  open();
  while (std::ranges::none_of(of_log(), is_zeros)) ASSERT_TRUE(add_one());
  const auto in_place = [&] { return std::ranges::count_if(of_log(), is_zeros); };
  const auto zeros = in_place();
  while (in_place() == zeros) ASSERT_TRUE(add_one());  // again
  disk.full_after(100 << 10);
  const auto faults = disk.faults();
  while (disk.faults() == faults)
    ASSERT_TRUE(add_one()) << "rejected, though only zeros do not fit";
  for (int n = 0; n < 5; ++n) EXPECT_TRUE(add_one());
  disk.free();
  const auto then = in_place();
  for (int n = 0; n < 200; ++n) EXPECT_TRUE(add_one());
  EXPECT_EQ(in_place(), then) << "it is not tried again";
}

TEST_F(long_log_test, FramesOfAnotherProgramAreNotOverwritten) {
  open();
  while (last < 200) {
    ASSERT_TRUE(add_one());
    if (last % 10 != 0) continue;
    raw_database other(disk, "jobs.db");
    ASSERT_EQ(other.run("CREATE TABLE IF NOT EXISTS notes (text)"), SQLITE_OK);
    ASSERT_EQ(other.run("INSERT INTO notes VALUES (zeroblob(50000))"), SQLITE_OK);
  }
  db.reset();
  raw_database raw(disk, "jobs.db");
  EXPECT_TRUE(raw.is_sound());
  EXPECT_EQ(raw.number("SELECT count(*) FROM notes"), 20);
  EXPECT_EQ(raw.number("SELECT count(*) FROM jobs"), 200);
}

// ---- a real full disk

// Mounts a disk of `mib` at `folder` in a child process. Exit 77: the system does not allow it.
constexpr int not_allowed = 77;

void mount_small_disk(const std::string& folder, int mib) {
  const bool alone = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  const std::string size = "size=" + std::to_string(mib) + "m";
  if (!alone || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", folder.c_str(), "tmpfs", 0, size.c_str()) != 0) {
    ::_exit(not_allowed);
  }
}

void fill(const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  const std::string block(4096, 'x');
  while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) continue;
}

void expect(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", claim);
  ::_exit(1);
}

template <class T>
void expect_done(const result<T>& r, const char* claim) {
  if (!r) std::fprintf(stderr, "%s\n", r.error().message.c_str());
  expect(r.has_value(), claim);
}

void live_on_a_full_disk(const std::string& folder) {
  mount_small_disk(folder, 64);
  const sqlite_options options{.path = folder + "/jobs.db"};
  auto opened = open_sqlite(options);
  expect_done(opened, "it opens on a small disk");
  auto db = std::move(*opened);
  expect_done(db->load(), "it loads");
  expect_done(db->apply(a_transaction(start, setting(1, "default"))), "a queue is set");
  transaction many;
  many.now = start;
  for (job_id id = 1; id <= 2000; ++id) many.changes.push_back(adding(a_job(id)));
  expect_done(db->apply(many), "jobs are added");

  struct stat reserve {};
  const std::string reserve_path = options.path + ".reserve";
  expect(::stat(reserve_path.c_str(), &reserve) == 0, "there is a reserve");
  expect(reserve.st_size == 1 << 20, "a 64th of the disk");
  expect(reserve.st_blocks * 512 >= reserve.st_size, "of blocks, not of a hole");
  const auto room = db->free_bytes();
  expect(room && *room > 0 && *room < std::uint64_t{60} << 20, "free bytes beyond the reserve");

  fill(folder + "/filler");
  job large = a_job(5000);
  large.spec.args.data.assign(4 << 20, 'x');
  const auto refused = db->apply(a_transaction(start, adding(large)));
  expect(!refused && refused.error().code == error_code::disk_full, "a push is refused: full");
  expect(::stat(reserve_path.c_str(), &reserve) == 0, "the reserve is not for pushes");
  for (job_id id = 1; id <= 1000; ++id) {
    expect_done(db->apply(a_transaction(start, dropping(a_job(id)))), "an ack on a full disk");
  }
  db.reset();

  fill(folder + "/filler2");
  opened = open_sqlite(options);
  expect_done(opened, "it opens on a full disk");
  db = std::move(*opened);
  const auto loaded = db->load();
  expect_done(loaded, "it loads on a full disk");
  expect(loaded->queues.at(0).counts.ready == 1000, "with the earlier jobs");
  expect(db->free_bytes() == 0U, "no room");
  for (job_id id = 1001; id <= 1100; ++id) {
    expect_done(db->apply(a_transaction(start, dropping(a_job(id)))), "an ack after the restart");
  }
  db.reset();

  std::filesystem::remove(folder + "/filler");
  std::filesystem::remove(folder + "/filler2");
  opened = open_sqlite(options);
  expect_done(opened, "it opens when there is room");
  db = std::move(*opened);
  expect_done(db->load(), "it loads");
  expect(*db->free_bytes() > 0, "there is room");
  expect(::stat(reserve_path.c_str(), &reserve) == 0, "the reserve is there again");
  expect_done(db->apply(a_transaction(start, adding(large))), "pushes are taken again");
  db.reset();
  ::_exit(0);
}

void fill_the_disk_and_drain(const std::string& folder) {
  mount_small_disk(folder, 64);
  auto opened = open_sqlite({.path = folder + "/jobs.db", .sync = sync_mode::off});
  expect_done(opened, "it opens on a small disk");
  auto db = std::move(*opened);
  expect_done(db->load(), "it loads");
  expect_done(db->apply(a_transaction(start, setting(1, "default"))), "a queue is set");
  constexpr std::size_t bytes = 100'000;
  std::vector<job> jobs;
  while (*db->free_bytes() >= 4 * bytes) {
    jobs.push_back(a_job(jobs.size() + 1));
    jobs.back().spec.args.data.assign(bytes, 'x');
    expect_done(db->apply(a_transaction(start, adding(jobs.back()))), "a push while there is room");
    expect(jobs.size() < 1000, "the room comes to an end");
  }
  expect(jobs.size() > 100, "the room was used");
  const auto left = std::filesystem::space(folder).available;
  expect(left >= std::uint64_t{2} << 20, "something is left free");
  for (const job& j : jobs) {
    expect_done(db->apply(a_transaction(start, dropping(j))), "an ack");
  }
  sluice::testing::eventually([&] { return *db->free_bytes() > 20 * bytes; },
                              "room again, in the file itself");
  expect(std::filesystem::space(folder).available < left + (8U << 20), "the disk got little back");
  for (job& j : jobs) {
    j.id += 10'000;
    j.turn = j.id;
    if (*db->free_bytes() < 4 * bytes) break;
    expect_done(db->apply(a_transaction(start, adding(j))), "a push into space that was freed");
  }
  db.reset();
  ::_exit(0);
}

// Waits until the free space is read again.
void forget_room() {
  const auto began = std::chrono::steady_clock::now();
  sluice::testing::eventually(
      [&] { return std::chrono::steady_clock::now() - began > std::chrono::milliseconds(150); });
}

void fill_a_log_that_is_not_copied(const std::string& folder) {
  mount_small_disk(folder, 64);
  const sqlite_options options{
      .path = folder + "/jobs.db", .sync = sync_mode::off, .checkpoint_pages = 1'000'000};
  auto opened = open_sqlite(options);
  expect_done(opened, "it opens on a small disk");
  auto db = std::move(*opened);
  expect_done(db->load(), "it loads");
  expect_done(db->apply(a_transaction(start, setting(1, "default"))), "a queue is set");
  constexpr std::size_t bytes = 100'000;
  job_id last = 0;
  for (int asked = 0; asked < 3; ++asked) {
    while (*db->free_bytes() >= 4 * bytes) {
      job j = a_job(++last);
      j.spec.args.data.assign(bytes, 'x');
      expect_done(db->apply(a_transaction(start, adding(j))), "a push while there is room");
    }
    forget_room();
  }
  expect(last > 100, "the room was used");
  const auto left = std::filesystem::space(folder).available;
  expect(left >= std::uint64_t{2} << 20, "pushes did not use the reserve for acks");
  for (job_id id = 1; id <= last / 2; ++id) {
    expect_done(db->apply(a_transaction(start, dropping(a_job(id)))), "an ack");
  }
  db.reset();
  opened = open_sqlite(options);
  expect_done(opened, "it opens again");
  const auto loaded = (*opened)->load();
  expect_done(loaded, "it loads");
  expect(loaded->queues.at(0).counts.ready == last - last / 2, "with the earlier jobs");
  opened->reset();
  ::_exit(0);
}

// Runs a scenario in a child process that may mount.
void run_in_child(void (*body)(const std::string&)) {
  const sluice::testing::temporary_folder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) body(folder.path());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_allowed) {
    GTEST_SKIP() << "this system does not allow a user to mount a disk";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see the failures above";
}

TEST(sqlite_full_disk_test, AcksRestartsAndPushesWhileADiskFillsUpAndIsFreed) {
  run_in_child(live_on_a_full_disk);
}

TEST(sqlite_full_disk_test, SpaceIsReservedForTheNextCheckpoint) {
  run_in_child(fill_a_log_that_is_not_copied);
}

TEST(sqlite_full_disk_test, FreePagesInsideTheFileCountAsFreeBytes) {
  run_in_child(fill_the_disk_and_drain);
}

}  // namespace
}  // namespace sluice::jobs::testing::sqlite_fault_test
