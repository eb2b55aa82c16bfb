// Rows that changed on the disk are reported, are not treated as sound, and do not affect others.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "jobs/store/sqlite/detail/job_row.hpp"
#include "jobs/store/sqlite/testing/damaged_store.hpp"

namespace sluice::jobs::testing::sqlite_damage_test {
namespace {

class sqlite_damage_test : public damaged_store {};

TEST_F(sqlite_damage_test, ADamagedPayloadIsShownAsDeadAndNotLeased) {
  auto db = open();
  transaction b = a_transaction(start, setting(1, "default"), adding(a_job(1)), adding(a_job(2)),
                                adding(a_job(3)));
  b.ids_up_to = 1000;
  must(db->apply(b));
  sql(R"(UPDATE jobs SET args = '{"n":7}' WHERE id = 2)");
  EXPECT_EQ(ids_of(must(db->ready_after(1, {}, {}))), (ids{1, 3}));
  EXPECT_EQ(ids_of(must(db->victims(1, victim::oldest, 10, [](job_id) { return false; }))),
            (ids{1, 3}));
  const job found = *must(db->get(2));
  EXPECT_TRUE(found.is_damaged);
  EXPECT_EQ(found.state, job_state::dead);
  ASSERT_EQ(found.errors.size(), 1U);
  EXPECT_EQ(found.errors[0].type, damaged_error_type);
  EXPECT_EQ(found.spec.args.type, content_type::bytes) << "it may not be JSON any more";
  const auto page = must(db->list({}, 0, 10));
  EXPECT_EQ(ids_of(page.jobs), (ids{1, 2, 3}));
  EXPECT_EQ(page.jobs[0], a_job(1));
  EXPECT_TRUE(page.jobs[1].is_damaged);
  EXPECT_EQ(page.jobs[2], a_job(3));
  EXPECT_EQ(notices.size(), 1U) << "each job is reported once";
  EXPECT_TRUE(has_notice("job 2 is damaged"));
  EXPECT_TRUE(has_notice("sluice check"));

  const auto damaged = db->take_damaged();
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_EQ(damaged[0].id, 2U);
  EXPECT_EQ(damaged[0].state, job_state::ready) << "as it is stored";
  EXPECT_TRUE(db->take_damaged().empty());
  must(db->apply(a_transaction(start, moving(damaged[0], job_state::dead, {.ended_at = start}))));
  EXPECT_TRUE(must(db->get(2))->is_damaged) << "writing it does not make it sound";
  EXPECT_TRUE(db->take_damaged().empty()) << "it is dead by now";
  const auto found_by_check = problems();
  ASSERT_EQ(found_by_check.size(), 1U);
  EXPECT_NE(found_by_check[0].find("job 2 is damaged"), std::string::npos) << found_by_check[0];
}

TEST_F(sqlite_damage_test, AReaderShowsDamageTheSameWay) {
  auto db = open();
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)))));
  sql("UPDATE jobs SET kind = 'counts'");
  auto reader = db->reader();
  EXPECT_TRUE(must(reader->get(1))->is_damaged);
  EXPECT_TRUE(must(reader->list({}, 0, 10)).jobs.at(0).is_damaged);
}

// A job with a value in every column.
job full_job() {
  job j = with_key(a_job(7), "unique", unique_until::elapsed, milliseconds(13));
  j.state = job_state::scheduled;
  j.attempts = 3;
  j.due_at = start + milliseconds(5000);
  j.ended_at = start + milliseconds(9);
  j.spec.priority = -5;
  j.spec.run_at = start + milliseconds(5000);
  j.spec.retry = {.attempts_max = 7,
                  .first = milliseconds(1),
                  .factor = 1.1,
                  .longest = milliseconds(77),
                  .jitter = 0.25};
  j.spec.lease_for = milliseconds(11);
  j.spec.time_limit = milliseconds(12);
  j.spec.unique.until = unique_until::started;
  j.spec.metadata = R"({"trace":1})";
  j.spec.keep_for = milliseconds(0);
  j.errors = {{1, start, "t", "m", "b"}};
  j.result = payload{"[1,2]", content_type::json};
  j.spec.key = "key";
  j.spec.step = "second";
  j.spec.webhook = "https://example.com/ended";
  j.progress = progress{0.1, "a line"};
  j.history = {{1, start, start + milliseconds(4), "worker", attempt_outcome::failed}};
  return j;
}

