#include "jobs/store/sqlite/sqlite_store.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "jobs/store/testing/store_gates_suite.hpp"
#include "jobs/store/testing/store_suite.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/temporary_folder.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::testing::sqlite_store_test {
namespace {

struct sqlite_kind {
  std::unique_ptr<store> open() {
    return must(open_sqlite({.path = folder.file("jobs.db"), .sync = sync_mode::off}));
  }
  sluice::testing::temporary_folder folder;
};

// So that most lines of keys are in the file.
struct sqlite_few_lines_kind {
  std::unique_ptr<store> open() {
    return must(open_sqlite(
        {.path = folder.file("jobs.db"), .sync = sync_mode::off, .key_lines_in_memory = 2}));
  }
  sluice::testing::temporary_folder folder;
};

INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, store_suite, sqlite_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, store_order_suite, sqlite_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, store_random_suite, sqlite_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, store_gates_suite, sqlite_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite_few_lines, store_gates_suite, sqlite_few_lines_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite_few_lines, store_random_suite, sqlite_few_lines_kind);

class sqlite_store_test : public ::testing::Test {
 protected:
  std::unique_ptr<store> open() {
    auto db = must(open_sqlite(options));
    must(db->load());
    return db;
  }
  error refusal() {
    auto opened = open_sqlite(options);
    EXPECT_FALSE(opened) << "it was opened";
    return opened ? error{} : opened.error();
  }
  // With queue 1 and a job in it.
  std::unique_ptr<store> open_with_a_job() {
    auto db = open();
    must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)))));
    return db;
  }

  std::string read_file(const std::string& name) const {
    std::ifstream in(folder.file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_file(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder.file(name), std::ios::binary) << bytes;
  }
  bool has_file(const std::string& name) const {
    return std::filesystem::exists(folder.file(name));
  }

  sluice::testing::temporary_folder folder;
  sqlite_options options{
      .path = folder.file("jobs.db"), .sync = sync_mode::off, .busy_for = milliseconds(20)};
};

// Rows as an upgraded file has them.
const std::string unverified =
    "UPDATE meta SET value = 1000, checksum = NULL WHERE name = 'unverified_up_to'; "
    "UPDATE jobs SET checksum = NULL; ";

bool says(const error& e, std::string_view part) {
  return e.message.find(part) != std::string::npos;
}

// ---- the file

TEST_F(sqlite_store_test, TheTablesAreTheDocumentedOnes) {
  open_with_a_job();
  raw_database file(options.path);
  const auto columns = [&](const std::string& table) {
    return file.text("SELECT group_concat(name, ' ') FROM pragma_table_info('" + table + "')");
  };
  EXPECT_EQ(columns("jobs"),
            "id queue state rank turn due_at created_at kind args ended_at attempts run_at "
            "lease_for time_limit keep_for retry_attempts retry_first retry_factor retry_longest "
            "retry_jitter unique_key unique_until unique_for metadata errors result key "
            "line batch after step webhook blockers has_place progress progress_text history "
            "checksum");
  EXPECT_EQ(columns("queues"),
            "number name capacity_jobs capacity_bytes when_full paused lease_for keep_done "
            "keep_results keep_dead scheduled ready retrying done dead cancelled bytes "
            "held rate rate_burst concurrency weight key_concurrency key_rate key_burst "
            "deliver_url deliver_concurrency deliver_timeout checksum");
  EXPECT_EQ(columns("lines"), "line active waiting");
  EXPECT_EQ(columns("edges"), "on_id job condition checksum");
  EXPECT_EQ(columns("batches"),
            "id name open total pending failed created_at ended_at due_at keep_done keep_failed "
            "checksum");
  EXPECT_EQ(columns("logs"), "job number attempt at text checksum");
  EXPECT_EQ(columns("unique_keys"), "queue key job expires_at checksum");
  EXPECT_EQ(columns("leases"),
            "job queue key worker until began lasts progress progress_text cancelled job_key "
            "checksum");
  EXPECT_EQ(columns("meta"), "name value checksum");
  EXPECT_EQ(file.text("SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema WHERE "
                      "type = 'index' AND sql IS NOT NULL ORDER BY name)"),
            "batches_due edges_job jobs_batch jobs_by_state jobs_due jobs_line jobs_placed "
            "jobs_ready unique_keys_expiring");
  EXPECT_EQ(file.number("PRAGMA application_id"), 0x736C7563);
  EXPECT_EQ(file.number("PRAGMA user_version"), 3);
  EXPECT_TRUE(file.is_sound());
}

