// Batches, cron entries, events and logs, from the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::workflow_test {
namespace {

using sluice::testing::eventually;
using testing::ended;
using testing::make_file;
using testing::program;
using testing::run_sluice;
using testing::server_program;
using testing::temporary_folder;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Workflow : public ::testing::Test {
 protected:
  // Runs a command that must succeed; returns its output.
  std::string did(const std::vector<std::string>& words) {
    const ended end = server_.run(words);
    EXPECT_EQ(end.code, 0) << words.front() << ": " << end.err;
    return end.out;
  }
  std::string trip() {
    return make_file(folder_, "trip.json",
                     R"({"name": "trip",
                         "jobs": [{"kind": "book", "step": "flight", "keep_for": "1h"},
                                  {"kind": "book", "step": "hotel", "keep_for": "1h"},
                                  {"kind": "mail", "step": "mail", "keep_for": "1h",
                                   "after": ["flight", "hotel"]}]})");
  }

  temporary_folder folder_;
  server_program server_{folder_};
};

TEST_F(Workflow, RunsABatchToItsEnd) {
  const std::string id = did({"batch", "create", "-f", trip(), "--quiet"});
  const std::string batch = id.substr(0, id.find('\n'));
  EXPECT_HAS(did({"batch", "show", batch}), "trip, running");
  EXPECT_HAS(did({"batch"}), "trip");
  const std::string before = did({"batch", "graph", batch});
  EXPECT_HAS(before, "flight");
  EXPECT_HAS(before, "held");
  EXPECT_HAS(before, "after flight, hotel");
  did({"work", "--jobs", "3", "--exec", "true", "--quiet"});
  const ended end = server_.run({"batch", "show", batch, "--wait", "30s"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.out, "3 of 3 have ended");
  EXPECT_HAS(did({"batch", "jobs", batch}), "mail");
  EXPECT_HAS(did({"batch", "show", batch, "--json"}), R"("name":"trip")");
}

TEST_F(Workflow, EndsWithOneWhenAJobOfTheBatchHasFailed) {
  const std::string file =
      make_file(folder_, "one.json", R"({"jobs": [{"kind": "a", "retry": {"attempts": 1}}]})");
  program create({"batch", "create", "-f", file, "--wait", "30s", "--url", server_.url()});
  EXPECT_EQ(server_.run({"work", "--jobs", "1", "--exec", "false", "--quiet"}).code, 0);
  const ended end = create.wait();
  EXPECT_EQ(end.code, 1) << end.err;
  EXPECT_HAS(end.out, "failed");
}

TEST_F(Workflow, CancelsAndRetriesAWholeBatch) {
  did({"batch", "create", "-f", trip()});
  const std::string batch = "1";
  EXPECT_EQ(server_.run({"batch", "show", batch, "--wait", "100ms"}).code, 6);
  EXPECT_HAS(did({"batch", "cancel", batch}), "cancelled");
  EXPECT_HAS(did({"batch", "show", batch}), "failed");
  EXPECT_HAS(did({"batch", "retry", batch}), "ready again");
  EXPECT_HAS(did({"batch", "show", batch}), "running");
}

TEST_F(Workflow, ReportsAnInvalidBatch) {
  const std::string cycle = make_file(folder_, "cycle.json",
                                      R"({"jobs": [{"kind": "a", "step": "x", "after": ["y"]},
                                                   {"kind": "a", "step": "y", "after": ["x"]}]})");
  const ended refused = server_.run({"batch", "create", "-f", cycle});
  EXPECT_EQ(refused.code, 2);
  EXPECT_HAS(refused.err, "cycle.json: ");
  EXPECT_HAS(refused.err, "the steps form a cycle: 'x' after 'y' after 'x'");
  EXPECT_EQ(server_.run({"batch", "create", "-f", folder_.file("none")}).code, 3);
  EXPECT_EQ(server_.run({"batch", "show", "99"}).code, 3);
  EXPECT_EQ(server_.run({"batch", "create"}).code, 2);
}