TEST_F(sqlite_damage_test, AChangeOfAnyColumnIsFound) {
  {
    auto db = open();
    transaction b = a_transaction(start, setting(1, "default"), adding(full_job()));
    b.ids_up_to = 1000;
    must(db->apply(b));
    EXPECT_EQ(must(db->get(7)), full_job());
  }
  const std::string sound = read_file(path);
  for (const std::string_view column : detail::job_columns) {
    if (column == "id" || column == "checksum") continue;
    for (const std::string& change :
         {"CASE WHEN typeof(" + std::string(column) + ") IN ('integer', 'real') THEN " +
              std::string(column) + " + 1 ELSE 'x' || coalesce(" + std::string(column) +
              ", '') END",
          std::string("NULL")}) {
      write_file(path, sound);
      raw_database file(path);
      const std::string set = "UPDATE jobs SET " + std::string(column) + " = " + change;
      if (file.number("SELECT count(*) FROM jobs WHERE " + std::string(column) + " IS NULL") == 1 &&
          change == "NULL") {
        continue;  // NULL already
      }
      if (file.run(set) != SQLITE_OK) continue;  // NOT NULL
      const auto report = must(check_store(path));
      EXPECT_TRUE(std::ranges::any_of(report.problems, [](const std::string& p) {
        return p.find("job 7 is damaged") != std::string::npos;
      })) << set;
      notices.clear();
      auto opened = must(try_open(path));
      const auto found = opened->get(7);
      EXPECT_TRUE(!found || (*found)->is_damaged) << set;
      EXPECT_FALSE(notices.empty()) << set;
    }
  }
}

TEST_F(sqlite_damage_test, EveryChangeKeepsTheChecksumRight) {
  auto db = open();
  job j = full_job();
  j.state = job_state::ready;
  j.due_at = {};
  transaction b = a_transaction(start, setting(1, "default"), adding(j), adding(a_job(8)));
  b.ids_up_to = 1000;
  must(db->apply(b));
  const auto expect_sound = [&] {
    for (const job_id id : {7U, 8U}) EXPECT_FALSE(must(db->get(id))->is_damaged);
    EXPECT_EQ(problems(), std::vector<std::string>{});
  };
  expect_sound();
  for (const job_id id : {7U, 8U}) {
    const auto now = [&] { return *must(db->get(id)); };
    must(db->apply(a_transaction(
        start, moving(now(), job_state::retrying,
                      {.due_at = start + milliseconds(1),
                       .attempts = 4,
                       .error = attempt_error{4, start, "e", "m", ""},
                       .attempt = attempt_record{4, start, start, "w", attempt_outcome::failed},
                       .priority = 9,
                       .progress = progress{-0.0, ""}}))));
    expect_sound();
    must(db->apply(a_transaction(start, moving(now(), job_state::ready, {.turn = 99 + id}))));
    expect_sound();
    must(db->apply(a_transaction(start, moving(now(), job_state::done,
                                               {.due_at = start + milliseconds(1),
                                                .ended_at = start,
                                                .result = payload{"\xff", content_type::bytes}}))));
    expect_sound();
    must(db->apply(a_transaction(
        start, moving(now(), job_state::ready, {.attempts = 0, .ended_at = unix_time{}}))));
    expect_sound();
  }
}

TEST_F(sqlite_damage_test, ARowWithoutAChecksumIsDamagedUnlessTheFileWasUpgraded) {
  auto db = open();
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)))));
  sql("UPDATE jobs SET checksum = NULL");
  EXPECT_TRUE(db->get(1).value()->is_damaged);
  db.reset();
  sql("UPDATE meta SET value = 1, checksum = NULL WHERE name = 'unverified_up_to'");
  db = open();
  EXPECT_EQ(must(db->get(1)), a_job(1));
  EXPECT_EQ(must(check_store(path)).unverified, 1U);
  must(db->apply(a_transaction(start, moving(a_job(1), job_state::retrying, {.due_at = start}))));
  EXPECT_EQ(must(check_store(path)).unverified, 0U) << "it got one when it was written";
  EXPECT_FALSE(must(db->get(1))->is_damaged);
}

