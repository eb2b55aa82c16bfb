#include "sluice/actor/sqlite/sqlite_actor_store.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/actor/testing/actor_store_suite.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::sqlite_actor_store_test {
namespace {

using testing::temporary_folder;

struct in_a_file {
  std::unique_ptr<actor_store> open() {
    return std::make_unique<sqlite_actor_store>(folder.file("states.db"));
  }
  static constexpr bool keeps = true;
  temporary_folder folder{};
};
}  // namespace
}  // namespace sluice::sqlite_actor_store_test

namespace sluice::testing {
using sqlite_actor_store_test::in_a_file;
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, actor_store_suite, in_a_file);
}  // namespace sluice::testing

namespace sluice::sqlite_actor_store_test {
namespace {

class sqlite_actor_store_test : public ::testing::Test {
 protected:
  std::string why_not() {
    try {
      const sqlite_actor_store store(path_);
    } catch (const actor_store_error& e) {
      return e.what();
    }
    return "it was opened";
  }
  void with_sql(const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  void fill(int count) {
    sqlite_actor_store store(path_);
    std::vector<future<void>> done;
    for (int i = 0; i < count; ++i) {
      done.push_back(store.save("t", std::to_string(i), std::string(1000, 'x')));
    }
    for (auto& f : done) f.get();
  }
  std::string bytes() {
    std::ostringstream all;
    all << std::ifstream(path_, std::ios::binary).rdbuf();
    return all.str();
  }
  void overwrite(const std::string& with, std::streamoff at) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file << with;
  }

  temporary_folder folder_;
  const std::string path_ = folder_.file("states.db");
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(sqlite_actor_store_test, SavesDuringACommitAreOneTransaction) {
  sqlite_actor_store store(path_);
  std::vector<future<void>> done;
  for (int i = 0; i < 5000; ++i) done.push_back(store.save("t", std::to_string(i), "state"));
  for (auto& f : done) f.get();
  EXPECT_LT(store.stats().commits, 1000U);
}

TEST_F(sqlite_actor_store_test, TheDestructorExecutesEarlierCalls) {
  std::vector<future<void>> done;
  {
    sqlite_actor_store store(path_);
    for (int i = 0; i < 2000; ++i) done.push_back(store.save("t", std::to_string(i), "state"));
  }
  for (auto& f : done) f.get();
  sqlite_actor_store store(path_);
  EXPECT_EQ(store.load("t", "1999").get(), "state");
}

TEST_F(sqlite_actor_store_test, CallsBeyondQueueMaxFailAtOnce) {
  sqlite_actor_store store(path_, {.queue_max = 1, .batch_max = 1});
  int refused = 0;
  std::vector<future<void>> done;
  for (int i = 0; i < 200; ++i) done.push_back(store.save("t", "k", std::string(100'000, 'x')));
  for (auto& f : done) {
    try {
      f.get();
    } catch (const actor_store_error& e) {
      EXPECT_SAYS(std::string(e.what()), "too many");
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  store.save("t", "k", "last").get();
  EXPECT_EQ(store.load("t", "k").get(), "last");
}

TEST_F(sqlite_actor_store_test, ACallThatFailsFailsAlone) {
  with_sql("SELECT 1");
  { const sqlite_actor_store made(path_); }
  with_sql(
      "CREATE TRIGGER no BEFORE INSERT ON actor_states WHEN new.key = x'62' "
      "BEGIN SELECT raise(ABORT, 'not this one'); END");
  sqlite_actor_store store(path_);
  auto large = store.save("t", "before", std::string(3'000'000, 'x'));  // later calls gather
  auto a = store.save("t", "a", "1");
  auto b = store.save("t", "b", "2");
  auto c = store.save("t", "c", "3");
  large.get();
  a.get();
  EXPECT_THROW(b.get(), actor_store_error);
  c.get();
  EXPECT_EQ(store.load("t", "a").get(), "1");
  EXPECT_EQ(store.load("t", "b").get(), std::nullopt);
  EXPECT_EQ(store.load("t", "c").get(), "3");
}

TEST_F(sqlite_actor_store_test, ASecondStoreFailsBecauseTheFileIsInUse) {
  const sqlite_actor_store store(path_);
  EXPECT_SAYS(why_not(), "another program has it open");
}

TEST_F(sqlite_actor_store_test, AMissingFolderIsNamed) {
  try {
    const sqlite_actor_store store(folder_.file("no/such/folder.db"));
    FAIL();
  } catch (const actor_store_error& e) {
    EXPECT_SAYS(std::string(e.what()), "no/such/folder.db: unable to open");
  }
}

TEST_F(sqlite_actor_store_test, AFileOfANewerVersionIsNotChanged) {
  fill(1);
  with_sql("PRAGMA user_version = 7");
  const std::string before = bytes();
  EXPECT_SAYS(why_not(), "newer version (format 7, this version reads 1)");
  EXPECT_TRUE(bytes() == before);
}

TEST_F(sqlite_actor_store_test, ADatabaseOfAnotherProgramIsNotChanged) {
  with_sql("CREATE TABLE mine (n)");
  const std::string before = bytes();
  EXPECT_SAYS(why_not(), "another program");
  EXPECT_TRUE(bytes() == before);
}

TEST_F(sqlite_actor_store_test, AFileThatIsNoDatabaseIsNotChanged) {
  std::ofstream(path_) << std::string(5000, 'x');
  EXPECT_SAYS(why_not(), "not a SQLite database");
  EXPECT_EQ(bytes(), std::string(5000, 'x'));
}

TEST_F(sqlite_actor_store_test, ADamagedFileIsReported) {
  fill(500);
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path_));
  ASSERT_GT(size, 100'000);
  overwrite(std::string(static_cast<std::size_t>(size) - 8192, '\xa5'), 8192);
  sqlite_actor_store store(path_);
  try {
    for (int i = 0; i < 500; ++i) (void)store.load("t", std::to_string(i)).get();
    FAIL() << "it was read";
  } catch (const actor_store_error& e) {
    EXPECT_SAYS(std::string(e.what()), "the file is damaged");
  }
}

TEST_F(sqlite_actor_store_test, ATruncatedFileIsReported) {
  fill(500);
  std::filesystem::resize_file(path_, 6000);
  std::string why = why_not();
  if (why == "it was opened") {
    sqlite_actor_store store(path_);
    try {
      for (int i = 0; i < 500; ++i) (void)store.load("t", std::to_string(i)).get();
      FAIL() << "it was read";
    } catch (const actor_store_error& e) {
      why = e.what();
    }
  }
  EXPECT_SAYS(why, "damaged");
}

}  // namespace
}  // namespace sluice::sqlite_actor_store_test