TEST_F(Workflow, PushesJobsWithKeysAndDependencies) {
  did({"push", "first", "--key", "k"});
  did({"push", "second", "--after", "1:end", "--key", "k"});
  const std::string second = did({"get", "2"});
  EXPECT_HAS(second, "held");
  EXPECT_HAS(second, "1:end");
  EXPECT_HAS(second, "key         k");
  const ended wrong = server_.run({"push", "a", "--after", "soon"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_HAS(wrong.err, ":success, :end or :failure");
}

TEST_F(Workflow, SetsShowsRunsAndRemovesACronEntry) {
  const std::string set = did({"cron", "set", "nightly", "0 3 * * *", "report", R"({"a":1})",
                               "--zone", "Europe/Berlin", "--queue", "reports"});
  EXPECT_HAS(set, "0 3 * * *, Europe/Berlin");
  EXPECT_HAS(set, "report to reports");
  EXPECT_HAS(did({"cron"}), "nightly");
  EXPECT_HAS(did({"cron", "run", "nightly"}), "job 1 pushed");
  EXPECT_HAS(did({"get", "1"}), R"({"a":1})");
  EXPECT_HAS(did({"cron", "pause", "nightly"}), "paused");
  EXPECT_HAS(did({"cron", "list"}), "paused");
  EXPECT_FALSE(has(did({"cron", "resume", "nightly"}), "paused"));
  did({"cron", "remove", "nightly"});
  EXPECT_EQ(server_.run({"cron", "show", "nightly"}).code, 3);
}

TEST_F(Workflow, ReportsAnInvalidCronLine) {
  const ended wrong = server_.run({"cron", "set", "x", "61 * * * *", "a"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_HAS(wrong.err, "column 1");
  const ended zone = server_.run({"cron", "set", "x", "* * * * *", "a", "--zone", "Mars/Olympus"});
  EXPECT_EQ(zone.code, 2);
  EXPECT_HAS(zone.err, "Mars/Olympus");
}

TEST(CronNext, NeedsNoServer) {
  const ended next = run_sluice({"cron", "next", "0 3 * * *", "--zone", "Europe/Berlin"});
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_EQ(std::count(next.out.begin(), next.out.end(), '\n'), 5);
  EXPECT_HAS(next.out, " 03:00:00 CE");
  EXPECT_HAS(next.err, "Europe/Berlin");
  const ended as_json = run_sluice({"cron", "next", "@daily", "--times", "2", "--json"});
  EXPECT_HAS(as_json.out, R"({"schedule":"@daily","zone":"UTC","times":[")");
  EXPECT_EQ(run_sluice({"cron", "next", "hourly"}).code, 2);
}

TEST_F(Workflow, PrintsEvents) {
  did({"push", "a", "--queue", "mail"});
  program tail({"events", "--from", "0", "--queue", "mail", "--url", server_.url()});
  eventually([&] { return has(tail.out(), "pushed") || tail.has_ended(); }, "the event of a push");
  EXPECT_HAS(tail.out(), "job 1 in mail");
  did({"push", "b", "--queue", "other"});
  did({"work", "--queue", "mail,other", "--jobs", "2", "--exec", "true", "--quiet"});
  eventually([&] { return has(tail.out(), "done") || tail.has_ended(); }, "the event of an end");
  EXPECT_FALSE(has(tail.out(), "other"));
  tail.signal(SIGINT);
  EXPECT_EQ(tail.wait().code, 130);
}

TEST_F(Workflow, ShowsAndFollowsTheLogOfAJob) {
  did({"push", "a", "--keep-for", "1h"});
  program follow({"logs", "1", "--follow", "--url", server_.url()});
  did({"work", "--jobs", "1", "--quiet", "--exec", "echo one >&2; echo two >&2"});
  const ended end = follow.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.out, "attempt 1\n");
  EXPECT_HAS(end.out, " one\n");
  EXPECT_HAS(end.out, " two\n");
  EXPECT_HAS(did({"logs", "1", "--after", "1", "--json"}), R"("text":"two")");
  EXPECT_EQ(server_.run({"logs", "99"}).code, 3);
}

TEST_F(Workflow, SetsTheLimitsOfAQueue) {
  const std::string set =
      did({"queues", "set", "mail", "--rate", "600/m", "--burst", "20", "--concurrency", "5",
           "--weight", "3", "--key-concurrency", "2", "--key-rate", "1/s", "--key-burst", "4"});
  EXPECT_HAS(set, "10/s, up to 20 at once");
  EXPECT_HAS(set, "5 at a time");
  EXPECT_HAS(set, "2 at a time, 1/s, up to 4 at once");
  const ended wrong = server_.run({"queues", "set", "mail", "--rate", "fast"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_HAS(wrong.err, "--rate");
}

}  // namespace
}  // namespace sluice::jobs::cli::workflow_test
