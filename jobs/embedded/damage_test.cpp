// An engine on a file that is damaged, deleted or replaced while it is open.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "jobs/embedded/open.hpp"
#include "jobs/store/sqlite/store_check.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/temporary_folder.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::testing::damage_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class Damage : public ::testing::Test {
 protected:
  void open(const std::string& file) {
    opened.reset();
    open_options o;
    o.sync = sync_mode::off;
    o.file.reserve_file_bytes = 0;
    o.file.on_notice = [this](const store_notice& n) {
      notices.with([&](auto& all) { all.push_back(n.text); });
    };
    o.engine.time = &time;
    o.engine.on_health = [this](const health& now) {
      changes.with([&](auto& all) { all.push_back(now); });
    };
    opened = jobs::open(file, o).value();
  }
  engine& e() {
    if (opened == nullptr) open(path);
    return *opened;
  }
  result<push_receipt> try_push(job_spec spec = {}) {
    spec.kind = "k";
    if (spec.args.data.empty()) spec.args.data = "1";
    return e().push(std::move(spec)).get();
  }
  job_id push(job_spec spec = {}) { return try_push(std::move(spec)).value().id; }
  result<std::vector<leased_job>> try_lease() { return e().lease({}, deadline::after(0s)).get(); }
  // Waits until the committer has nothing left to do.
  void settle() {
    for (int i = 0; i < 4; ++i) (void)e().remove(~job_id{0}).get();
  }
  void advance(std::chrono::nanoseconds by) {
    settle();
    time.advance(by);
    settle();
  }
  void sql(const std::string& text) { ASSERT_EQ(raw_database(path).run(text), SQLITE_OK) << text; }
  // Damages the pages with the rows of a table. Pages that are read at the opening stay intact.
  void damage_rows_of(const std::string& table) {
    const auto pages = raw_database(path).text(
        "SELECT group_concat(pageno) FROM dbstat WHERE pagetype = 'leaf' AND name = '" + table +
        "'");
    ASSERT_TRUE(pages);
    std::istringstream numbers(*pages);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::string number; std::getline(numbers, number, ',');) {
      file.seekp((std::stoll(number) - 1) * 4096);
      file.write("\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    }
  }
  std::vector<health> reported() {
    return changes.with([](auto& all) { return all; });
  }

  // After the loss was detected.
  void expect_refusals(const std::string& part) {
    EXPECT_FALSE(e().health().takes_pushes);
    const auto pushed = try_push();
    ASSERT_FALSE(pushed);
    EXPECT_EQ(pushed.error().code, error_code::corrupt);
    EXPECT_NE(pushed.error().message.find(part), std::string::npos) << pushed.error().message;
    const auto leased = try_lease();
    ASSERT_FALSE(leased);
    EXPECT_EQ(leased.error().code, error_code::corrupt);
    EXPECT_NE(leased.error().message.find(part), std::string::npos);
    const auto waited = e().lease({}).get();  // must not block without a deadline
    EXPECT_FALSE(waited);
    for (int i = 0; i < 3; ++i) advance(1s);
    const auto all = reported();
    ASSERT_EQ(all.size(), 1U) << "reported once, and never as working again";
    EXPECT_FALSE(all[0].takes_pushes);
  }

  sluice::testing::temporary_folder folder;
  std::string path = folder.file("data/jobs.db");
  manual_time time;
  guarded<std::vector<std::string>> notices;
  guarded<std::vector<health>> changes;
  std::unique_ptr<engine> opened;

  Damage() { fs::create_directory(folder.file("data")); }
};

// ---- lost files

TEST_F(Damage, ADeletedFileIsDetectedWithinASecondAndItsJobsAreSaved) {
  const std::vector<job_id> ids = {push(), push(), push()};
  fs::remove(path);
  advance(1s);
  expect_refusals("jobs.db was deleted");
  EXPECT_NE(e().health().reason.find(path + ".saved"), std::string::npos) << e().health().reason;
  opened.reset();
  EXPECT_EQ(check_store(path + ".saved").value().problems, std::vector<std::string>{});
  open(path + ".saved");
  EXPECT_EQ(try_lease().value().at(0).job->id, ids[0]);
  for (const job_id id : ids) EXPECT_TRUE(e().get(id).get());
}

TEST_F(Damage, ADeletedFolderIsDetectedAndRecreatedForTheCopy) {
  const job_id id = push();
  fs::remove_all(fs::path(path).parent_path());
  advance(1s);
  expect_refusals("was deleted");
  open(path + ".saved");
  EXPECT_TRUE(e().get(id).get());
}

