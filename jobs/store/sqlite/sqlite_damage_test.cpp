// What changed on the disk is never taken for what was stored, and never goes unnoticed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "jobs/store/sqlite/detail/job_row.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"
#include "jobs/store/sqlite/store_check.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "jobs/store/testing/store_words.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::testing::sqlite_damage_test {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class sqlite_damage_test : public ::testing::Test {
 protected:
  result<std::unique_ptr<store>> try_open(const std::string& file) {
    auto opened = open_sqlite({.path = file,
                               .sync = sync_mode::off,
                               .reserve_file_bytes = 0,
                               .on_notice = [this](const store_notice& n) {
                                 if (n.is_damage) notices.push_back(n.text);
                                 if (!n.is_damage) remarks.push_back(n.text);
                               }});
    return opened;
  }
  std::unique_ptr<store> open() {
    auto it = must(try_open(path));
    must(it->load());
    return it;
  }
  void sql(const std::string& text) { ASSERT_EQ(raw_database(path).run(text), SQLITE_OK) << text; }
  bool has_notice(std::string_view part) const {
    return std::ranges::any_of(
        notices, [&](const std::string& n) { return n.find(part) != std::string::npos; });
  }
  std::vector<std::string> problems() { return must(check_store(path)).problems; }

  sluice::testing::temporary_folder folder;
  std::string path = folder.file("jobs.db");
  std::vector<std::string> notices;
  std::vector<std::string> remarks;
};

TEST_F(sqlite_damage_test, ADamagedPayloadIsShownAsDeadAndNotHandedOut) {
  auto it = open();
  batch b =
      a_batch(start, setting(1, "default"), adding(a_job(1)), adding(a_job(2)), adding(a_job(3)));
  b.ids_up_to = 1000;
  must(it->apply(b));
  sql(R"(UPDATE jobs SET args = '{"n":7}' WHERE id = 2)");
  EXPECT_EQ(ids_of(must(it->ready_after(1, {}, {}))), (ids{1, 3}));
  EXPECT_EQ(ids_of(must(it->victims(1, victim::oldest, 10, [](job_id) { return false; }))),
            (ids{1, 3}));
  const job found = *must(it->get(2));
  EXPECT_TRUE(found.is_damaged);
  EXPECT_EQ(found.state, job_state::dead);
  ASSERT_EQ(found.errors.size(), 1U);
  EXPECT_EQ(found.errors[0].type, damaged_error_type);
  EXPECT_EQ(found.spec.args.type, content_type::bytes) << "it may not be JSON any more";
  const auto page = must(it->list({}, 0, 10));
  EXPECT_EQ(ids_of(page.jobs), (ids{1, 2, 3}));
  EXPECT_EQ(page.jobs[0], a_job(1));
  EXPECT_TRUE(page.jobs[1].is_damaged);
  EXPECT_EQ(page.jobs[2], a_job(3));
  EXPECT_EQ(notices.size(), 1U) << "each job is reported once";
  EXPECT_TRUE(has_notice("job 2 is damaged"));
  EXPECT_TRUE(has_notice("sluice check"));

  const auto damaged = it->take_damaged();
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_EQ(damaged[0].id, 2U);
  EXPECT_EQ(damaged[0].state, job_state::ready) << "as it is stored";
  EXPECT_TRUE(it->take_damaged().empty());
  must(it->apply(a_batch(start, moving(damaged[0], job_state::dead, {.ended_at = start}))));
  EXPECT_TRUE(must(it->get(2))->is_damaged) << "writing it does not make it sound";
  EXPECT_TRUE(it->take_damaged().empty()) << "it is dead by now";
  const auto found_by_check = problems();
  ASSERT_EQ(found_by_check.size(), 1U);
  EXPECT_NE(found_by_check[0].find("job 2 is damaged"), std::string::npos) << found_by_check[0];
}

TEST_F(sqlite_damage_test, AReaderShowsItTheSameWay) {
  auto it = open();
  must(it->apply(a_batch(start, setting(1, "default"), adding(a_job(1)))));
  sql("UPDATE jobs SET kind = 'counts'");
  auto reader = it->reader();
  EXPECT_TRUE(must(reader->get(1))->is_damaged);
  EXPECT_TRUE(must(reader->list({}, 0, 10)).jobs.at(0).is_damaged);
}

