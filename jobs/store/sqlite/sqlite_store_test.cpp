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

// Most lines of keys are in the file then.
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
    auto it = must(open_sqlite(options));
    must(it->load());
    return it;
  }
  error refusal() {
    auto opened = open_sqlite(options);
    EXPECT_FALSE(opened) << "it was opened";
    return opened ? error{} : opened.error();
  }
  // With queue 1 and a job in it.
  std::unique_ptr<store> open_with_a_job() {
    auto it = open();
    must(it->apply(a_batch(start, setting(1, "default"), adding(a_job(1)))));
    return it;
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
  auto it = open();
  job other = a_job(2);
  other.spec.args = {"\x01", content_type::bytes};
  other.spec.priority = 4;
  other.spec.unique = {"k", unique_until::started, milliseconds(0)};
  other.errors = {{1, start, "late", "too \"late\"", ""}};
  must(it->apply(a_batch(start, setting(1, "default"), adding(a_job(1)), adding(other))));
  it.reset();
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
      << "what is by default is NULL";
  EXPECT_EQ(file.text("SELECT typeof(args) || ' ' || rank || ' ' || unique_key || ' ' || "
                      "unique_until FROM jobs WHERE id = 2"),
            "blob -4 k started");
  EXPECT_EQ(file.text("SELECT errors ->> '$[0].message' FROM jobs WHERE id = 2"), "too \"late\"");
}

TEST_F(sqlite_store_test, ErrorsThatAreNotJsonDoNotHideTheJob) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run(unverified + "UPDATE jobs SET errors = '[{]'"),
            SQLITE_OK);
  auto it = open();
  const auto found = must(it->get(1));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->errors.size(), 1U);
  EXPECT_NE(found->errors[0].message.find("cannot be read"), std::string::npos);
  EXPECT_EQ(found->spec, a_job(1).spec);
}

// Also in a row that has no checksum.
TEST_F(sqlite_store_test, AJobInAnUnknownStateOrQueueIsDamaged) {
  open_with_a_job();
  for (const std::string wrong :
       {"state = 3", "state = 8", "state = 99", "state = -7", "queue = 9"}) {
    ASSERT_EQ(raw_database(options.path).run(unverified + "UPDATE jobs SET " + wrong), SQLITE_OK);
    auto it = open();
    const auto found = must(it->get(1));
    ASSERT_TRUE(found) << wrong;
    EXPECT_TRUE(found->is_damaged) << wrong;
    EXPECT_EQ(found->state, job_state::dead) << wrong;
    EXPECT_TRUE(must(it->ready_after(1, {}, {})).empty()) << wrong;
  }
}

TEST_F(sqlite_store_test, ACleanCloseLeavesOneFileWithEverythingInIt) {
  open_with_a_job();
  EXPECT_FALSE(has_file("jobs.db-wal"));
  EXPECT_FALSE(has_file("jobs.db-shm"));
  EXPECT_TRUE(has_file("jobs.db"));
}

TEST_F(sqlite_store_test, ACopyMadeWhileServingIsAStore) {
  auto it = open_with_a_job();
  const std::string copy = folder.file("copy.db");
  ASSERT_EQ(raw_database(options.path).run("VACUUM INTO '" + copy + "'"), SQLITE_OK);
  must(it->apply(a_batch(start, adding(a_job(2)))));
  options.path = copy;
  auto restored = open();
  EXPECT_TRUE(must(restored->get(1)).has_value());
  EXPECT_FALSE(must(restored->get(2)).has_value());
}

// ---- files that are not ours

TEST_F(sqlite_store_test, AnEmptyFileBecomesAStore) {
  write_file("jobs.db", "");
  auto it = open_with_a_job();
  EXPECT_TRUE(must(it->get(1)).has_value());
}

TEST_F(sqlite_store_test, ADatabaseOfAnotherProgramIsRefusedAndLeftAlone) {
  for (const std::string sql :
       {"CREATE TABLE t (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 4"}) {
    std::filesystem::remove(options.path);
    {
      raw_database other(options.path);
      ASSERT_EQ(other.run(sql + "; CREATE TABLE u (b)"), SQLITE_OK);
    }
    const std::string before = read_file("jobs.db");
    const error why = refusal();
    EXPECT_EQ(why.code, error_code::invalid) << sql;
    EXPECT_TRUE(says(why, options.path) && says(why, "another program")) << why.message;
    EXPECT_EQ(read_file("jobs.db"), before);
    EXPECT_FALSE(has_file("jobs.db-wal"));
  }
}

