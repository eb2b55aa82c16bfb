#include "jobs/store/sqlite/store_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "jobs/store/sqlite/sqlite_store.hpp"
#include "jobs/store/sqlite/store_backup.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "jobs/store/testing/store_words.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::testing::store_check_test {
namespace {

class store_check_test : public ::testing::Test {
 protected:
  std::unique_ptr<store> open() {
    auto db = must(open_sqlite({.path = path,
                                .sync = sync_mode::off,
                                .reserve_file_bytes = 0,
                                .key_lines_in_memory = lines_in_memory}));
    must(db->load());
    return db;
  }
  static job keyed(job_id id, std::string key) {
    job j = a_job(id);
    j.spec.key = std::move(key);
    return j;
  }
  static job after(job_id id, job_id on, after_when when = after_when::success) {
    job j = a_job(id);
    j.spec.after = {{on, "", when}};
    return j;
  }
  static job of(job_id batch, job j) {
    j.spec.batch = batch;
    return j;
  }
  // Rows of every kind, all sound.
  void fill(store& db) {
    transaction b =
        a_transaction(start, setting(1, "default"), setting(2, "mail"), adding(a_job(1)),
                      adding(with_key(a_job(2), "u")), adding(keyed(3, "k")), adding(keyed(4, "k")),
                      adding(after(5, 1)), adding_batch(10, 1), adding(of(10, a_job(11)), 1),
                      adding(of(10, a_job(12)), 1), adding(after(13, 10), 1), closing_batch(10),
                      adding(a_job(14, "mail")), adding(keyed(15, "other")),
                      adding_logs(1, {{0, 1, start, "line"}}));
    b.ids_up_to = 1000;
    must(db.apply(b));
    job dead = of(10, a_job(11));
    must(db.apply(a_transaction(
        start, moving(dead, job_state::dead, {.due_at = start + std::chrono::hours(1)}))));
  }
  std::vector<std::string> problems() { return must(check_store(path)).problems; }
  // Returns the problems after this SQL changed the file.
  void expect_problem(const std::string& sql, const std::string& part) {
    const std::string before = folder.file("before.db");
    std::filesystem::copy_file(path, before, std::filesystem::copy_options::overwrite_existing);
    ASSERT_EQ(raw_database(path).run(sql), SQLITE_OK) << sql;
    const auto found = problems();
    EXPECT_TRUE(std::ranges::any_of(
        found, [&](const std::string& p) { return p.find(part) != std::string::npos; }))
        << sql << ": " << (found.empty() ? "nothing was found" : found[0]);
    std::filesystem::copy_file(before, path, std::filesystem::copy_options::overwrite_existing);
  }

