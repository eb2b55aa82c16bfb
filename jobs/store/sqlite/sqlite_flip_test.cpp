// Bytes that changed on the disk are never treated as sound, and are always reported.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "jobs/store/sqlite/testing/damaged_store.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::testing::sqlite_flip_test {
namespace {

// The contents of a store, with a version of each job per commit.
struct contents_model {
  std::map<job_id, std::vector<job>> jobs;
  std::map<job_id, job> dropped;  // dropped jobs, which exist again if that commit is lost
  std::map<job_id, std::vector<batch_info>> batches;
  std::map<job_id, std::vector<log_line>> logs;
  std::map<std::string, job_id> keys;  // of queue 1
  std::map<job_id, job_id> released;   // by the end of a job
  std::vector<cron_entry> crons;
  std::map<job_id, change::lease_record> leases;
};

// Dependencies, keys, batches, logs, cron entries and leases, in many rows.
void fill_relations(store& db, contents_model& all) {
  for (job_id id = 201; id < 261; id += 2) {
    job first = a_job(id);
    first.spec.batch = 500 + id;
    job waiting = with_key(a_job(id + 1), "waits" + std::to_string(id));
    waiting.spec.after = {{id, "", after_when::success}};
    transaction b =
        a_transaction(start, adding_batch(500 + id, 1), adding(first, 1), adding(waiting, 1));
    b.changes.push_back(closing_batch(500 + id));
    b.changes.push_back(adding_logs(id, {{0, 1, start, "line of " + std::to_string(id)}}));
    b.ids_up_to = 2000;
    must(db.apply(b));
    for (const job_id added : {id, id + 1}) all.jobs[added].push_back(*must(db.get(added)));
    all.batches[500 + id].push_back(*must(db.get_batch(500 + id)));
    all.logs[id] = must(db.logs(id, 0, 10)).lines;
    all.keys["waits" + std::to_string(id)] = id + 1;
    all.released[id] = id + 1;
    // A key that outlives its job.
    const job gone = with_key(a_job(1000 + id), "gone" + std::to_string(id), unique_until::elapsed,
                              std::chrono::hours(1));
    must(db.apply(a_transaction(start, adding(gone))));
    must(db.apply(a_transaction(start, dropping(gone, job_state::done))));
    all.keys["gone" + std::to_string(id)] = gone.id;
    all.dropped[gone.id] = gone;
  }
  for (int n = 0; n < 20; ++n) {
    cron_entry entry;
    entry.spec.name = "nightly" + std::to_string(n);
    entry.spec.schedule = "0 3 * * *";
    entry.spec.job = a_job(1).spec;
    const job leased = all.jobs.at(static_cast<job_id>(n) * 2 + 201).back();
    const change::lease_record lease{.key = 5U + static_cast<unsigned>(n),
                                     .worker = "worker",
                                     .until = start + milliseconds(9),
                                     .began = start};
    must(db.apply(a_transaction(start, of_cron(op::set_cron, entry), saving_lease(leased, lease))));
    all.crons.push_back(entry);
    all.leases[leased.id] = lease;
  }
}

// Rows of every kind, in many pages.
contents_model fill(store& db) {
  contents_model stored;
  const auto keep = [&](job_id id) { stored.jobs[id].push_back(*must(db.get(id))); };
  must(db.apply(a_transaction(start, setting(1, "default"), setting(2, "mail"))));
  for (job_id id = 1; id <= 150; ++id) {
    job j = a_job(id, id % 5 == 0 ? "mail" : "default");
    j.spec.args.data = "\"" + std::string(40 + id * 3, static_cast<char>('a' + id % 26)) + "\"";
    if (id % 7 == 0) j.spec.key = "k" + std::to_string(id % 3);
    if (id % 11 == 0) j.spec.metadata = R"({"trace":")" + std::to_string(id) + "\"}";
    if (id % 13 == 0) j = with_key(j, "unique" + std::to_string(id));
    transaction b = a_transaction(start, adding(j));
    b.ids_up_to = id;
    must(db.apply(b));
    keep(id);
    const job now = stored.jobs[id].back();
    if (id % 10 == 3 && now.state == job_state::ready) {
      must(
          db.apply(a_transaction(start, moving(now, job_state::retrying,
                                               {.due_at = start + milliseconds(id),
                                                .attempts = 1,
                                                .error = attempt_error{1, start, "t", "m", ""}}))));
      keep(id);
    }
  }
  fill_relations(db, stored);
  return stored;
}

