#include "jobs/store/sqlite/detail/connection.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "jobs/store/sqlite/detail/job_finder.hpp"
#include "jobs/store/sqlite/detail/schema.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::detail::connection_test {
namespace {

class connection_test : public ::testing::Test {
 protected:
  static connection open(const std::string& path) {
    auto on = connection::open(path, {});
    EXPECT_TRUE(on);
    EXPECT_TRUE(ensure_schema(*on));
    return std::move(*on);
  }

  sluice::testing::temporary_folder folder;
  connection on = open(folder.file("a.db"));
};

int refuse_rollback(void*, int action, const char* verb, const char*, const char*, const char*) {
  const bool is_rollback = action == SQLITE_TRANSACTION && std::string_view(verb) == "ROLLBACK";
  return is_rollback ? SQLITE_DENY : SQLITE_OK;
}

// SQLite's error for a second BEGIN equals that of a statement that does not match the tables.
TEST_F(connection_test, AnOpenTransactionDoesNotMakeTheNextListFailAsDamaged) {
  job_finder find(std::make_shared<damage_report>("a.db", notice_callback()));
  ASSERT_TRUE(find.prepare(on));
  ASSERT_TRUE(on.exec("BEGIN"));
  EXPECT_TRUE(find.list({}, 0, 10));
  EXPECT_FALSE(on.in_transaction());
}

TEST_F(connection_test, AFailedRollbackIsNotDamage) {
  job_finder find(std::make_shared<damage_report>("a.db", notice_callback()));
  ASSERT_TRUE(find.prepare(on));
  ASSERT_TRUE(on.exec("BEGIN"));
  sqlite3_set_authorizer(on.handle(), refuse_rollback, nullptr);
  EXPECT_FALSE(on.end_transaction());
  const auto refused = find.list({}, 0, 10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::io_error);
  sqlite3_set_authorizer(on.handle(), nullptr, nullptr);
  EXPECT_TRUE(find.list({}, 0, 10));
}

}  // namespace
}  // namespace sluice::jobs::detail::connection_test
