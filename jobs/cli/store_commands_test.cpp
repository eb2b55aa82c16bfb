// `check` and `backup` beside a running server.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"

namespace sluice::jobs::cli::store_commands_test {
namespace {

using testing::ended;
using testing::make_file;
using testing::run_sluice;
using testing::server_program;
using testing::temporary_folder;

class StoreCommands : public ::testing::Test {
 protected:
  StoreCommands() {
    std::string lines;
    for (int i = 0; i < 500; ++i) {
      lines += R"({"kind":"k","args":")" + std::string(200, 'x') + "\"}\n";
    }
    EXPECT_EQ(server_.run({"import", "-"}, {.input = lines}).code, 0);
  }
  std::string data() const { return folder_.file("data"); }

  temporary_folder folder_;
  server_program server_{folder_};
};

TEST_F(StoreCommands, VerifyAStoreThatIsInUse) {
  const ended check = run_sluice({"check", "--data", data()});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_HAS(check.out, "is sound: 500 jobs in 1 queue");
  EXPECT_HAS(run_sluice({"check", "--data", data(), "--json"}).out, R"("ok":true)");
}

TEST_F(StoreCommands, CopyAStoreThatIsInUseAndServeTheCopy) {
  const temporary_folder other;
  ASSERT_EQ(std::system(("mkdir " + other.file("data")).c_str()), 0);
  const std::string copy = other.file("data/jobs.db");
  const ended backup = run_sluice({"backup", "--data", data(), "--to", copy});
  EXPECT_EQ(backup.code, 0) << backup.err;
  EXPECT_HAS(backup.out, " copied to ");
  EXPECT_EQ(run_sluice({"check", copy}).code, 0);
  EXPECT_NE(run_sluice({"backup", "--data", data(), "--to", copy}).code, 0) << "the file exists";
  const server_program again(other);
  EXPECT_HAS(again.run({"queues"}).out, "500");
}

TEST_F(StoreCommands, ReportDamage) {
  const std::string copy = folder_.file("copy.db");
  ASSERT_EQ(run_sluice({"backup", "--data", data(), "--to", copy}).code, 0);
  {
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8 * 4096);
    file << std::string(3 * 4096, 'z');
  }
  const ended check = run_sluice({"check", copy});
  EXPECT_EQ(check.code, 7) << check.out << check.err;
  const std::string no_store = make_file(folder_, "text", "this is no store at all, but a text\n");
  EXPECT_EQ(run_sluice({"check", no_store}).code, 7);
  EXPECT_NE(run_sluice({"check", folder_.file("none")}).code, 0);
}

}  // namespace
}  // namespace sluice::jobs::cli::store_commands_test