struct seen {
  bool differs = false;  // some value differs from the last commit
  bool is_loud = false;  // there was an error, a notice, or a job shown as damaged
};

// Compares the contents of a store with the model.
class comparison {
 public:
  comparison(store& db, const contents_model& stored, seen& findings)
      : db_(db), stored_(stored), seen_(findings) {}

  void run() {
    const auto loaded = db_.load();
    if (!loaded) return failed();
    compare_settings(*loaded);
    compare_pages();
    compare_jobs();
    compare_batches_and_logs();
    compare_relations();
  }

 private:
  void failed() { seen_.differs = seen_.is_loud = true; }

  // Commits at the end of a damaged log are lost, and reported when it is opened.
  void expect_stored(const job& j, const char* where) {
    if (const auto back = stored_.dropped.find(j.id); back != stored_.dropped.end()) {
      EXPECT_EQ(j, back->second);
      seen_.differs = true;
      return;
    }
    const auto at = stored_.jobs.find(j.id);
    ASSERT_NE(at, stored_.jobs.end()) << "job " << j.id << " never existed";
    EXPECT_TRUE(std::ranges::find(at->second, j) != at->second.end())
        << where << ": " << ::testing::PrintToString(j);
    if (j != at->second.back()) seen_.differs = true;
  }

  void compare_settings(const store::contents& loaded) {
    if (loaded.crons.size() != stored_.crons.size()) seen_.differs = true;
    for (const cron_entry& entry : loaded.crons) {
      if (std::ranges::find(stored_.crons, entry) != stored_.crons.end()) continue;
      EXPECT_TRUE(entry.spec.paused) << "a damaged entry runs: " << entry.spec.name;
      failed();
    }
    if (loaded.leases.size() != stored_.leases.size()) seen_.differs = true;
    for (const auto& saved : loaded.leases) {
      const auto at = stored_.leases.find(saved.job->id);
      ASSERT_NE(at, stored_.leases.end());
      EXPECT_EQ(saved.lease, at->second);
    }
  }

  void compare_pages() {
    std::map<job_id, int> ready;
    for (const queue_number queue : {1U, 2U}) {
      const auto page = db_.ready_after(queue, {}, {});
      if (!page) {
        failed();
        continue;
      }
      for (const job_ptr& j : *page) {
        expect_stored(*j, "handed out");
        ++ready[j->id];
      }
    }
    const auto due = db_.due(start + milliseconds(1'000'000), 1000);
    if (!due) failed();
    if (due) {
      for (const job_ptr& j : due->jobs) expect_stored(*j, "due");
    }
    for (const auto& [id, was] : stored_.jobs) {
      if (was.back().state == job_state::ready && ready[id] != 1) seen_.differs = true;
    }
  }

  void compare_jobs() {
    for (const auto& [id, was] : stored_.jobs) {
      const auto found = db_.get(id);
      if (!found) {
        failed();
      } else if (!*found) {
        seen_.differs = true;
      } else if ((*found)->is_damaged) {
        failed();
      } else {
        expect_stored(**found, "shown as sound");
      }
    }
  }