// A job with something in every column.
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
    auto it = open();
    batch b = a_batch(start, setting(1, "default"), adding(full_job()));
    b.ids_up_to = 1000;
    must(it->apply(b));
    EXPECT_EQ(must(it->get(7)), full_job());
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
        continue;  // as it is
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
  auto it = open();
  job j = full_job();
  j.state = job_state::ready;
  j.due_at = {};
  batch b = a_batch(start, setting(1, "default"), adding(j), adding(a_job(8)));
  b.ids_up_to = 1000;
  must(it->apply(b));
  const auto expect_sound = [&] {
    for (const job_id id : {7U, 8U}) EXPECT_FALSE(must(it->get(id))->is_damaged);
    EXPECT_EQ(problems(), std::vector<std::string>{});
  };
  expect_sound();
  for (const job_id id : {7U, 8U}) {
    const auto now = [&] { return *must(it->get(id)); };
    must(it->apply(a_batch(
        start, moving(now(), job_state::retrying,
                      {.due_at = start + milliseconds(1),
                       .attempts = 4,
                       .error = attempt_error{4, start, "e", "m", ""},
                       .attempt = attempt_record{4, start, start, "w", attempt_outcome::failed},
                       .priority = 9,
                       .progress = progress{-0.0, ""}}))));
    expect_sound();
    must(it->apply(a_batch(start, moving(now(), job_state::ready, {.turn = 99 + id}))));
    expect_sound();
    must(it->apply(a_batch(start, moving(now(), job_state::done,
                                         {.due_at = start + milliseconds(1),
                                          .ended_at = start,
                                          .result = payload{"\xff", content_type::bytes}}))));
    expect_sound();
    must(it->apply(
        a_batch(start, moving(now(), job_state::ready, {.attempts = 0, .ended_at = unix_time{}}))));
    expect_sound();
  }
}

TEST_F(sqlite_damage_test, ARowWithoutAChecksumIsDamagedUnlessTheFileWasUpgraded) {
  auto it = open();
  must(it->apply(a_batch(start, setting(1, "default"), adding(a_job(1)))));
  sql("UPDATE jobs SET checksum = NULL");
  EXPECT_TRUE(it->get(1).value()->is_damaged);
  it.reset();
  sql("UPDATE meta SET value = 1 WHERE name = 'unverified_up_to'");
  it = open();
  EXPECT_EQ(must(it->get(1)), a_job(1));
  EXPECT_EQ(must(check_store(path)).unverified, 1U);
  must(it->apply(a_batch(start, moving(a_job(1), job_state::retrying, {.due_at = start}))));
  EXPECT_EQ(must(check_store(path)).unverified, 0U) << "it got one when it was written";
  EXPECT_FALSE(must(it->get(1))->is_damaged);
}

TEST_F(sqlite_damage_test, DamagedSettingsLeasesAndEntriesAreNotUsed) {
  cron_entry nightly;
  nightly.spec.name = "nightly";
  nightly.spec.schedule = "0 3 * * *";
  nightly.spec.job = a_job(1).spec;
  {
    auto it = open();
    must(it->apply(a_batch(start, setting(1, "default"), adding(a_job(1)),
                           of_cron(op::set_cron, nightly),
                           saving_lease(a_job(1), {.key = 5, .worker = "w", .until = start}),
                           adding_batch(10), adding_logs(1, {{0, 1, start, "line"}}))));
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
  for (const auto& [change, part] :
       {std::pair("UPDATE batches SET name = 'x'", "batch 10 is damaged"),
        std::pair("UPDATE logs SET text = 'x'", "a log line of job 1 is damaged")}) {
    write_file(path, sound);
    sql(change);
    const auto found = problems();
    EXPECT_TRUE(std::ranges::any_of(found, [&](const std::string& p) {
      return p.find(part) != std::string::npos;
    })) << change;
  }
}

// ---- flipped bytes

// All that a job was after each commit; the last is how it is.
using versions = std::map<job_id, std::vector<job>>;

// Something of everything, in many pages.
versions fill(store& it) {
  versions stored;
  const auto keep = [&](job_id id) { stored[id].push_back(*must(it.get(id))); };
  must(it.apply(a_batch(start, setting(1, "default"), setting(2, "mail"))));
  for (job_id id = 1; id <= 150; ++id) {
    job j = a_job(id, id % 5 == 0 ? "mail" : "default");
    j.spec.args.data = "\"" + std::string(40 + id * 3, static_cast<char>('a' + id % 26)) + "\"";
    if (id % 7 == 0) j.spec.key = "k" + std::to_string(id % 3);
    if (id % 11 == 0) j.spec.metadata = R"({"trace":")" + std::to_string(id) + "\"}";
    if (id % 13 == 0) j = with_key(j, "unique" + std::to_string(id));
    batch b = a_batch(start, adding(j));
    b.ids_up_to = id;
    must(it.apply(b));
    keep(id);
    const job now = stored[id].back();
    if (id % 10 == 3 && now.state == job_state::ready) {
      must(it.apply(a_batch(start, moving(now, job_state::retrying,
                                          {.due_at = start + milliseconds(id),
                                           .attempts = 1,
                                           .error = attempt_error{1, start, "t", "m", ""}}))));
      keep(id);
    }
  }
  return stored;
}

struct seen {
  bool differs = false;  // something is not as it was stored last
  bool is_loud = false;  // an error, a notice, or a job that is shown as damaged
};