TEST_F(sqlite_store_test, APlainJobIsAPlainRow) {
  auto db = open();
  job other = a_job(2);
  other.spec.args = {"\x01", content_type::bytes};
  other.spec.priority = 4;
  other.spec.unique = {"k", unique_until::started, milliseconds(0)};
  other.errors = {{1, start, "late", "too \"late\"", ""}};
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)), adding(other))));
  db.reset();
  raw_database file(options.path);
  EXPECT_EQ(file.text("SELECT printf('%d %d %d %d %s %s', queue, state, rank, turn, kind, args) "
                      "FROM jobs WHERE id = 1"),
            R"(1 2 0 1 count {"n":1})");
  EXPECT_EQ(
      file.number("SELECT count(*) FROM jobs WHERE id = 1 AND coalesce(due_at, ended_at, "
                  "attempts, run_at, lease_for, time_limit, keep_for, retry_attempts, "
                  "retry_first, retry_factor, retry_longest, retry_jitter, unique_key, "
                  "unique_until, unique_for, metadata, errors, result, key, line, batch, after, "
                  "step, webhook, blockers, has_place, progress, progress_text, history) IS NULL"),
      1)
      << "defaults are NULL";
  EXPECT_EQ(file.text("SELECT typeof(args) || ' ' || rank || ' ' || unique_key || ' ' || "
                      "unique_until FROM jobs WHERE id = 2"),
            "blob -4 k started");
  EXPECT_EQ(file.text("SELECT errors ->> '$[0].message' FROM jobs WHERE id = 2"), "too \"late\"");
}

TEST_F(sqlite_store_test, ErrorsThatAreNotJsonDoNotHideTheJob) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run(unverified + "UPDATE jobs SET errors = '[{]'"),
            SQLITE_OK);
  auto db = open();
  const auto found = must(db->get(1));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->errors.size(), 1U);
  EXPECT_NE(found->errors[0].message.find("cannot be read"), std::string::npos);
  EXPECT_EQ(found->spec, a_job(1).spec);
}

// Also in a row without a checksum.
TEST_F(sqlite_store_test, AJobInAnUnknownStateOrQueueIsDamaged) {
  open_with_a_job();
  for (const std::string wrong :
       {"state = 3", "state = 8", "state = 99", "state = -7", "queue = 9"}) {
    ASSERT_EQ(raw_database(options.path).run(unverified + "UPDATE jobs SET " + wrong), SQLITE_OK);
    auto db = open();
    const auto found = must(db->get(1));
    ASSERT_TRUE(found) << wrong;
    EXPECT_TRUE(found->is_damaged) << wrong;
    EXPECT_EQ(found->state, job_state::dead) << wrong;
    EXPECT_TRUE(must(db->ready_after(1, {}, {})).empty()) << wrong;
  }
}

TEST_F(sqlite_store_test, ACleanCloseLeavesOneCompleteFile) {
  open_with_a_job();
  EXPECT_FALSE(has_file("jobs.db-wal"));
  EXPECT_FALSE(has_file("jobs.db-shm"));
  EXPECT_TRUE(has_file("jobs.db"));
}

TEST_F(sqlite_store_test, ACopyMadeWhileServingIsAStore) {
  auto db = open_with_a_job();
  const std::string copy = folder.file("copy.db");
  ASSERT_EQ(raw_database(options.path).run("VACUUM INTO '" + copy + "'"), SQLITE_OK);
  must(db->apply(a_transaction(start, adding(a_job(2)))));
  options.path = copy;
  auto restored = open();
  EXPECT_TRUE(must(restored->get(1)).has_value());
  EXPECT_FALSE(must(restored->get(2)).has_value());
}

// ---- files of other programs

TEST_F(sqlite_store_test, AnEmptyFileBecomesAStore) {
  write_file("jobs.db", "");
  auto db = open_with_a_job();
  EXPECT_TRUE(must(db->get(1)).has_value());
}

