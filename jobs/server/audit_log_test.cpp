// Audit lines and their file.
#include "jobs/server/audit_log.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::jobs::audit_log_test {
namespace {

std::string text_of(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

TEST(AuditLog, WritesALineForAnActAtAnyLogLevel) {
  const sluice::testing::temporary_folder folder;
  const std::string file = folder.file("audit");
  auto audit = audit_log::open(file, {.level = log_level::off}).value();
  audit->write({.who = "abcdefgh", .from = "10.0.0.1", .act = "POST /x", .outcome = "200"});
  EXPECT_EQ(text_of(file).substr(25),
            "info  audit who=abcdefgh from=10.0.0.1 act=\"POST /x\" outcome=200\n");
}

TEST(AuditLog, WritesJsonWhenTheLogDoes) {
  const sluice::testing::temporary_folder folder;
  const std::string file = folder.file("audit");
  auto audit = audit_log::open(file, {.json = true}).value();
  audit->write({.who = "local", .from = "SIGHUP", .act = "reload tokens"});
  EXPECT_NE(text_of(file).find(R"("event":"audit","who":"local","from":"SIGHUP",)"
                               R"("act":"reload tokens","outcome":"ok"})"),
            std::string::npos);
}

TEST(AuditLog, AppendsToItsFile) {
  const sluice::testing::temporary_folder folder;
  const std::string file = folder.file("audit");
  for (const char* act : {"one", "two"}) {
    audit_log::open(file, {}).value()->write({.who = "local", .from = "here", .act = act});
  }
  const std::string text = text_of(file);
  EXPECT_NE(text.find("act=one"), std::string::npos);
  EXPECT_NE(text.find("act=two"), std::string::npos);
}

TEST(AuditLog, ReopensItsFileAfterItWasMovedAway) {
  const sluice::testing::temporary_folder folder;
  const std::string file = folder.file("audit");
  auto audit = audit_log::open(file, {}).value();
  audit->write({.who = "local", .from = "here", .act = "one"});
  std::filesystem::rename(file, folder.file("old"));
  audit->write({.who = "local", .from = "here", .act = "two"});
  ASSERT_TRUE(audit->reopen());
  audit->write({.who = "local", .from = "here", .act = "three"});
  EXPECT_NE(text_of(folder.file("old")).find("act=two"), std::string::npos);
  EXPECT_NE(text_of(file).find("act=three"), std::string::npos);
  EXPECT_EQ(text_of(file).find("act=two"), std::string::npos);
}

TEST(AuditLog, NamesAFileThatItCannotWrite) {
  const sluice::testing::temporary_folder folder;
  const auto none = audit_log::open(folder.file("no/audit"), {});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no/audit"), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::audit_log_test