// Compares all that a store gives with what was stored.
void compare(store& it, const versions& stored, seen& how) {
  const auto failed = [&](const error&) { how.differs = how.is_loud = true; };
  // What commits at the end of a damaged log did is lost, and reported when it is opened.
  const auto expect_stored = [&](const job& j, const char* where) {
    const auto at = stored.find(j.id);
    ASSERT_NE(at, stored.end()) << "job " << j.id << " never was";
    EXPECT_TRUE(std::ranges::find(at->second, j) != at->second.end())
        << where << ": " << ::testing::PrintToString(j);
    if (j != at->second.back()) how.differs = true;
  };
  const auto loaded = it.load();
  if (!loaded) return failed(loaded.error());
  std::map<job_id, int> ready;
  for (const queue_number queue : {1U, 2U}) {
    const auto page = it.ready_after(queue, {}, {});
    if (!page) {
      failed(page.error());
      continue;
    }
    for (const job_ptr& j : *page) {
      expect_stored(*j, "handed out");
      ++ready[j->id];
    }
  }
  const auto due = it.due(start + milliseconds(1'000'000), 1000);
  if (!due) failed(due.error());
  if (due) {
    for (const job_ptr& j : due->jobs) expect_stored(*j, "due");
  }
  for (const auto& [id, was] : stored) {
    const auto found = it.get(id);
    if (!found) {
      failed(found.error());
    } else if (!*found) {
      how.differs = true;
    } else if ((*found)->is_damaged) {
      how.differs = how.is_loud = true;
    } else {
      expect_stored(**found, "shown as sound");
    }
    if (was.back().state == job_state::ready && ready[id] != 1) how.differs = true;
  }
}

class flipped_bytes_test : public sqlite_damage_test {
 protected:
  void flip_one(const std::string& file, std::uint64_t seed) {
    sluice::random random(seed);
    std::string bytes = read_file(file);
    const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
    const auto by = static_cast<unsigned char>(1 + random.below(255));
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ by);
    write_file(file, bytes);
    where = "SLUICE_SEED=" + std::to_string(seed) + ": byte " + std::to_string(at) + " of " + file;
  }

  std::string where;
};

TEST_F(flipped_bytes_test, InTheFileAreNeverServedAsGoodAndNeverSilent) {
  const versions stored = fill(*open());
  const std::string sound = read_file(path);
  int damaged = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    write_file(path, sound);
    flip_one(path, seed);
    SCOPED_TRACE(where);
    const auto report = check_store(path);
    const bool is_found = !report || !report->is_sound();
    notices.clear();
    seen how;
    {
      auto opened = try_open(path);
      if (!opened) how = {true, true};
      if (opened) compare(**opened, stored, how);
    }
    EXPECT_TRUE(!how.differs || is_found) << "check says nothing";
    damaged += is_found ? 1 : 0;
  }
  EXPECT_GE(damaged, 20) << "flipped bytes that mean something";
}

TEST_F(flipped_bytes_test, InTheLogAreNeverServedAsGoodAndNeverSilent) {
  versions stored;
  std::string file;
  std::string log;
  {
    auto it = open();
    stored = fill(*it);
    file = read_file(path);
    log = read_file(path + "-wal");  // as a killed process leaves it
  }
  ASSERT_GT(log.size(), 100'000U);
  path = folder.file("after.db");
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    write_file(path, file);
    write_file(path + "-wal", log);
    std::filesystem::remove(path + "-shm");
    flip_one(path + "-wal", seed);
    SCOPED_TRACE(where);
    notices.clear();
    remarks.clear();
    seen how;
    {
      auto opened = try_open(path);
      if (!opened) how = {true, true};
      if (opened) compare(**opened, stored, how);
    }
    EXPECT_TRUE(!how.differs || how.is_loud || !notices.empty() || !remarks.empty());
    lost += how.differs ? 1 : 0;
  }
  EXPECT_GE(lost, 20);
}

TEST_F(flipped_bytes_test, ALogThatIsSoundIsNotReported) {
  versions stored;
  {
    auto it = open();
    stored = fill(*it);
    std::filesystem::copy_file(path, folder.file("after.db"));
    std::filesystem::copy_file(path + "-wal", folder.file("after.db-wal"));
  }
  path = folder.file("after.db");
  seen how;
  auto it = must(try_open(path));
  compare(*it, stored, how);
  EXPECT_FALSE(how.differs);
  EXPECT_TRUE(notices.empty());
  EXPECT_TRUE(remarks.empty());
}

TEST_F(flipped_bytes_test, FramesBehindADamagedOneAreCountedAndTheLogIsKept) {
  std::string log;
  {
    auto it = open();
    fill(*it);
    std::filesystem::copy_file(path, folder.file("after.db"));
    log = read_file(path + "-wal");
  }
  path = folder.file("after.db");
  log[32 + 24 + 100] ^= 1;  // in the page of the first frame
  write_file(path + "-wal", log);
  EXPECT_NE(must(check_store(path)).problems.at(0).find("frame 1 is damaged"), std::string::npos);
  auto opened = try_open(path);
  EXPECT_TRUE(has_notice("frame 1 is damaged, and behind it are"));
  EXPECT_EQ(read_file(path + "-wal.damaged"), log);
}

}  // namespace
}  // namespace sluice::jobs::testing::sqlite_damage_test