TEST_F(sqlite_store_test, AFileOfANewerVersionIsRefusedAndLeftAlone) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("PRAGMA user_version = 4"), SQLITE_OK);
  const std::string before = read_file("jobs.db");
  const error why = refusal();
  EXPECT_EQ(why.code, error_code::invalid);
  EXPECT_TRUE(says(why, "newer version") && says(why, "format 4")) << why.message;
  EXPECT_EQ(read_file("jobs.db"), before);
}

TEST_F(sqlite_store_test, AFormatThatNeverWasIsCorrupt) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("PRAGMA user_version = -5"), SQLITE_OK);
  EXPECT_EQ(refusal().code, error_code::corrupt);
}

TEST_F(sqlite_store_test, AFileThatIsNoDatabaseIsCorruptAndLeftAlone) {
  std::string text(5000, 'x');
  write_file("jobs.db", text);
  const error why = refusal();
  EXPECT_EQ(why.code, error_code::corrupt);
  EXPECT_TRUE(says(why, options.path) && says(why, "not a database")) << why.message;
  EXPECT_EQ(read_file("jobs.db"), text);
}

TEST_F(sqlite_store_test, AFileThatWasCutShortIsCorrupt) {
  {
    auto it = open_with_a_job();
    for (job_id id = 2; id < 200; ++id) {
      job large = a_job(id);
      large.spec.args.data.assign(1000, 'x');
      must(it->apply(a_batch(start, adding(large))));
    }
  }
  const auto whole = std::filesystem::file_size(options.path);
  std::filesystem::resize_file(options.path, whole - 4096);
  const error why = refusal();
  EXPECT_EQ(why.code, error_code::corrupt);
  EXPECT_TRUE(says(why, "cut short")) << why.message;
  std::filesystem::resize_file(options.path, 50);
  EXPECT_EQ(refusal().code, error_code::corrupt);
}

TEST_F(sqlite_store_test, TablesThatWereChangedAreCorrupt) {
  open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("ALTER TABLE jobs DROP COLUMN metadata"), SQLITE_OK);
  const error why = refusal();
  EXPECT_EQ(why.code, error_code::corrupt);
  EXPECT_TRUE(says(why, "metadata")) << why.message;
}

TEST_F(sqlite_store_test, AFolderThatIsNotThereIsNamed) {
  options.path = folder.file("none/jobs.db");
  const error why = refusal();
  EXPECT_EQ(why.code, error_code::io_error);
  EXPECT_TRUE(says(why, "none/jobs.db") && says(why, "No such file")) << why.message;
  options.path = "";
  EXPECT_EQ(refusal().code, error_code::invalid);
  options.path = folder.path();
  EXPECT_EQ(refusal().code, error_code::io_error) << "a folder is no file";
}

// ---- one at a time

TEST_F(sqlite_store_test, ASecondServerIsRefusedAndToldWhoTheFirstIs) {
  auto it = open_with_a_job();
  const error why = refusal();
  EXPECT_EQ(why.code, error_code::locked);
  EXPECT_TRUE(says(why, "process " + std::to_string(::getpid())) && says(why, options.path))
      << why.message;
  std::filesystem::create_symlink("jobs.db", folder.file("other.db"));
  options.path = folder.file("other.db");
  EXPECT_EQ(refusal().code, error_code::locked) << "another name is the same file";
  it.reset();
  EXPECT_TRUE(open_sqlite(options));
}

TEST_F(sqlite_store_test, ALockFileThatAKilledServerLeftIsNoLock) {
  write_file("jobs.db.lock", "1\n");
  EXPECT_TRUE(open_sqlite(options));
}

TEST_F(sqlite_store_test, ARefusedOpenLetsGoOfTheLock) {
  write_file("jobs.db", std::string(5000, 'x'));
  EXPECT_EQ(refusal().code, error_code::corrupt);
  std::filesystem::remove(options.path);
  EXPECT_TRUE(open_sqlite(options));
}