  sluice::testing::temporary_folder folder;
  std::string path = folder.file("jobs.db");
  std::size_t lines_in_memory = 1000;
};

TEST_F(store_check_test, ASoundStoreHasNoProblems) {
  for (const std::size_t lines : {1000U, 0U}) {
    path = folder.file("jobs" + std::to_string(lines) + ".db");
    lines_in_memory = lines;
    auto db = open();
    fill(*db);
    const auto running = must(check_store(path));
    EXPECT_EQ(running.problems, std::vector<std::string>{}) << "while a server runs";
    EXPECT_EQ(running.jobs, 10U);
    EXPECT_EQ(running.queues, 2U);
    EXPECT_EQ(running.batches, 1U);
    EXPECT_EQ(running.edges, 2U);
    db.reset();
    std::vector<std::string> seen;
    const auto report = must(check_store(path, [&](const check_progress& p) {
      if (seen.empty() || seen.back() != p.part) seen.emplace_back(p.part);
      EXPECT_LE(p.done, 10U);
    }));
    EXPECT_TRUE(report.is_sound());
    EXPECT_EQ(seen, (std::vector<std::string>{"pages", "jobs", "batches", "dependencies",
                                              "unique keys", "logs"}));
  }
}

TEST_F(store_check_test, EachContradictionIsReportedAsASentence) {
  lines_in_memory = 0;
  fill(*open());
  ASSERT_EQ(problems(), std::vector<std::string>{});
  expect_problem("UPDATE queues SET ready = ready + 1 WHERE number = 1",
                 "queue 'default' counts 6 jobs that are ready, but there are 5");
  expect_problem("UPDATE queues SET bytes = 7 WHERE number = 2", "queue 'mail' counts 7 bytes");
  expect_problem("UPDATE jobs SET state = 9 WHERE id = 1", "job 1 has the invalid state 9");
  expect_problem("UPDATE jobs SET queue = 9 WHERE id = 1", "job 1 is in queue number 9");
  expect_problem("UPDATE meta SET value = 14 WHERE name = 'ids_up_to'", "job 15 has an id beyond");
  expect_problem("DELETE FROM meta WHERE name = 'ids_up_to'", "ids could be assigned again");
  expect_problem("UPDATE jobs SET key = 'x' WHERE id = 3", "job 3 is not in the line of its key");
  expect_problem("UPDATE lines SET active = 2 WHERE waiting = 1", "counts 2 jobs with a place");
  expect_problem("DELETE FROM jobs WHERE id = 3", "wait for the place of a key, but no job has it");
  expect_problem("UPDATE jobs SET blockers = 2 WHERE id = 5", "job 5 counts 2 open dependencies");
  expect_problem("DELETE FROM edges WHERE job = 5", "but has 0");
  expect_problem("UPDATE jobs SET state = 2 WHERE id = 5", "job 5 is ready, but waits for 1");
  expect_problem("UPDATE jobs SET state = 1 WHERE id = 1", "job 1 is held, but waits for nothing");
  expect_problem("DELETE FROM jobs WHERE id = 5", "there is a dependency of job 5 on 1");
  expect_problem("DELETE FROM jobs WHERE id = 1", "job 5 waits for 1, which does not exist");
  expect_problem("UPDATE jobs SET state = 5 WHERE id = 1",
                 "job 5 waits for 1, which does not exist");
  expect_problem("UPDATE batches SET pending = 2", "batch 10 counts 2 jobs that have not ended");
  expect_problem("UPDATE batches SET failed = 0", "batch 10 counts 0 failed jobs");
  expect_problem("UPDATE batches SET total = 1", "batch 10 counts 1 jobs, but there are 2");
  expect_problem("UPDATE batches SET ended_at = 5",
                 "has an end time that does not match its counts");
  expect_problem("DELETE FROM jobs WHERE id = 2", "the unique key 'u' is held by job 2");
  expect_problem("INSERT INTO logs VALUES (99, 1, 1, 0, '', NULL)", "log lines of job 99");
  EXPECT_EQ(problems(), std::vector<std::string>{}) << "each was undone";
}

TEST_F(store_check_test, DeletedFailedJobsStillCountInTheirBatch) {
  auto db = open();
  fill(*db);
  must(db->apply(a_transaction(start, dropping(*must(db->get(11)), job_state::dead))));
  EXPECT_EQ(problems(), std::vector<std::string>{});
}

TEST_F(store_check_test, ADamagedPageIsFound) {
  {
    auto db = open();
    fill(*db);
    for (job_id id = 100; id <= 600; ++id) {
      job j = a_job(id);
      j.spec.args.data.assign(300, 'x');
      must(db->apply(a_transaction(start, adding(j))));
    }
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (int page = 45; page < 55; ++page) {
    file.seekp(page * 4096);
    file << std::string(4096, '\x5a');
  }
  file.close();
  const auto found = problems();
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].find("damaged"), std::string::npos) << found[0];
}

TEST_F(store_check_test, ManyProblemsAreCountedNotListed) {
  {
    auto db = open();
    transaction b = a_transaction(start, setting(1, "default"));
    for (job_id id = 1; id <= 1500; ++id) b.changes.push_back(adding(a_job(id)));
    must(db->apply(b));
  }
  const auto report = must(check_store(path));  // no id was ever assigned
  EXPECT_EQ(report.problems.size(), store_report::problems_max);
  EXPECT_EQ(report.problems_left_out, 500U);
}