TEST_F(sqlite_store_test, ADatabaseOfAnotherProgramIsRejectedAndUnchanged) {
  for (const std::string sql :
       {"CREATE TABLE t (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 4"}) {
    std::filesystem::remove(options.path);
    {
      raw_database other(options.path);
      ASSERT_EQ(other.run(sql + "; CREATE TABLE u (b)"), SQLITE_OK);
    }
    const std::string before = read_file("jobs.db");
    const error failure = refusal();
    EXPECT_EQ(failure.code, error_code::invalid) << sql;
    EXPECT_TRUE(says(failure, options.path) && says(failure, "another program")) << failure.message;
    EXPECT_EQ(read_file("jobs.db"), before);
    EXPECT_FALSE(has_file("jobs.db-wal"));
  }
}

TEST_F(sqlite_store_test, AFileOfANewerVersionIsRejectedAndUnchanged) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("PRAGMA user_version = 4"), SQLITE_OK);
  const std::string before = read_file("jobs.db");
  const error failure = refusal();
  EXPECT_EQ(failure.code, error_code::invalid);
  EXPECT_TRUE(says(failure, "newer version") && says(failure, "format 4")) << failure.message;
  EXPECT_EQ(read_file("jobs.db"), before);
}

TEST_F(sqlite_store_test, AnUnknownFormatIsCorrupt) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("PRAGMA user_version = -5"), SQLITE_OK);
  EXPECT_EQ(refusal().code, error_code::corrupt);
}

TEST_F(sqlite_store_test, AFileThatIsNotADatabaseIsCorruptAndUnchanged) {
  std::string text(5000, 'x');
  write_file("jobs.db", text);
  const error failure = refusal();
  EXPECT_EQ(failure.code, error_code::corrupt);
  EXPECT_TRUE(says(failure, options.path) && says(failure, "not a database")) << failure.message;
  EXPECT_EQ(read_file("jobs.db"), text);
}

TEST_F(sqlite_store_test, ATruncatedFileIsCorrupt) {
  {
    auto db = open_with_a_job();
    for (job_id id = 2; id < 200; ++id) {
      job large = a_job(id);
      large.spec.args.data.assign(1000, 'x');
      must(db->apply(a_transaction(start, adding(large))));
    }
  }
  const auto whole = std::filesystem::file_size(options.path);
  std::filesystem::resize_file(options.path, whole - 4096);
  const error failure = refusal();
  EXPECT_EQ(failure.code, error_code::corrupt);
  EXPECT_TRUE(says(failure, "is truncated")) << failure.message;
  std::filesystem::resize_file(options.path, 50);
  EXPECT_EQ(refusal().code, error_code::corrupt);
}

TEST_F(sqlite_store_test, ChangedTablesAreCorrupt) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("ALTER TABLE jobs DROP COLUMN metadata"), SQLITE_OK);
  const error failure = refusal();
  EXPECT_EQ(failure.code, error_code::corrupt);
  EXPECT_TRUE(says(failure, "metadata")) << failure.message;
}

TEST_F(sqlite_store_test, AMissingFolderIsNamed) {
  options.path = folder.file("none/jobs.db");
  const error failure = refusal();
  EXPECT_EQ(failure.code, error_code::io_error);
  EXPECT_TRUE(says(failure, "none/jobs.db") && says(failure, "No such file")) << failure.message;
  options.path = "";
  EXPECT_EQ(refusal().code, error_code::invalid);
  options.path = folder.path();
  EXPECT_EQ(refusal().code, error_code::io_error) << "a folder is not a file";
}

// ---- one server at a time

TEST_F(sqlite_store_test, ASecondServerIsRejectedAndTheFirstIsNamed) {
  auto db = open_with_a_job();
  const error failure = refusal();
  EXPECT_EQ(failure.code, error_code::locked);
  EXPECT_TRUE(says(failure, "process " + std::to_string(::getpid())) && says(failure, options.path))
      << failure.message;
  std::filesystem::create_symlink("jobs.db", folder.file("other.db"));
  options.path = folder.file("other.db");
  EXPECT_EQ(refusal().code, error_code::locked) << "another name is the same file";
  db.reset();
  EXPECT_TRUE(open_sqlite(options));
}