  void compare_batches_and_logs() {
    for (const auto& [id, was] : stored_.batches) {
      const auto found = db_.get_batch(id);
      if (!found) {
        failed();
      } else if (!*found) {
        seen_.differs = true;
      } else {
        EXPECT_EQ(**found, was.back()) << "batch " << id;
      }
    }
    for (const auto& [id, was] : stored_.logs) {
      const auto found = db_.logs(id, 0, 10);
      if (!found) {
        failed();
      } else if (found->lines != was) {
        seen_.differs = true;
        for (const log_line& line : found->lines) {
          const bool is_marked = line.text.find("damaged") != std::string::npos;
          EXPECT_TRUE(is_marked || line == was.at(0)) << "job " << id << ": " << line.text;
        }
      }
    }
  }

  // Changes the store, so it is called last.
  void compare_relations() {
    job_id id = 5000;
    for (const auto& [key, holder] : stored_.keys) {
      const auto outcome = db_.apply(a_transaction(start, adding(with_key(a_job(++id), key))));
      if (!outcome) {
        failed();
      } else if (outcome->conflicts.empty()) {
        seen_.differs = true;
      } else {
        EXPECT_EQ(outcome->conflicts[0].holder, holder) << key;
      }
    }
    for (const auto& [on, waiting] : stored_.released) {
      const auto now = db_.get(on);
      if (!now || !*now || (*now)->is_damaged) continue;  // compared above
      const auto outcome = db_.apply(a_transaction(start, dropping(**now, job_state::done)));
      if (!outcome) {
        failed();
        continue;
      }
      const bool is_released = std::ranges::any_of(outcome->effects, [&](const effect& e) {
        return e.type == effect::kind::released && e.id == waiting;
      });
      if (!is_released) seen_.differs = true;
    }
  }

  store& db_;
  const contents_model& stored_;
  seen& seen_;
};

class flipped_bytes_test : public damaged_store {
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

  // Copies a filled store as a killed process leaves it, and opens the copy from now on. Returns
  // its log.
  std::string leave_a_log() {
    std::string log;
    {
      auto db = open();
      fill(*db);
      std::filesystem::copy_file(path, folder.file("after.db"));
      log = read_file(path + "-wal");
    }
    path = folder.file("after.db");
    return log;
  }

  std::string where;
};

TEST_F(flipped_bytes_test, InTheFileAreNeverServedAsSoundAndAlwaysReported) {
  const contents_model stored = fill(*open());
  const std::string sound = read_file(path);
  std::uint64_t damaged = 0;
  const std::uint64_t wanted = sluice::testing::effort(
      sluice::testing::test_name(), "flipped bytes that are found", {.ci = 20, .full = 300});
  for (std::uint64_t seed = 1; damaged < wanted; ++seed) {
    ASSERT_LT(seed, 10 * wanted) << "most bytes of the file mean nothing";
    write_file(path, sound);
    flip_one(path, seed);
    SCOPED_TRACE(where);
    const auto report = check_store(path);
    const bool is_found = !report || !report->is_sound();
    notices.clear();
    seen findings;
    {
      auto opened = try_open(path);
      if (!opened) findings = {true, true};
      if (opened) comparison(**opened, stored, findings).run();
    }
    EXPECT_TRUE(!findings.differs || is_found || findings.is_loud || !notices.empty())
        << "neither the check nor a read reports it";
    damaged += is_found ? 1U : 0U;
  }
}