TEST_F(store_check_test, AFileThatIsNotAStoreIsRejected) {
  EXPECT_EQ(check_store(folder.file("none.db")).error().code, error_code::invalid);
  EXPECT_FALSE(std::filesystem::exists(folder.file("none.db")));
  ASSERT_EQ(raw_database(folder.file("other.db")).run("CREATE TABLE t (a)"), SQLITE_OK);
  EXPECT_EQ(check_store(folder.file("other.db")).error().code, error_code::invalid);
  std::ofstream(folder.file("text.db")) << std::string(5000, 'x');
  EXPECT_FALSE(check_store(folder.file("text.db")));
  open();
  ASSERT_EQ(raw_database(path).run("PRAGMA user_version = 1"), SQLITE_OK);
  EXPECT_NE(check_store(path).error().message.find("format 1"), std::string::npos);
}

// ---- copies

TEST_F(store_check_test, ACopyOpensAsTheSameStore) {
  auto db = open();
  fill(*db);
  const std::string copy = folder.file("copy.db");
  std::uint64_t last = 0;
  const auto bytes = must(backup_store(path, copy, [&](const backup_progress& p) {
    EXPECT_LE(p.done_bytes, p.total_bytes);
    last = p.done_bytes;
  }));
  EXPECT_EQ(std::filesystem::file_size(copy), bytes);
  EXPECT_EQ(last, bytes);
  EXPECT_FALSE(std::filesystem::exists(copy + ".part"));
  EXPECT_EQ(must(check_store(copy)).problems, std::vector<std::string>{});
  must(db->apply(a_transaction(start, dropping(a_job(1), job_state::done))));
  auto other = must(open_sqlite({.path = copy, .reserve_file_bytes = 0}));
  EXPECT_EQ(must(other->load()).ids_up_to, 1000U);
  EXPECT_EQ(must(other->get(1)), a_job(1)) << "later changes are not in the copy";
  EXPECT_EQ(must(other->list({}, 0, 100)).jobs.size(), 10U);
}

TEST_F(store_check_test, ACopyReplacesNoFile) {
  fill(*open());
  const std::string copy = folder.file("copy.db");
  std::ofstream(copy) << "mine";
  const auto refused = backup_store(path, copy);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid);
  EXPECT_EQ(std::filesystem::file_size(copy), 4U);
  EXPECT_FALSE(backup_store(path, folder.file("no/such/folder.db")));
  EXPECT_FALSE(backup_store(folder.file("none.db"), folder.file("copy2.db")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("copy2.db")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("copy2.db.part")));
}

TEST_F(store_check_test, CopiesWhileAServerWritesAreCompleteAndSound) {
  auto db = open();
  fill(*db);
  std::atomic<bool> ended{false};
  std::atomic<job_id> committed{1000};
  std::thread writing([&] {
    for (job_id id = 1001; !ended; ++id) {
      job j = id % 2 == 0 ? a_job(id) : keyed(id, "k" + std::to_string(id % 7));
      j.spec.args.data.assign(2000, 'x');
      transaction b = a_transaction(start, adding(j));
      b.ids_up_to = id;
      must(db->apply(b));
      committed = id;
    }
  });
  sluice::testing::eventually([&] { return committed > 1000; }, "the other to write");
  for (int n = 0; n < 5; ++n) {
    const job_id before = committed;
    const std::string copy = folder.file("copy" + std::to_string(n) + ".db");
    must(backup_store(path, copy));
    const auto report = must(check_store(copy));
    EXPECT_EQ(report.problems, std::vector<std::string>{});
    EXPECT_GE(report.jobs, 10 + before - 1000) << "earlier commits are in the copy";
    EXPECT_EQ(problems(), std::vector<std::string>{});
  }
  ended = true;
  writing.join();
}

}  // namespace
}  // namespace sluice::jobs::testing::store_check_test