TEST_F(Damage, AReplacedFileIsDetectedAndTheOtherIsUnchanged) {
  push();
  const std::string copy = folder.file("copy.db");
  fs::copy_file(path, copy);
  fs::rename(copy, path);
  std::ifstream in(path, std::ios::binary);
  const std::string before{std::istreambuf_iterator<char>(in), {}};
  advance(1s);
  expect_refusals("jobs.db was replaced");
  opened.reset();
  std::ifstream again(path, std::ios::binary);
  EXPECT_EQ(before, std::string(std::istreambuf_iterator<char>(again), {}));
}

TEST_F(Damage, ATruncatedLogIsDetected) {
  push();
  fs::resize_file(path + "-wal", 0);
  advance(1s);
  expect_refusals("jobs.db-wal was truncated");
}

TEST_F(Damage, ADeletedLogIsDetected) {
  const job_id id = push();
  fs::remove(path + "-wal");
  advance(1s);
  expect_refusals("jobs.db-wal was deleted");
  open(path + ".saved");
  EXPECT_TRUE(e().get(id).get());
}

TEST_F(Damage, ADeletedLockIsDetectedBeforeASecondServerDoesHarm) {
  push();
  fs::remove(path + ".lock");
  advance(1s);
  expect_refusals("jobs.db.lock was deleted");
}

TEST_F(Damage, LaterAcksAreRejected) {
  push();
  const leased_job l = try_lease().value().at(0);
  fs::remove(path);
  advance(1s);
  EXPECT_EQ(e().ack(l.ref()).get().error().code, error_code::corrupt);
}

TEST_F(Damage, UnchangedFilesAreNotReported) {
  for (int i = 0; i < 100; ++i) {
    push();
    advance(500ms);
  }
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_TRUE(reported().empty());
  EXPECT_TRUE(notices.with([](auto& all) { return all.empty(); }));
}

// ---- a damaged file

TEST_F(Damage, ACorruptPageIsReportedOnceAndTheEngineStaysStopped) {
  for (int i = 0; i < 200; ++i) {
    push({.args = {"\"" + std::string(1000, 'x') + "\"", content_type::json}});
  }
  opened.reset();
  damage_rows_of("jobs");
  open(path);
  EXPECT_FALSE(try_push());
  settle();
  EXPECT_EQ(e().health().code, error_code::corrupt);
  expect_refusals("sluice check");
}

TEST_F(Damage, ACorruptPageIsDetectedByAReaderToo) {
  batch_spec spec;
  spec.open = true;
  const job_id id = e().push_batch(spec).get().value().id;
  opened.reset();
  damage_rows_of("batches");
  open(path);
  EXPECT_EQ(e().get_batch(id).get().error().code, error_code::corrupt);
  settle();
  expect_refusals("sluice check");
}

TEST_F(Damage, ADamagedJobIsDeadWithAReasonAndAffectsNoOther) {
  const job_id first = push({.args = {"1", content_type::json}});
  const job_id bad = push({.args = {"2", content_type::json}, .metadata = "{}"});
  const job_id last = push({.args = {"3", content_type::json}});
  opened.reset();
  sql("UPDATE jobs SET args = '{', metadata = '{]' WHERE id = " + std::to_string(bad));
  open(path);
  EXPECT_EQ(try_lease().value().at(0).job->id, first);
  EXPECT_EQ(try_lease().value().at(0).job->id, last);
  EXPECT_FALSE(try_lease());
  settle();
  const job found = e().get(bad).get().value();
  EXPECT_EQ(found.state, job_state::dead);
  ASSERT_FALSE(found.errors.empty());
  EXPECT_EQ(found.errors.back().type, damaged_error_type);
  EXPECT_EQ(e().list({}).get().value().jobs.size(), 3U);
  EXPECT_EQ(e().queue("default").value().counts.dead, 1U) << "it is stored as dead";
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_EQ(e().retry(bad).get().error().code, error_code::wrong_state);
  EXPECT_EQ(e().lease_job(bad).get().error().code, error_code::wrong_state);
  EXPECT_EQ(e().kick("default", 10).get().value().count, 0U);
  EXPECT_TRUE(e().remove(bad).get());
  EXPECT_EQ(e().queue("default").value().counts.dead, 0U);
  EXPECT_EQ(notices.with([](auto& all) { return all.size(); }), 1U);
}

TEST_F(Damage, ADamagedJobFreesItsKeyAndEndsItsBatch) {
  batch_spec spec;
  spec.jobs.resize(2);
  for (job_spec& s : spec.jobs) {
    s.kind = "k";
    s.args.data = "1";
    s.key = "one";
  }
  const batch_receipt pushed = e().push_batch(spec).get().value();
  opened.reset();
  sql("UPDATE jobs SET args = '7' WHERE id = " + std::to_string(pushed.jobs.at(0)));
  open(path);
  EXPECT_TRUE(e().get(pushed.jobs.at(0)).get().value().is_damaged);
  settle();  // the job is marked
  const leased_job next = try_lease().value().at(0);
  EXPECT_EQ(next.job->id, pushed.jobs.at(1));
  EXPECT_TRUE(e().ack(next.ref()).get());
  EXPECT_EQ(e().get_batch(pushed.id).get().value().failed, 1U);
  EXPECT_TRUE(e().get_batch(pushed.id).get().value().has_ended());
}