TEST_F(sqlite_store_test, AForeignReaderDisturbsNobody) {
  auto it = open_with_a_job();
  raw_database reader(options.path);
  ASSERT_EQ(reader.run("BEGIN"), SQLITE_OK);
  EXPECT_EQ(reader.number("SELECT count(*) FROM jobs"), 1);
  for (job_id id = 2; id < 50; ++id) must(it->apply(a_batch(start, adding(a_job(id)))));
  EXPECT_EQ(reader.number("SELECT count(*) FROM jobs"), 1) << "it keeps its snapshot";
  ASSERT_EQ(reader.run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(reader.number("SELECT count(*) FROM jobs"), 49);
}

TEST_F(sqlite_store_test, AForeignWriterMakesApplyWaitAndThenSayLocked) {
  auto it = open_with_a_job();
  raw_database writer(options.path);
  ASSERT_EQ(writer.run("BEGIN IMMEDIATE"), SQLITE_OK);
  const auto refused = it->apply(a_batch(start, adding(a_job(2))));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::locked);
  EXPECT_TRUE(says(refused.error(), options.path) && says(refused.error(), "another program"))
      << refused.error().message;
  EXPECT_TRUE(must(it->get(1)).has_value()) << "reading goes on";
  ASSERT_EQ(writer.run("ROLLBACK"), SQLITE_OK);
  must(it->apply(a_batch(start, adding(a_job(2)))));
  EXPECT_TRUE(must(it->get(2)).has_value());
}

// ---- batches that cannot be

TEST_F(sqlite_store_test, AChangeOfAJobThatSomebodyTookAwayIsCorruptAndUndoesItsBatch) {
  auto it = open_with_a_job();
  ASSERT_EQ(raw_database(options.path).run("DELETE FROM jobs WHERE id = 1"), SQLITE_OK);
  std::vector<change> impossible;
  impossible.push_back(dropping(a_job(1)));
  impossible.push_back(moving(a_job(1), job_state::dead));
  impossible.push_back(
      moving(a_job(1), job_state::dead, {.error = attempt_error{1, start, "t", "m", "b"}}));
  for (change& c : impossible) {
    const auto refused = it->apply(a_batch(start, adding(a_job(2)), std::move(c)));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::corrupt);
    EXPECT_EQ(refused.error().job, 1U);
    EXPECT_TRUE(says(refused.error(), "job 1")) << refused.error().message;
    EXPECT_FALSE(must(it->get(2)).has_value()) << "nothing of the batch";
  }
  must(it->apply(a_batch(start, adding(a_job(2)))));
  EXPECT_TRUE(must(it->get(2)).has_value());
}

// Adds and drops of jobs that stand alone are written up to sixteen at a time.
TEST_F(sqlite_store_test, PlainJobsOfOneBatchAreAddedAndDroppedInOrder) {
  auto it = open_with_a_job();
  must(it->apply(a_batch(start, setting(2, "mail"))));
  job_id id = 1;
  for (const std::size_t count : {1U, 15U, 16U, 17U, 33U, 100U}) {
    batch b;
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
      if (n % 3 == 2) drop(id);                                      // the newest, still held back
      if (n % 7 == 6) drop(id - 3);                                  // one of those before
      if (n == 20) drop(first);                                      // one that is written already
      if (n % 11 == 10) b.changes.push_back(setting(1, "default"));  // something in between
    }
    must(it->apply(b));
    for (job_id made = first; made <= id; ++made) {
      ASSERT_EQ(must(it->get(made)).has_value(), left.contains(made)) << made << " of " << count;
    }
    batch rest;
    rest.now = start;
    for (const auto& [gone, j] : left) rest.changes.push_back(dropping(j));
    must(it->apply(rest));
  }
  it.reset();
  const auto all = must(must(open_sqlite(options))->load());
  EXPECT_EQ(all.queues.at(0).counts.ready, 1U);
  EXPECT_EQ(all.queues.at(1).counts, queue_counts{});
}

// What a job that stands alone may have of its own.
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

// However many there are, whatever each has of its own, and in whatever order they go.
TEST_F(sqlite_store_test, JobsThatStandAloneComeAndGoInAnyNumber) {
  auto it = open_with_a_job();
  must(it->apply(a_batch(start, setting(2, "mail"))));
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 20261116);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  job_id id = 1;
  std::map<job_id, job> there;
  for (std::size_t round = 0; round < 120; ++round) {
    batch b;
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
    const std::uint64_t left = random() % 30;  // mostly the oldest go
    for (const auto& [each, j] : there) {
      if (there.size() - gone.size() <= left) break;
      if (!one_in(5)) gone.push_back(each);
    }
    if (one_in(2)) std::ranges::shuffle(gone, random);
    for (const job_id each : gone) {
      b.changes.push_back(dropping(there.at(each)));
      there.erase(each);
    }
    must(it->apply(b));
    for (const auto& [each, j] : there) ASSERT_EQ(must(it->get(each)), j) << "round " << round;
    for (const job_id each : gone) ASSERT_FALSE(must(it->get(each))) << "round " << round;
  }
  it.reset();
  raw_database raw(options.path);
  EXPECT_EQ(raw.number("SELECT count(*) FROM jobs"), static_cast<std::int64_t>(there.size()) + 1);
  EXPECT_EQ(raw.number("SELECT sum(ready + scheduled) FROM queues"),
            static_cast<std::int64_t>(there.size()) + 1);
}