TEST_F(sqlite_store_test, ALockFileOfAKilledServerIsNoLock) {
  write_file("jobs.db.lock", "1\n");
  EXPECT_TRUE(open_sqlite(options));
}

TEST_F(sqlite_store_test, AFailedOpenReleasesTheLock) {
  write_file("jobs.db", std::string(5000, 'x'));
  EXPECT_EQ(refusal().code, error_code::corrupt);
  std::filesystem::remove(options.path);
  EXPECT_TRUE(open_sqlite(options));
}

TEST_F(sqlite_store_test, AForeignReaderDoesNotInterfere) {
  auto db = open_with_a_job();
  raw_database reader(options.path);
  ASSERT_EQ(reader.run("BEGIN"), SQLITE_OK);
  EXPECT_EQ(reader.number("SELECT count(*) FROM jobs"), 1);
  for (job_id id = 2; id < 50; ++id) must(db->apply(a_transaction(start, adding(a_job(id)))));
  EXPECT_EQ(reader.number("SELECT count(*) FROM jobs"), 1) << "it keeps its snapshot";
  ASSERT_EQ(reader.run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(reader.number("SELECT count(*) FROM jobs"), 49);
}

TEST_F(sqlite_store_test, AForeignWriterMakesApplyWaitAndThenFailWithLocked) {
  auto db = open_with_a_job();
  raw_database writer(options.path);
  ASSERT_EQ(writer.run("BEGIN IMMEDIATE"), SQLITE_OK);
  const auto refused = db->apply(a_transaction(start, adding(a_job(2))));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::locked);
  EXPECT_TRUE(says(refused.error(), options.path) && says(refused.error(), "another program"))
      << refused.error().message;
  EXPECT_TRUE(must(db->get(1)).has_value()) << "reads still work";
  ASSERT_EQ(writer.run("ROLLBACK"), SQLITE_OK);
  must(db->apply(a_transaction(start, adding(a_job(2)))));
  EXPECT_TRUE(must(db->get(2)).has_value());
}

// ---- transactions that contradict the file

TEST_F(sqlite_store_test, AChangeOfAJobDeletedByAnotherProgramIsCorruptAndRollsBack) {
  auto db = open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("DELETE FROM jobs WHERE id = 1"), SQLITE_OK);
  std::vector<change> impossible;
  impossible.push_back(dropping(a_job(1)));
  impossible.push_back(moving(a_job(1), job_state::dead));
  impossible.push_back(
      moving(a_job(1), job_state::dead, {.error = attempt_error{1, start, "t", "m", "b"}}));
  for (change& c : impossible) {
    const auto refused = db->apply(a_transaction(start, adding(a_job(2)), std::move(c)));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::corrupt);
    EXPECT_EQ(refused.error().job, 1U);
    EXPECT_TRUE(says(refused.error(), "job 1")) << refused.error().message;
    EXPECT_FALSE(must(db->get(2)).has_value()) << "nothing of the batch";
  }
  must(db->apply(a_transaction(start, adding(a_job(2)))));
  EXPECT_TRUE(must(db->get(2)).has_value());
}

// Adds and drops of lone jobs are written up to sixteen at a time.
TEST_F(sqlite_store_test, PlainJobsOfOneTransactionAreAddedAndDroppedInOrder) {
  auto db = open_with_a_job();
  must(db->apply(a_transaction(start, setting(2, "mail"))));
  job_id id = 1;
  for (const std::size_t count : {1U, 15U, 16U, 17U, 33U, 100U}) {
    transaction b;
    b.now = start;
    const job_id first = id + 1;
    std::map<job_id, job> left;
    const auto drop = [&](job_id gone) {
      const auto at = left.find(gone);
      if (at == left.end()) return;
      b.changes.push_back(dropping(at->second));
      left.erase(at);
    };
    for (std::size_t n = 0; n < count; ++n) {
      const job j = a_job(++id, n % 5 == 4 ? "mail" : "default");
      b.changes.push_back(adding(j));
      left.emplace(id, j);
      if (n % 3 == 2) drop(id);                                      // the newest, still buffered
      if (n % 7 == 6) drop(id - 3);                                  // an earlier one
      if (n == 20) drop(first);                                      // already written
      if (n % 11 == 10) b.changes.push_back(setting(1, "default"));  // another change in between
    }
    must(db->apply(b));
    for (job_id made = first; made <= id; ++made) {
      ASSERT_EQ(must(db->get(made)).has_value(), left.contains(made)) << made << " of " << count;
    }
    transaction rest;
    rest.now = start;
    for (const auto& [gone, j] : left) rest.changes.push_back(dropping(j));
    must(db->apply(rest));
  }
  db.reset();
  const auto all = must(must(open_sqlite(options))->load());
  EXPECT_EQ(all.queues.at(0).counts.ready, 1U);
  EXPECT_EQ(all.queues.at(1).counts, queue_counts{});
}