TEST_F(sqlite_damage_test, DamagedSettingsLeasesAndEntriesAreNotUsed) {
  cron_entry nightly;
  nightly.spec.name = "nightly";
  nightly.spec.schedule = "0 3 * * *";
  nightly.spec.job = a_job(1).spec;
  job waiting = a_job(3);
  waiting.spec.after = {{1, "", after_when::success}};
  {
    auto db = open();
    must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)),
                                 of_cron(op::set_cron, nightly),
                                 saving_lease(a_job(1), {.key = 5, .worker = "w", .until = start}),
                                 adding_batch(10), adding_logs(1, {{0, 1, start, "line"}}),
                                 adding(with_key(a_job(2), "u")), adding(waiting))));
  }
  const std::string sound = read_file(path);
  sql("UPDATE leases SET key = 6");
  EXPECT_TRUE(must(must(try_open(path))->load()).leases.empty());
  EXPECT_TRUE(has_notice("saved lease of job 1"));
  write_file(path, sound);
  sql("UPDATE crons SET job_args = '1'");
  EXPECT_TRUE(must(must(try_open(path))->load()).crons.at(0).spec.paused);
  EXPECT_TRUE(has_notice("cron entry 'nightly'"));
  EXPECT_NE(problems().at(0).find("cron entry nightly is damaged"), std::string::npos);
  write_file(path, sound);
  sql("UPDATE queues SET capacity_jobs = 1");
  const auto refused = must(try_open(path))->load();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::corrupt);
  EXPECT_NE(refused.error().message.find("sluice check"), std::string::npos);
  write_file(path, sound);
  sql("UPDATE meta SET value = 7 WHERE name = 'ids_up_to'");
  EXPECT_FALSE(must(try_open(path))->load());
  for (const auto& [change, part] :
       {std::pair("UPDATE batches SET name = 'x'", "batch 10 is damaged"),
        std::pair("UPDATE logs SET text = 'x'", "a log line of job 1 is damaged"),
        std::pair("UPDATE unique_keys SET key = 'v'", "unique key v is damaged"),
        std::pair("UPDATE edges SET condition = 1", "a dependency of job 3 is damaged"),
        std::pair("UPDATE meta SET value = 7", "in the table meta, ids_up_to is damaged")}) {
    write_file(path, sound);
    sql(change);
    const auto found = problems();
    EXPECT_TRUE(std::ranges::any_of(found, [&](const std::string& p) {
      return p.find(part) != std::string::npos;
    })) << change;
  }
}

TEST_F(sqlite_damage_test, ADamagedBatchIsNotShownAndNotWritten) {
  auto db = open();
  job j = a_job(11);
  j.spec.batch = 10;
  must(db->apply(a_transaction(start, setting(1, "default"), adding_batch(10), adding(j),
                               adding_batch(20), adding_logs(11, {{0, 1, start, "line"}}))));
  sql("UPDATE batches SET total = 5 WHERE id = 10");
  auto reader = db->reader();
  const auto refused = reader->get_batch(10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::corrupt);
  EXPECT_EQ(refused.error().job, 10U) << "it is about this batch alone";
  const auto page = must(reader->list_batches(0, 1));
  EXPECT_TRUE(page.batches.empty());
  EXPECT_EQ(must(reader->list_batches(page.cursor.value_or(0), 1)).batches.at(0).id, 20U);
  EXPECT_EQ(notices.size(), 1U);
  must(db->apply(a_transaction(start, dropping(j, job_state::done))));
  must(db->apply(a_transaction(start, closing_batch(10), dropping_batch(10))));
  EXPECT_FALSE(db->get_batch(10)) << "it is kept as it is";
  EXPECT_NE(problems().at(0).find("batch 10 is damaged"), std::string::npos);
}

TEST_F(sqlite_damage_test, ADamagedLogLineIsMarkedAsDamaged) {
  auto db = open();
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)),
                               adding_logs(1, {{0, 1, start, "first"}, {0, 1, start, "second"}}))));
  sql("UPDATE logs SET text = 'else' WHERE number = 1");
  const auto lines = must(db->reader()->logs(1, 0, 10)).lines;
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text, "(this line is damaged in the store)");
  EXPECT_EQ(lines[1].text, "second");
  EXPECT_TRUE(has_notice("a log line of job 1 is damaged"));
}

TEST_F(sqlite_damage_test, ADamagedUniqueKeyIsReportedAndFree) {
  auto db = open();
  must(db->apply(a_transaction(start, setting(1, "default"), adding(with_key(a_job(1), "u")))));
  sql("UPDATE unique_keys SET job = 77");
  EXPECT_TRUE(
      must(db->apply(a_transaction(start, adding(with_key(a_job(2), "u"))))).conflicts.empty());
  EXPECT_TRUE(has_notice("unique key 'u' is damaged"));
  const auto again =
      must(db->apply(a_transaction(start, adding(with_key(a_job(3), "u"))))).conflicts;
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].holder, 2U);
}

TEST_F(sqlite_damage_test, ADamagedDependencyReleasesNoJob) {
  auto db = open();
  job waiting = a_job(2);
  waiting.spec.after = {{1, "", after_when::failure}};
  must(db->apply(a_transaction(start, setting(1, "default"), adding(a_job(1)), adding(waiting))));
  sql("UPDATE edges SET condition = 0");
  EXPECT_TRUE(
      must(db->apply(a_transaction(start, dropping(a_job(1), job_state::done)))).effects.empty());
  EXPECT_TRUE(has_notice("a dependency on 1 is damaged"));
  EXPECT_EQ(must(db->get(2))->state, job_state::held);
}

}  // namespace
}  // namespace sluice::jobs::testing::sqlite_damage_test