enum class ids_are : std::uint8_t { in_a_row, with_gaps, in_no_order };

void one_that_is_missing_is_named(ids_are how, std::size_t count, std::size_t which) {
  const sluice::testing::temporary_folder own;
  auto it = must(open_sqlite({.path = own.file("jobs.db"), .sync = sync_mode::off}));
  must(it->load());
  must(it->apply(a_batch(start, setting(1, "default"))));
  std::vector<job_id> all;
  for (job_id n = 1; n <= count; ++n) all.push_back(how == ids_are::in_a_row ? n : 2 * n);
  const job_id missing = all[which];
  if (how == ids_are::in_no_order) std::ranges::reverse(all);
  batch adds;
  batch drops;
  for (const job_id id : all) {
    adds.changes.push_back(adding(a_job(id)));
    drops.changes.push_back(dropping(a_job(id)));
  }
  must(it->apply(adds));
  raw_database raw(own.file("jobs.db"));
  ASSERT_EQ(raw.run("DELETE FROM jobs WHERE id = " + std::to_string(missing)), SQLITE_OK);
  const auto refused = it->apply(drops);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().job, missing);
  EXPECT_EQ(must(it->ready_after(1, {}, {})).size(), count - 1) << "nothing of the batch";
}

TEST_F(sqlite_store_test, OneThatIsMissingIsNamedHoweverTheyGo) {
  for (const ids_are how : {ids_are::in_a_row, ids_are::with_gaps, ids_are::in_no_order}) {
    for (const std::size_t count : {2U, 7U, 16U}) {
      for (const std::size_t which : {std::size_t{0}, count / 2, count - 1}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(how)) + ", " + std::to_string(which) + " of " +
                     std::to_string(count));
        one_that_is_missing_is_named(how, count, which);
      }
    }
  }
}

TEST_F(sqlite_store_test, OneOfSixteenThatIsMissingUndoesTheBatchAndIsNamed) {
  auto it = open_with_a_job();
  batch adds;
  batch drops;
  for (job_id id = 101; id <= 116; ++id) {
    adds.changes.push_back(adding(a_job(id)));
    drops.changes.push_back(dropping(a_job(id)));
  }
  must(it->apply(adds));
  ASSERT_EQ(raw_database(options.path).run("DELETE FROM jobs WHERE id = 107"), SQLITE_OK);
  const auto refused = it->apply(drops);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::corrupt);
  EXPECT_TRUE(says(refused.error(), "job 107 ")) << refused.error().message;
  EXPECT_EQ(refused.error().job, 107U);
  EXPECT_EQ(must(it->ready_after(1, {}, {})).size(), 16U) << "job 1 and the other fifteen";
}

TEST_F(sqlite_store_test, AnIdThatIsTakenAndAQueueThatIsNotThereUndoTheirBatch) {
  auto it = open_with_a_job();
  const auto twice = it->apply(a_batch(start, adding(a_job(2)), adding(a_job(1))));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, error_code::corrupt);
  EXPECT_FALSE(must(it->get(2)).has_value());
  const auto nowhere = it->apply(a_batch(start, adding(a_job(3, "mail"))));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, error_code::corrupt);
  EXPECT_FALSE(must(it->get(3)).has_value());
}

TEST_F(sqlite_store_test, AKeyThatAFailedBatchTookIsFree) {
  auto it = open_with_a_job();
  const job timed = with_key(a_job(2), "k", unique_until::elapsed, milliseconds(10));
  ASSERT_FALSE(it->apply(a_batch(start, adding(timed), adding(a_job(1)))));
  EXPECT_TRUE(must(it->apply(a_batch(start, adding(with_key(a_job(3), "k"))))).conflicts.empty());
}

TEST_F(sqlite_store_test, ExpiredKeysDoNotPileUp) {
  auto it = open_with_a_job();
  for (job_id id = 2; id <= 3000; ++id) {
    job j = with_key(a_job(id), "k" + std::to_string(id), unique_until::elapsed, milliseconds(1));
    must(it->apply(a_batch(start, adding(j))));
  }
  raw_database file(options.path);
  const auto keys = [&] { return file.number("SELECT count(*) FROM unique_keys"); };
  EXPECT_EQ(keys(), 2999);
  for (int n = 0; n < 3; ++n) must(it->apply(a_batch(start + milliseconds(1))));
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