// The fields that a lone job may have.
job with_some_options(job j, std::mt19937_64& random) {
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  if (one_in(2)) j.spec.lease_for = milliseconds(random() % 100'000);
  if (one_in(3)) j.spec.retry = {7, milliseconds(1), 1.5, milliseconds(9), 0.25};
  if (one_in(3)) j.spec.metadata = R"({"a":1})";
  if (one_in(3)) j.spec.keep_for = milliseconds(5);
  if (one_in(3)) j.spec.time_limit = milliseconds(6);
  if (one_in(4)) j.attempts = 3;
  if (one_in(5)) j.ended_at = start;
  if (one_in(4)) {
    j.state = job_state::scheduled;
    j.due_at = j.spec.run_at = start + milliseconds(1000);
  }
  if (one_in(5)) j.spec.webhook = "http://localhost/";  // does not go with others
  return j;
}

// Any number of jobs, with all combinations of fields, dropped in any order.
TEST_F(sqlite_store_test, AnyNumberOfLoneJobsIsAddedAndDropped) {
  auto db = open_with_a_job();
  must(db->apply(a_transaction(start, setting(2, "mail"))));
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 20261116);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  job_id id = 1;
  std::map<job_id, job> there;
  for (std::size_t round = 0; round < 120; ++round) {
    transaction b;
    b.now = start;
    const bool all_plain = one_in(4);
    const bool two_queues = one_in(3);
    for (std::size_t n = round % 40; n > 0; --n) {
      job j = a_job(++id, two_queues && one_in(4) ? "mail" : "default");
      if (!all_plain) j = with_some_options(std::move(j), random);
      b.changes.push_back(adding(j));
      there.emplace(id, std::move(j));
    }
    std::vector<job_id> gone;
    const std::uint64_t left = random() % 30;  // mostly the oldest are dropped
    for (const auto& [each, j] : there) {
      if (there.size() - gone.size() <= left) break;
      if (!one_in(5)) gone.push_back(each);
    }
    if (one_in(2)) std::ranges::shuffle(gone, random);
    for (const job_id each : gone) {
      b.changes.push_back(dropping(there.at(each)));
      there.erase(each);
    }
    must(db->apply(b));
    for (const auto& [each, j] : there) ASSERT_EQ(must(db->get(each)), j) << "round " << round;
    for (const job_id each : gone) ASSERT_FALSE(must(db->get(each))) << "round " << round;
  }
  db.reset();
  raw_database raw(options.path);
  EXPECT_EQ(raw.number("SELECT count(*) FROM jobs"), static_cast<std::int64_t>(there.size()) + 1);
  EXPECT_EQ(raw.number("SELECT sum(ready + scheduled) FROM queues"),
            static_cast<std::int64_t>(there.size()) + 1);
}

enum class ids_are : std::uint8_t { in_a_row, with_gaps, in_no_order };

void one_that_is_missing_is_named(ids_are order, std::size_t count, std::size_t which) {
  const sluice::testing::temporary_folder own;
  auto db = must(open_sqlite({.path = own.file("jobs.db"), .sync = sync_mode::off}));
  must(db->load());
  must(db->apply(a_transaction(start, setting(1, "default"))));
  std::vector<job_id> all;
  for (job_id n = 1; n <= count; ++n) all.push_back(order == ids_are::in_a_row ? n : 2 * n);
  const job_id missing = all[which];
  if (order == ids_are::in_no_order) std::ranges::reverse(all);
  transaction adds;
  transaction drops;
  for (const job_id id : all) {
    adds.changes.push_back(adding(a_job(id)));
    drops.changes.push_back(dropping(a_job(id)));
  }
  must(db->apply(adds));
  raw_database raw(own.file("jobs.db"));
  ASSERT_EQ(raw.run("DELETE FROM jobs WHERE id = " + std::to_string(missing)), SQLITE_OK);
  const auto refused = db->apply(drops);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().job, missing);
  EXPECT_EQ(must(db->ready_after(1, {}, {})).size(), count - 1) << "nothing of the batch";
}