TEST_F(Damage, ADamagedHeldJobIsNotLeasedWhenItBecomesReady) {
  const job_id first = push({.key = "one"});
  const job_id held = push({.key = "one"});
  const job_id last = push({.key = "one"});
  const leased_job l = try_lease().value().at(0);
  EXPECT_EQ(l.job->id, first);
  sql("UPDATE jobs SET args = '7' WHERE id = " + std::to_string(held));
  EXPECT_TRUE(e().ack(l.ref()).get());
  settle();
  EXPECT_EQ(e().get(held).get().value().state, job_state::dead);
  EXPECT_EQ(try_lease().value().at(0).job->id, last);
}

// Rows without any reliable column. Each change is in a column that the rules use.
const std::vector<std::string> control_damage = {"rank = rank + 1", "state = 9", "state = 5",
                                                 "queue = 99",      "turn = 7",  "checksum = 1"};

TEST_F(Damage, ARowWithDamagedControlColumnsLeavesItsLine) {
  for (const std::string damage : {"rank = 5", "line = 77"}) {
    const job_id first = push({.key = damage});
    const job_id held = push({.key = damage});
    const job_id next = push({.key = damage});
    const leased_job l = try_lease().value().at(0);
    EXPECT_EQ(l.job->id, first);
    sql("UPDATE jobs SET " + damage + " WHERE id = " + std::to_string(held));
    EXPECT_TRUE(e().ack(l.ref()).get()) << damage;
    const leased_job second = try_lease().value().at(0);
    EXPECT_EQ(second.job->id, next) << damage;
    EXPECT_TRUE(e().ack(second.ref()).get());
    EXPECT_TRUE(e().health().takes_pushes);
    open(path);
    const job_id later = push({.key = damage});
    const leased_job third = try_lease().value().at(0);
    EXPECT_EQ(third.job->id, later) << "it does not wait for the damaged job";
    EXPECT_TRUE(e().ack(third.ref()).get());
  }
  EXPECT_TRUE(reported().empty());
  EXPECT_FALSE(notices.with([](auto& all) { return all.empty(); }));
}

TEST_F(Damage, ADamagedRowThatWaitsForAJobDoesNotKeepItFromEnding) {
  const job_id first = push();
  const job_id waits = push({.after = {{.on = first}}});
  const job_id other = push({.after = {{.on = first}}});
  sql("UPDATE jobs SET rank = 5 WHERE id = " + std::to_string(waits));
  EXPECT_TRUE(e().ack(try_lease().value().at(0).ref()).get());
  EXPECT_EQ(try_lease().value().at(0).job->id, other);
  EXPECT_TRUE(e().health().takes_pushes);
}

TEST_F(Damage, ARowWithDamagedControlColumnsCanBeDeleted) {
  for (const std::string& damage : control_damage) {
    const job_id good = push();
    const job_id bad = push({.unique = {.key = "u"}, .key = "k"});
    const job_id held = push({.key = "k"});
    open(path);
    sql("UPDATE jobs SET " + damage + " WHERE id = " + std::to_string(bad));
    EXPECT_EQ(e().get(bad).get().value().state, job_state::dead) << damage;
    EXPECT_EQ(e().list({}).get().value().jobs.size(), 3U) << damage;
    const auto removed = e().remove(bad).get();
    EXPECT_TRUE(removed) << damage << ": " << removed.error().message;
    EXPECT_FALSE(e().get(bad).get()) << damage;
    EXPECT_EQ(check_store(path).value().problems, std::vector<std::string>{}) << damage;
    EXPECT_EQ(e().queue("default").value().counts.ready, 2U) << damage;
    EXPECT_EQ(e().queue("default").value().counts.unfinished(), 2U) << damage;
    EXPECT_TRUE(try_push({.unique = {.key = "u"}})) << "its key is free";
    for (const job_id id : {good, held}) {
      const leased_job l = try_lease().value().at(0);
      EXPECT_EQ(l.job->id, id) << damage;
      EXPECT_TRUE(e().ack(l.ref()).get());
    }
    EXPECT_TRUE(e().ack(try_lease().value().at(0).ref()).get());
  }
  EXPECT_TRUE(reported().empty());
}

