// Files of an older format are upgraded when they are opened, without loss.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/sqlite/sqlite_store.hpp"
#include "jobs/store/sqlite/store_check.hpp"
#include "jobs/store/sqlite/testing/faulty_disk.hpp"
#include "jobs/store/sqlite/testing/format_2_file.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "jobs/store/testing/store_words.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::testing::sqlite_format_test {
namespace {

// The tables of the first version.
constexpr const char* format_1 = R"(
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  state INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  due_at INTEGER,
  created_at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  args NOT NULL,
  ended_at INTEGER,
  attempts INTEGER,
  run_at INTEGER,
  lease_for INTEGER,
  time_limit INTEGER,
  keep_for INTEGER,
  retry_attempts INTEGER,
  retry_first INTEGER,
  retry_factor REAL,
  retry_longest INTEGER,
  retry_jitter REAL,
  unique_key TEXT,
  unique_until TEXT,
  unique_for INTEGER,
  metadata TEXT,
  errors TEXT,
  result
);
CREATE INDEX jobs_ready ON jobs (queue, rank, turn) WHERE state = 2;
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_by_state ON jobs (state) WHERE state <> 2;

CREATE TABLE queues (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  capacity_jobs INTEGER NOT NULL,
  capacity_bytes INTEGER NOT NULL,
  when_full TEXT NOT NULL,
  paused INTEGER NOT NULL,
  lease_for INTEGER NOT NULL,
  keep_done INTEGER NOT NULL,
  keep_results INTEGER NOT NULL,
  keep_dead INTEGER NOT NULL,
  scheduled INTEGER NOT NULL DEFAULT 0,
  ready INTEGER NOT NULL DEFAULT 0,
  retrying INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE unique_keys (
  queue INTEGER NOT NULL,
  key TEXT NOT NULL,
  job INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX unique_keys_expiring ON unique_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE leases (
  job INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  key INTEGER NOT NULL,
  worker TEXT NOT NULL,
  until INTEGER NOT NULL,
  began INTEGER NOT NULL
);

CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO meta VALUES ('ids_up_to', 0);
)";

// Two queues, four jobs, a unique key, a lease, a due job.
constexpr const char* rows_of_format_1 = R"(
INSERT INTO queues VALUES (1, 'default', 5, 100000, 'latest', 1, 10, 20, 30, 40,
  1, 2, 0, 0, 1, 0, 0);
INSERT INTO queues VALUES (2, 'mail', 9, 9, 'reject', 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO jobs (id, queue, state, rank, turn, due_at, created_at, kind, args) VALUES
  (1, 1, 2, 0, 1, NULL, 1767225600000, 'count', '{"n":1}'),
  (2, 1, 2, -3, 2, NULL, 1767225600000, 'count', x'ff'),
  (3, 1, 0, 0, 3, 1767225600500, 1767225600000, 'count', '{"n":3}'),
  (4, 1, 6, 0, 4, 1767225609999, 1767225600000, 'count', '{"n":4}');
UPDATE jobs SET unique_key = 'u' WHERE id = 1;
UPDATE queues SET bytes = (SELECT sum(64 + length(kind) + length(CAST(args AS BLOB)) +
  length(coalesce(unique_key, ''))) FROM jobs WHERE state < 5) WHERE number = 1;
INSERT INTO unique_keys VALUES (1, 'u', 1, NULL);
INSERT INTO leases VALUES (2, 1, 77, 'worker', 1767225660000, 1767225600000);
UPDATE meta SET value = 1000 WHERE name = 'ids_up_to';
)";

constexpr const char* marks_of_format_1 =
    "PRAGMA application_id = 1936487779; PRAGMA user_version = 1";

class sqlite_format_test : public ::testing::Test {
 protected:
  sqlite_format_test() {
    raw_database file(path);
    EXPECT_EQ(file.run("PRAGMA journal_mode = WAL"), SQLITE_OK);
    EXPECT_EQ(file.run(format_1), SQLITE_OK);
    EXPECT_EQ(file.run(rows_of_format_1), SQLITE_OK);
    EXPECT_EQ(file.run(marks_of_format_1), SQLITE_OK);
  }

  sluice::testing::temporary_folder folder;
  std::string path = folder.file("jobs.db");
};

TEST_F(sqlite_format_test, AFileOfFormat1KeepsAllItsData) {
  for (int opened = 0; opened < 2; ++opened) {
    auto db = must(open_sqlite({.path = path, .reserve_file_bytes = 0}));
    const auto all = must(db->load());
    EXPECT_EQ(all.ids_up_to, 1000U);
    ASSERT_EQ(all.queues.size(), 2U);
    queue_options o;
    o.capacity_jobs = 5;
    o.capacity_bytes = 100'000;
    o.when_full = overflow::latest;
    o.paused = true;
    o.lease_for = milliseconds(10);
    o.keep_done = milliseconds(20);
    o.keep_results = milliseconds(30);
    o.keep_dead = milliseconds(40);
    EXPECT_EQ(all.queues[0].options, o) << "new options have their defaults";
    EXPECT_EQ(all.queues[0].counts.ready, 2U);
    EXPECT_EQ(all.queues[0].counts.held, 0U);
    ASSERT_EQ(all.leases.size(), 1U);
    EXPECT_EQ(all.leases[0].lease.key, 77U);
    job first = a_job(1);
    first.spec.unique.key = "u";
    EXPECT_EQ(must(db->get(1)), first);
    EXPECT_EQ(must(db->get(4))->state, job_state::dead);
    EXPECT_EQ(ids_of(must(db->ready_after(1, {}, {}))), (ids{2, 1}));
    EXPECT_EQ(must(db->due(start, 10)).next, start + milliseconds(500));
  }
  raw_database file(path);
  EXPECT_EQ(file.number("PRAGMA user_version"), 3);
  EXPECT_TRUE(file.is_sound());
}

TEST_F(sqlite_format_test, AFileOfFormat1SupportsAllNewFeatures) {
  auto db = must(open_sqlite({.path = path, .reserve_file_bytes = 0}));
  must(db->load());
  job waits = a_job(1001);
  waits.spec.after = {{1, "", after_when::success}};
  job keyed = a_job(1002);
  keyed.spec.key = "k";
  transaction b =
      a_transaction(start, adding(waits), adding(keyed), adding_logs(1, {{0, 1, start, "line"}}));
  b.ids_up_to = 2000;
  must(db->apply(b));
  EXPECT_EQ(must(db->get(1001))->state, job_state::held);
  const auto outcome =
      must(db->apply(a_transaction(start, dropping(*must(db->get(1)), job_state::done))));
  ASSERT_EQ(outcome.effects.size(), 1U);
  EXPECT_EQ(outcome.effects[0].id, 1001U);
  db.reset();
  const auto report = must(check_store(path));
  EXPECT_TRUE(report.is_sound()) << report.problems.at(0);
}

class format_2_test : public ::testing::Test {
 protected:
  format_2_test() {
    raw_database file(path);
    EXPECT_EQ(file.run("PRAGMA journal_mode = WAL"), SQLITE_OK);
    EXPECT_EQ(file.run(format_2_file), SQLITE_OK);
  }
  std::unique_ptr<store> open() {
    return must(
        open_sqlite({.path = path, .reserve_file_bytes = 0, .on_notice = [this](const auto& n) {
                       EXPECT_FALSE(n.is_damage) << n.text;
                       notices.push_back(n.text);
                     }}));
  }

  sluice::testing::temporary_folder folder;
  std::string path = folder.file("jobs.db");
  std::vector<std::string> notices;
};

TEST_F(format_2_test, AFileOfFormat2KeepsAllItsData) {
  for (int opened = 0; opened < 2; ++opened) {
    auto db = open();
    const auto all = must(db->load());
    EXPECT_EQ(all.ids_up_to, 1001U);
    ASSERT_EQ(all.queues.size(), 3U);
    EXPECT_EQ(all.queues[1].name, "default");
    EXPECT_EQ(all.queues[1].counts.ready, 5U);
    EXPECT_EQ(all.queues[1].counts.held, 2U);
    ASSERT_EQ(all.crons.size(), 1U);
    EXPECT_FALSE(all.crons[0].spec.paused) << "it is unverified, not damaged";
    ASSERT_EQ(all.leases.size(), 1U);
    EXPECT_EQ(all.leases[0].lease,
              (change::lease_record{4475333568108726, "w", {1827505786392}, {1795105786392}}));
    EXPECT_EQ(must(db->get(1))->spec.metadata, R"({"trace": "x"})");
    EXPECT_EQ(must(db->get(3))->state, job_state::scheduled);
    EXPECT_EQ(must(db->get(6))->state, job_state::held);
    EXPECT_EQ(must(db->get(7))->blockers, 1U);
    EXPECT_EQ(must(db->get(11))->errors.at(0).type, "io");
    EXPECT_EQ(must(db->get_batch(8))->pending, 2U);
    EXPECT_EQ(ids_of(must(db->ready_after(2, {}, {}))), (ids{2, 4, 5, 9, 10}));
    for (const job& j : must(db->list({}, 0, 100)).jobs) EXPECT_FALSE(j.is_damaged);
  }
  ASSERT_EQ(notices.size(), 2U) << "before and after the upgrade";
  EXPECT_NE(notices[0].find("format 2 to 3, 10 jobs"), std::string::npos) << notices[0];
  EXPECT_NE(notices[1].find("100 %"), std::string::npos) << notices[1];
  const auto report = must(check_store(path));
  EXPECT_EQ(report.problems, std::vector<std::string>{});
  EXPECT_EQ(report.unverified, 10U);
}

TEST_F(format_2_test, JobsGetAChecksumWhenTheyAreWritten) {
  auto db = open();
  must(db->load());
  const job plain = *must(db->get(2));
  change c;
  c.type = op::move;
  c.queue = 2;
  c.id = 2;
  c.new_state = job_state::retrying;
  c.weight = weight_of(plain.spec);
  c.fields = std::make_unique<change::moved>();
  c.fields->due_at = start;
  must(db->apply(a_transaction(start, std::move(c))));
  db.reset();
  EXPECT_EQ(must(check_store(path)).unverified, 9U);
  ASSERT_EQ(raw_database(path).run("UPDATE jobs SET args = '[1, 2, 4]' WHERE id IN (2, 4)"),
            SQLITE_OK);
  const auto report = must(check_store(path));
  ASSERT_EQ(report.problems.size(), 2U);
  EXPECT_NE(report.problems[0].find("job 2 is damaged"), std::string::npos);
  EXPECT_NE(report.problems[1].find("bytes, but its jobs have"), std::string::npos)
      << "job 4, which is unverified, is found only by its length";
}

// After a power cut at any event the file has format 1 or 3, completely.
TEST(sqlite_format_power_test, APowerCutDuringAnUpgradeLeavesOneFormatOrTheOther) {
  int old = 0;
  int taken_on = 0;
  for (std::uint64_t cut_after = 1; cut_after <= 60; ++cut_after) {
    faulty_disk disk({.seed = cut_after});
    {
      raw_database file(disk, "jobs.db");
      ASSERT_EQ(file.run("PRAGMA journal_mode = WAL"), SQLITE_OK);
      ASSERT_EQ(file.run(format_1), SQLITE_OK);
      ASSERT_EQ(file.run(rows_of_format_1), SQLITE_OK);
      ASSERT_EQ(file.run(marks_of_format_1), SQLITE_OK);
    }
    disk.power_off_after(cut_after);
    const bool is_open = open_sqlite({.path = "jobs.db", .vfs = disk.vfs()}).has_value();
    EXPECT_TRUE(is_open || disk.is_off());
    auto cut = disk.power_cut(cut_after);
    {
      raw_database file(*cut, "jobs.db");
      const auto version = file.number("PRAGMA user_version");
      EXPECT_TRUE(file.is_sound());
      EXPECT_EQ(file.number("SELECT count(*) FROM pragma_table_info('jobs')"),
                version == 1 ? 26 : 38);
      ++(version == 1 ? old : taken_on);
    }
    auto again = must(open_sqlite({.path = "jobs.db", .vfs = cut->vfs()}));
    EXPECT_EQ(must(again->load()).queues.size(), 2U);
    EXPECT_TRUE(must(again->get(3)).has_value());
  }
  EXPECT_GT(old, 0);
  EXPECT_GT(taken_on, 0);
}

}  // namespace
}  // namespace sluice::jobs::testing::sqlite_format_test