TEST_F(sqlite_store_test, AMissingJobIsNamedInEveryKindOfDrop) {
  for (const ids_are order : {ids_are::in_a_row, ids_are::with_gaps, ids_are::in_no_order}) {
    for (const std::size_t count : {2U, 7U, 16U}) {
      for (const std::size_t which : {std::size_t{0}, count / 2, count - 1}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(order)) + ", " + std::to_string(which) +
                     " of " + std::to_string(count));
        one_that_is_missing_is_named(order, count, which);
      }
    }
  }
}

TEST_F(sqlite_store_test, OneMissingJobOfSixteenRollsBackAndIsNamed) {
  auto db = open_with_a_job();
  transaction adds;
  transaction drops;
  for (job_id id = 101; id <= 116; ++id) {
    adds.changes.push_back(adding(a_job(id)));
    drops.changes.push_back(dropping(a_job(id)));
  }
  must(db->apply(adds));
  ASSERT_EQ(raw_database(options.path).run("DELETE FROM jobs WHERE id = 107"), SQLITE_OK);
  const auto refused = db->apply(drops);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::corrupt);
  EXPECT_TRUE(says(refused.error(), "job 107 ")) << refused.error().message;
  EXPECT_EQ(refused.error().job, 107U);
  EXPECT_EQ(must(db->ready_after(1, {}, {})).size(), 16U) << "job 1 and the other fifteen";
}

TEST_F(sqlite_store_test, ATakenIdAndAMissingQueueRollTheirTransactionBack) {
  auto db = open_with_a_job();
  const auto twice = db->apply(a_transaction(start, adding(a_job(2)), adding(a_job(1))));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, error_code::corrupt);
  EXPECT_FALSE(must(db->get(2)).has_value());
  const auto nowhere = db->apply(a_transaction(start, adding(a_job(3, "mail"))));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, error_code::corrupt);
  EXPECT_FALSE(must(db->get(3)).has_value());
}

TEST_F(sqlite_store_test, AKeyOfAFailedTransactionIsFree) {
  auto db = open_with_a_job();
  const job timed = with_key(a_job(2), "k", unique_until::elapsed, milliseconds(10));
  ASSERT_FALSE(db->apply(a_transaction(start, adding(timed), adding(a_job(1)))));
  EXPECT_TRUE(
      must(db->apply(a_transaction(start, adding(with_key(a_job(3), "k"))))).conflicts.empty());
}

TEST_F(sqlite_store_test, ExpiredKeysDoNotAccumulate) {
  auto db = open_with_a_job();
  for (job_id id = 2; id <= 3000; ++id) {
    job j = with_key(a_job(id), "k" + std::to_string(id), unique_until::elapsed, milliseconds(1));
    must(db->apply(a_transaction(start, adding(j))));
  }
  raw_database file(options.path);
  const auto keys = [&] { return file.number("SELECT count(*) FROM unique_keys"); };
  EXPECT_EQ(keys(), 2999);
  for (int n = 0; n < 3; ++n) must(db->apply(a_transaction(start + milliseconds(1))));
  EXPECT_EQ(keys(), 0) << "a thousand at a time";
}

// ---- words

TEST(sync_mode, HasItsWords) {
  for (const sync_mode m : {sync_mode::full, sync_mode::interval, sync_mode::off}) {
    EXPECT_EQ(sync_mode_from(to_string(m)), m);
  }
  EXPECT_EQ(to_string(sync_mode::interval), "interval");
  EXPECT_FALSE(sync_mode_from("sometimes"));
}

TEST_F(sqlite_store_test, DescribesItselfForPeople) {
  EXPECT_EQ(open()->describe(), "SQLite, " + options.path + ", sync=off");
}

}  // namespace
}  // namespace sluice::jobs::testing::sqlite_store_test
