// `sluice workers`: workers over Faktory's protocol, from the command line.
#include <gtest/gtest.h>

#include <string>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/net/testing/socket_wire.hpp"

namespace sluice::jobs::cli::workers_test {
namespace {

using jobs::testing::socket_wire;
using testing::ended;
using testing::server_program;
using testing::temporary_folder;

class Workers : public ::testing::Test {
 protected:
  // Sends HELLO as this worker.
  void introduce(socket_wire& wire, const std::string& wid) {
    EXPECT_TRUE(wire.line().starts_with("+HI {"));
    wire.send(R"(HELLO {"v":2,"wid":")" + wid +
              R"(","hostname":"web-1","pid":812,"labels":["ruby"]})" + "\r\n");
    EXPECT_EQ(wire.line(), "+OK");
  }

  temporary_folder folder_;
  server_program server_{folder_, {"--faktory", ":0"}};
};

TEST_F(Workers, AreATableForPeopleAndJsonForPrograms) {
  EXPECT_HAS(server_.run({"workers"}).err, "no workers are connected over Faktory's protocol");
  socket_wire one(server_.port_for("faktory"));
  introduce(one, "w-one");
  socket_wire two(server_.port_for("faktory"));
  introduce(two, "w-two");
  one.send("BEAT {\"wid\":\"w-one\",\"rss_kb\":2048}\r\n");
  EXPECT_EQ(one.line(), "+OK");
  const ended table = server_.run({"workers"});
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* const part : {"WID", "w-one", "web-1", "812", "running", "2.0 MB", "ruby"}) {
    EXPECT_HAS(table.out, part);
  }
  const ended all = server_.run({"workers", "--json"});
  EXPECT_HAS(all.out, R"({"workers":[{"wid":"w-one","hostname":"web-1")");
  EXPECT_HAS(all.out, R"("next":null})");
  const ended first = server_.run({"workers", "--limit", "1"});
  EXPECT_EQ(first.out.find("w-two"), std::string::npos) << first.out;
  EXPECT_HAS(first.err, "--after w-one");
  EXPECT_HAS(server_.run({"workers", "--after", "w-one"}).out, "w-two");
}

TEST_F(Workers, AreQuietedAndTerminatedWithAnAuditLine) {
  socket_wire one(server_.port_for("faktory"));
  introduce(one, "w");
  const ended quiet = server_.run({"workers", "quiet", "w"});
  EXPECT_EQ(quiet.code, 0) << quiet.err;
  EXPECT_HAS(quiet.out, "w will fetch no new jobs and finish its current ones; it has 0 jobs");
  one.send("BEAT {\"wid\":\"w\"}\r\n");
  EXPECT_EQ(one.line(), R"(+{"state":"quiet"})");
  EXPECT_HAS(server_.run({"workers", "terminate", "w", "--json"}).out, R"("state":"terminate")");
  one.send("BEAT {\"wid\":\"w\",\"current_state\":\"quiet\"}\r\n");
  EXPECT_EQ(one.line(), R"(+{"state":"terminate"})");
  const ended nobody = server_.run({"workers", "quiet", "nobody"});
  EXPECT_EQ(nobody.code, 3);
  EXPECT_HAS(nobody.err, "there is no worker 'nobody'");
  const std::string log = server_.stop().err;
  EXPECT_HAS(log, R"(act="POST /v1/faktory/workers/w/quiet" outcome=200)");
  EXPECT_HAS(log, R"(act="POST /v1/faktory/workers/nobody/quiet" outcome=404)");
}

TEST(WorkersOfAServerWithout, AreNotFound) {
  const temporary_folder folder;
  server_program server(folder);
  const ended end = server.run({"workers"});
  EXPECT_EQ(end.code, 3);
  EXPECT_HAS(end.err, "start it with --faktory");
}

}  // namespace
}  // namespace sluice::jobs::cli::workers_test