TEST_F(flipped_bytes_test, InTheLogAreNeverServedAsSoundAndAlwaysReported) {
  contents_model stored;
  std::string file;
  std::string log;
  {
    auto db = open();
    stored = fill(*db);
    file = read_file(path);
    log = read_file(path + "-wal");  // as a killed process leaves it
  }
  ASSERT_GT(log.size(), 100'000U);
  path = folder.file("after.db");
  std::uint64_t lost = 0;
  const std::uint64_t wanted = sluice::testing::effort(
      sluice::testing::test_name(), "flipped bytes that lose a commit", {.ci = 20, .full = 300});
  for (std::uint64_t seed = 1; lost < wanted; ++seed) {
    ASSERT_LT(seed, 10 * wanted) << "most bytes of the log mean nothing";
    write_file(path, file);
    write_file(path + "-wal", log);
    std::filesystem::remove(path + "-shm");
    flip_one(path + "-wal", seed);
    SCOPED_TRACE(where);
    notices.clear();
    remarks.clear();
    seen findings;
    {
      auto opened = try_open(path);
      if (!opened) findings = {true, true};
      if (opened) comparison(**opened, stored, findings).run();
    }
    EXPECT_TRUE(!findings.differs || findings.is_loud || !notices.empty() || !remarks.empty());
    lost += findings.differs ? 1U : 0U;
  }
}

TEST_F(flipped_bytes_test, ASoundLogIsNotReported) {
  contents_model stored;
  {
    auto db = open();
    stored = fill(*db);
    std::filesystem::copy_file(path, folder.file("after.db"));
    std::filesystem::copy_file(path + "-wal", folder.file("after.db-wal"));
  }
  path = folder.file("after.db");
  seen findings;
  auto db = must(try_open(path));
  comparison(*db, stored, findings).run();
  EXPECT_FALSE(findings.differs);
  EXPECT_TRUE(notices.empty());
  EXPECT_TRUE(remarks.empty());
}

TEST_F(flipped_bytes_test, FramesBehindADamagedOneAreCountedAndTheLogIsKept) {
  std::string log = leave_a_log();
  const std::string file = read_file(path);
  log[32 + 24 + 100] ^= 1;  // in the page of the first frame
  write_file(path + "-wal", log);
  EXPECT_NE(must(check_store(path)).problems.at(0).find("frame 1 is damaged"), std::string::npos);
  EXPECT_TRUE(must(try_open(path, sync_mode::full))->load());
  EXPECT_TRUE(has_notice("frame 1 is damaged; after it there are"));
  EXPECT_EQ(read_file(path + "-wal.damaged"), log);

  // A second damaged log does not replace the first copy.
  write_file(path, file);
  std::string second = log;
  second[32 + 24 + 200] ^= 1;
  write_file(path + "-wal", second);
  must(try_open(path, sync_mode::full));
  EXPECT_EQ(read_file(path + "-wal.damaged"), log);
  EXPECT_EQ(read_file(path + "-wal.damaged2"), second);
}

TEST_F(flipped_bytes_test, ADamagedLogIsReportedOnce) {
  std::string log = leave_a_log();
  const std::size_t frame = 32 + (log.size() / 2 / 4120) * 4120;  // so that a part of it is sound
  log[frame + 100] ^= 1;
  write_file(path + "-wal", log);
  {
    auto db = must(try_open(path, sync_mode::full));
    must(db->load());
    EXPECT_TRUE(has_notice("is damaged; after it there are"));
    // Writes fewer frames than are after the damaged one, then kills the process.
    must(db->apply(a_transaction(start, adding(a_job(7000)))));
    std::filesystem::copy_file(path, folder.file("killed.db"));
    std::filesystem::copy_file(path + "-wal", folder.file("killed.db-wal"));
  }
  path = folder.file("killed.db");
  notices.clear();
  remarks.clear();
  EXPECT_TRUE(std::ranges::none_of(
      problems(), [](const std::string& p) { return p.find("in the log") != std::string::npos; }));
  auto db = must(try_open(path, sync_mode::full));
  must(db->load());
  EXPECT_TRUE(must(db->get(7000)).has_value());
  EXPECT_TRUE(notices.empty());
  EXPECT_TRUE(remarks.empty());
}

TEST_F(flipped_bytes_test, AnUnsyncedLogIsNotCertainDamage) {
  std::string log = leave_a_log();
  log[32 + 24 + 100] ^= 1;
  write_file(path + "-wal", log);
  must(try_open(path, sync_mode::interval));
  EXPECT_TRUE(notices.empty());
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("In sync mode interval a power cut may do that"), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::testing::sqlite_flip_test
