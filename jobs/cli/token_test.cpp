// Tokens and plans from the command line; neither needs a server.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"

namespace sluice::jobs::cli::token_test {
namespace {

using testing::ended;
using testing::run_sluice;
using testing::temporary_folder;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Token : public ::testing::Test {
 protected:
  ended token(std::vector<std::string> words) const {
    words.insert(words.begin(), "token");
    words.insert(words.end(), {"--data", folder_.path()});
    return run_sluice(words);
  }

  temporary_folder folder_;
};

TEST_F(Token, IsTheOnlyTextOnStandardOutput) {
  const ended made = token({"create", "--name", "ci", "--role", "push", "--role", "work", "--queue",
                            "mail-*", "--expires", "90d"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(made.out.starts_with("slk_")) << made.out;
  EXPECT_EQ(std::count(made.out.begin(), made.out.end(), '\n'), 1);
  EXPECT_HAS(made.err, "push, work, in mail-*");
  EXPECT_FALSE(has(made.err, made.out.substr(0, made.out.size() - 1)));
}

TEST_F(Token, IsListedWithoutItsSecretAndRevoked) {
  const std::string text = token({"create", "--name", "ci", "--role", "read,push"}).out;
  const std::string id = text.substr(4, text.find('_', 4) - 4);
  const ended list = token({"list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_HAS(list.out, id);
  EXPECT_HAS(list.out, "ci");
  EXPECT_HAS(list.out, "every queue");
  EXPECT_FALSE(has(list.out, text.substr(5 + id.size(), 20)));
  const ended gone = token({"revoke", id});
  EXPECT_EQ(gone.code, 0) << gone.err;
  EXPECT_HAS(token({}).out, "revoked");
  EXPECT_EQ(token({"revoke", "aaaaaaaa"}).code, 3);
  EXPECT_HAS(token({"list", "--json"}).out, R"("roles":["push","read"])");
}

TEST_F(Token, ReportsErrors) {
  EXPECT_EQ(token({"create", "--name", "ci"}).code, 2);
  const ended role = token({"create", "--name", "ci", "--role", "king"});
  EXPECT_EQ(role.code, 2);
  EXPECT_HAS(role.err, "push|work|read|admin");
  EXPECT_EQ(token({"create", "--name", "ci", "--role", "push", "--queue", "a b"}).code, 2);
  EXPECT_NE(run_sluice({"token", "create", "--name", "ci", "--role", "push", "--data",
                        folder_.file("none")})
                .code,
            0);
}

TEST(TokenFile, MustNotBeEmpty) {
  const temporary_folder folder;
  const std::string file = testing::make_file(folder, "token", "\n");
  const ended got = run_sluice({"get", "1", "--token-file", file});
  EXPECT_EQ(got.code, 2);
  EXPECT_HAS(got.err, "is empty");
  EXPECT_EQ(run_sluice({"get", "1", "--token-file", folder.file("none")}).code, 3);
}

TEST(Plan, SizesAQueueAndDrawsItsDepth) {
  const ended plan = run_sluice({"plan", "--rate", "100/s", "--burst", "10000/s", "--for", "10s",
                                 "--workers", "8", "--job-time", "20ms", "--cores", "8"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  // 100,000 arrive and 8 / 20 ms = 400 a second are done: 96,000 are left, plus a quarter headroom.
  EXPECT_HAS(plan.out, "96,000 jobs at most");
  EXPECT_HAS(plan.out, "sluice queues set default --capacity 120000");
  EXPECT_HAS(plan.out, "sluice work --queue default --concurrency 8");
  EXPECT_HAS(plan.out, "█");
  const ended as_json =
      run_sluice({"plan", "--rate", "100/s", "--burst", "10000/s", "--for", "10s", "--workers", "8",
                  "--job-time", "20ms", "--cores", "8", "--queue", "mail", "--json"});
  EXPECT_HAS(as_json.out, R"("ends":"drains")");
  EXPECT_HAS(as_json.out, R"("command":"sluice queues set mail --capacity 120000")");
}

TEST(Plan, ReportsThatNoCapacityIsEnough) {
  const ended plan = run_sluice(
      {"plan", "--rate", "1000/s", "--workers", "2", "--job-time", "20ms", "--cores", "2"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_HAS(plan.out, "No capacity is enough");
}

TEST(Plan, ReportsErrors) {
  for (const auto& [words, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--rate", "fast", "--job-time", "1s"}, "--rate"},
           {{"--rate", "1/s", "--job-time", "1s", "--wait", "2s"}, "--wait"},
           {{"--rate", "1/s", "--job-time", "0"}, "--job-time"},
           {{"--rate", "1/s", "--job-time", "1s", "--burst", "5/s"}, "--for"},
           {{"--rate", "9/s", "--job-time", "1s", "--burst", "5/s", "--for", "1s"}, "--burst"},
           {{"--rate", "1/s", "--job-time", "1s", "--workers", "0"}, "--workers"}}) {
    std::vector<std::string> all = {"plan"};
    all.insert(all.end(), words.begin(), words.end());
    const ended plan = run_sluice(all);
    EXPECT_EQ(plan.code, 2) << says;
    EXPECT_HAS(plan.err, says);
  }
}

}  // namespace
}  // namespace sluice::jobs::cli::token_test