TEST_F(Damage, ManyDamagedRowsArePurgedWithoutAnOutage) {
  for (int i = 0; i < 250; ++i) push();
  open(path);
  sql("UPDATE jobs SET rank = 5 WHERE id % 2 = 0");
  sql("UPDATE jobs SET args = '7' WHERE id % 5 = 0");
  EXPECT_EQ(e().purge("default").get().value(), 250U);
  const queue_counts counts = e().queue("default").value().counts;
  EXPECT_EQ(counts.unfinished() + counts.dead + counts.bytes, 0U);
  EXPECT_EQ(check_store(path).value().problems, std::vector<std::string>{});
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_TRUE(reported().empty());
}

TEST_F(Damage, DeletingADamagedRowOfABatchEndsTheBatch) {
  batch_spec spec;
  spec.jobs.resize(2);
  for (job_spec& s : spec.jobs) {
    s.kind = "k";
    s.args.data = "1";
  }
  spec.on_failure = job_spec{.kind = "sorry", .args = {"1", content_type::json}};
  const batch_receipt pushed = e().push_batch(spec).get().value();
  open(path);
  sql("UPDATE jobs SET rank = 5 WHERE id = " + std::to_string(pushed.jobs.at(0)));
  const leased_job other = try_lease().value().at(0);
  EXPECT_EQ(other.job->id, pushed.jobs.at(1));
  EXPECT_TRUE(e().ack(other.ref()).get());
  EXPECT_FALSE(e().get_batch(pushed.id).get().value().has_ended());
  EXPECT_TRUE(e().remove(pushed.jobs.at(0)).get());
  const batch_info ended = e().get_batch(pushed.id).get().value();
  EXPECT_TRUE(ended.has_ended());
  EXPECT_EQ(ended.failed, 1U);
  EXPECT_EQ(try_lease().value().at(0).job->id, pushed.on_failure);
  EXPECT_EQ(check_store(path).value().problems, std::vector<std::string>{});
}

TEST_F(Damage, ADamagedBatchIsRejectedAndItsJobsEnd) {
  batch_spec spec;
  spec.jobs.resize(1);
  spec.jobs[0].kind = "k";
  spec.on_end = job_spec{.kind = "over", .args = {"1", content_type::json}};
  const batch_receipt pushed = e().push_batch(spec).get().value();
  open(path);
  sql("UPDATE batches SET pending = 7");
  EXPECT_TRUE(e().ack(try_lease().value().at(0).ref()).get());
  EXPECT_EQ(e().get_batch(pushed.id).get().error().code, error_code::corrupt);
  EXPECT_EQ(e().cancel_batch(pushed.id).get().error().code, error_code::corrupt);
  EXPECT_FALSE(try_push({.batch = pushed.id}));
  const job_id waits = push({.after = {{.on = pushed.id}}});
  EXPECT_EQ(e().get(waits).get().value().state, job_state::held) << "it does not count as done";
  EXPECT_TRUE(e().health().takes_pushes);
  const auto problems = check_store(path).value().problems;
  ASSERT_FALSE(problems.empty()) << "it got no new checksum";
  EXPECT_NE(problems[0].find("is damaged"), std::string::npos) << problems[0];
  EXPECT_EQ(notices.with([](auto& all) { return all.size(); }), 1U);
}

TEST_F(Damage, ALeasedJobEndsAsItsWorkerReports) {
  const job_id id = push({.keep_for = 1h});
  const leased_job l = try_lease().value().at(0);
  sql("UPDATE jobs SET args = '7'");
  EXPECT_EQ(e().cancel(id).get().error().code, error_code::wrong_state);
  settle();
  EXPECT_TRUE(e().ack(l.ref()).get());
}

TEST_F(Damage, AttemptsAreKeptWithTheirTimesAndWorkers) {
  const job_id id = push({.retry = {.attempts_max = 3}, .keep_for = 1h});
  const leased_job l = e().lease({.worker = "w1"}, deadline::after(0s)).get().value().at(0);
  const unix_time began = time.now();
  advance(2s);
  ASSERT_TRUE(e().fail(l.ref(), {.retry_in = 1ms}).get());
  advance(1s);
  const leased_job again = e().lease({.worker = "w2"}, deadline::after(0s)).get().value().at(0);
  ASSERT_TRUE(e().ack(again.ref()).get());
  open(path);
  const auto history = e().get(id).get().value().history;
  ASSERT_EQ(history.size(), 2U);
  EXPECT_EQ(history[0], (attempt_record{1, began, began + 2s, "w1", attempt_outcome::failed}));
  EXPECT_EQ(history[1].worker, "w2");
  EXPECT_EQ(history[1].outcome, attempt_outcome::done);
}

}  // namespace
}  // namespace sluice::jobs::testing::damage_test
