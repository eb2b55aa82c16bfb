// Every command against a real `sluice serve`: its output and its exit code.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::program_test {
namespace {

using sluice::testing::eventually;
using testing::ended;
using testing::make_file;
using testing::run_sluice;
using testing::server_program;
using testing::temporary_folder;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

class Program : public ::testing::Test {
 protected:
  // Pushes a job, which must be accepted; returns its id.
  std::string push(std::vector<std::string> words) {
    words.insert(words.begin(), {"push", "--quiet"});
    const ended pushed = server_.run(words);
    EXPECT_EQ(pushed.code, 0) << pushed.err;
    return pushed.out.substr(0, pushed.out.find('\n'));
  }
  ended work(std::vector<std::string> words) {
    words.insert(words.begin(), "work");
    return server_.run(words);
  }

  temporary_folder folder_;
  server_program server_{folder_};
};

TEST_F(Program, TakesAJobFromPushToItsResult) {
  const ended pushed = server_.run({"push", "greet", R"({"name":"Ada"})"});
  EXPECT_EQ(pushed.code, 0) << pushed.err;
  EXPECT_EQ(pushed.out, "job 1 pushed\n");

  const ended worked = work({"--jobs", "1", "--exec", "cat"});
  EXPECT_EQ(worked.code, 0) << worked.err;
  EXPECT_HAS(worked.out, "job 1 greet succeeded in ");

  const ended got = server_.run({"get", "1", "--wait", "30s"});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_HAS(got.out, "job 1 greet, done\n");
  EXPECT_HAS(got.out, R"(result      {"name":"Ada"})");
}

TEST_F(Program, PushesArgsFromAFileFromStandardInputAndAsBytes) {
  const std::string file = make_file(folder_, "args.json", R"({"from":"file"})");
  push({"a", "@" + file});
  const ended piped = server_.run({"push", "b", "-"}, {.input = "[1, 2.50]"});
  EXPECT_EQ(piped.code, 0) << piped.err;
  const ended bytes = server_.run({"push", "c", "-", "--bytes"}, {.input = "no json"});
  EXPECT_EQ(bytes.code, 0) << bytes.err;
  EXPECT_HAS(server_.run({"get", "1"}).out, R"({"from":"file"})");
  EXPECT_HAS(server_.run({"get", "2"}).out, "[1, 2.50]");
  EXPECT_HAS(server_.run({"get", "3", "--json"}).out, R"("args_base64":"bm8ganNvbg==")");
}

TEST_F(Program, RejectsArgsThatAreNotJson) {
  const ended pushed = server_.run({"push", "a", "{oops"});
  EXPECT_EQ(pushed.code, 2);
  EXPECT_EQ(pushed.out, "");
  EXPECT_HAS(pushed.err, "sluice: the args are not JSON");
  EXPECT_HAS(pushed.err, "--bytes");
}

TEST_F(Program, ReportsAMissingFile) {
  EXPECT_EQ(server_.run({"push", "a", "@" + folder_.file("none")}).code, 3);
  EXPECT_EQ(server_.run({"push", "--ndjson", folder_.file("none")}).code, 3);
}

TEST_F(Program, PushesEveryLineOfAFile) {
  std::string lines;
  for (int i = 0; i < 2500; ++i) {
    lines += R"({"kind":"k","args":)" + std::to_string(i) + "}\n";
  }
  const ended pushed = server_.run({"push", "--ndjson", make_file(folder_, "jobs.ndjson", lines)});
  EXPECT_EQ(pushed.code, 0) << pushed.err;
  EXPECT_EQ(pushed.out, "2,500 jobs pushed\n");
  EXPECT_HAS(server_.run({"queues"}).out, "2,500");
  EXPECT_HAS(server_.run({"get", "2500"}).out, "args        2499\n");
}

TEST_F(Program, ReportsRefusedLinesAndPushesTheOthers) {
  const std::string lines =
      "{\"kind\":\"a\"}\n"
      "{\"kind\":\"b\",\"colour\":1}\n"
      "\n"
      "{\"kind\":\"c\"}\n";
  const ended pushed = server_.run({"push", "--ndjson", "-"}, {.input = lines});
  EXPECT_EQ(pushed.code, 2);
  EXPECT_EQ(pushed.out, "2 jobs pushed, 1 refused\n");
  EXPECT_HAS(pushed.err, "line 2: ");
  EXPECT_HAS(pushed.err, "colour");
}

TEST_F(Program, PushesNothingOfARequestWithAnInvalidLine) {
  const std::string lines = "{\"kind\":\"a\"}\n{\"kind\":\n";
  const ended pushed = server_.run({"push", "--ndjson", "-", "--all-or-nothing"}, {.input = lines});
  EXPECT_EQ(pushed.code, 2);
  EXPECT_HAS(pushed.out, "0 jobs pushed, 1 refused");
  EXPECT_EQ(server_.run({"get", "1"}).code, 3);
}

TEST_F(Program, NamesTheJobThatHasAUniqueKey) {
  push({"report", "--unique", "daily"});
  const ended again = server_.run({"push", "report", "--unique", "daily"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_HAS(again.out, "job 1 already has the unique key");
  EXPECT_HAS(server_.run({"push", "report", "--unique", "daily", "--json"}).out,
             R"("duplicate":true)");
}

TEST_F(Program, EndsWithThreeForAMissingJob) {
  const ended got = server_.run({"get", "99"});
  EXPECT_EQ(got.code, 3);
  EXPECT_EQ(got.out, "");
  EXPECT_HAS(got.err, "99");
  EXPECT_EQ(server_.run({"queues", "show", "nowhere"}).code, 3);
  EXPECT_EQ(server_.run({"jobs", "cancel", "99"}).code, 3);
}

TEST_F(Program, EndsWithFourWhenTheQueueIsFull) {
  EXPECT_EQ(server_.run({"queues", "set", "small", "--capacity", "1"}).code, 0);
  push({"a", "--queue", "small"});
  const ended full = server_.run({"push", "a", "--queue", "small"});
  EXPECT_EQ(full.code, 4);
  EXPECT_HAS(full.err, "small");
}

TEST_F(Program, EndsWithSixWhenAFullQueueThatBlocksHasNoCapacityInTime) {
  EXPECT_EQ(server_.run({"queues", "set", "small", "--capacity", "1", "--when-full", "block"}).code,
            0);
  push({"a", "--queue", "small"});
  const ended waited = server_.run({"push", "a", "--queue", "small", "--wait", "1s"});
  EXPECT_EQ(waited.code, 6) << waited.err;
  const std::string lines = R"({"kind":"a","queue":"small"})";
  const ended lined = server_.run({"push", "--ndjson", "-", "--wait", "1s"}, {.input = lines});
  EXPECT_EQ(lined.code, 6) << lined.err;
  EXPECT_HAS(lined.out, "0 jobs pushed, 1 refused; stopped at line");
}

TEST_F(Program, EndsWithFiveWhenThereIsNoServer) {
  const ended got = run_sluice({"get", "1", "--url", "http://127.0.0.1:1"});
  EXPECT_EQ(got.code, 5);
  EXPECT_HAS(got.err, "http://127.0.0.1:1");
}

TEST_F(Program, EndsWithSixWhenAJobHasNotEndedInTime) {
  push({"slow"});
  const ended got = server_.run({"get", "1", "--wait", "50ms"});
  EXPECT_EQ(got.code, 6) << got.out << got.err;
}

TEST_F(Program, EndsWithOneWhenTheAwaitedJobHasFailed) {
  push({"bad", "--attempts", "1"});
  const ended worked = work({"--jobs", "1", "--exec", "echo broken >&2; exit 7"});
  EXPECT_EQ(worked.code, 0) << worked.err;
  EXPECT_HAS(worked.out, "job 1 bad failed: ");
  const ended got = server_.run({"get", "1", "--wait", "30s"});
  EXPECT_EQ(got.code, 1);
  EXPECT_HAS(got.out, "job 1 bad, dead\n");
  EXPECT_HAS(got.out, "broken");
}

TEST_F(Program, EndsWithTwoOnBadUsage) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"fly"},
                                             {"get"},
                                             {"get", "x"},
                                             {"push"},
                                             {"work"},
                                             {"queues", "set"},
                                             {"serve", "--sync", "maybe"},
                                             {"jobs", "--state", "lost"},
                                             {"get", "1", "--nope"},
                                             {"get", "1", "--url", "ftp://x"}}) {
    const ended got = run_sluice(words);
    EXPECT_EQ(got.code, 2) << (words.empty() ? "" : words.front()) << got.err;
    EXPECT_EQ(got.out, "");
    EXPECT_HAS(got.err, "sluice");
  }
}

TEST_F(Program, ListsJobsByStateQueueAndKind) {
  push({"mail", "1"});
  push({"mail", "2", "--queue", "other"});
  push({"film", "3", "--delay", "1h"});
  const ended all = server_.run({"jobs"});
  EXPECT_EQ(lines_in(all.out), 4U) << all.out;
  EXPECT_HAS(all.out, "ID");
  const ended mails = server_.run({"jobs", "--kind", "mail", "--queue", "other"});
  EXPECT_EQ(lines_in(mails.out), 2U) << mails.out;
  EXPECT_HAS(mails.out, " 2  other");
  const ended later = server_.run({"jobs", "--state", "scheduled", "--all", "--json"});
  EXPECT_EQ(lines_in(later.out), 1U) << later.out;
  EXPECT_HAS(later.out, R"("id":3)");
  const ended none = server_.run({"jobs", "--state", "dead"});
  EXPECT_EQ(none.out, "");
  EXPECT_HAS(none.err, "no such jobs");
  const ended first = server_.run({"jobs", "--limit", "2"});
  EXPECT_EQ(lines_in(first.out), 3U) << first.out;
  EXPECT_HAS(first.err, "there are more; use --after 2");
}

TEST_F(Program, CancelsRetriesAndDeletesJobs) {
  push({"a"});
  push({"b"});
  EXPECT_HAS(server_.run({"jobs", "cancel", "1", "2"}).out, "job 1 cancelled\njob 2 cancelled\n");
  EXPECT_HAS(server_.run({"jobs", "retry", "1"}).out, "job 1 ready\n");
  const ended deleted = server_.run({"jobs", "delete", "2", "3"});
  EXPECT_EQ(deleted.code, 3) << "3 does not exist";
  EXPECT_EQ(deleted.out, "job 2 deleted\n");
  EXPECT_EQ(server_.run({"get", "2"}).code, 3);
  EXPECT_EQ(server_.run({"jobs", "retry", "1"}).code, 1) << "already ready";
}

TEST_F(Program, ShowsAndChangesQueues) {
  push({"a", "--queue", "mail"});
  const ended all = server_.run({"queues"});
  EXPECT_HAS(all.out, "QUEUE");
  EXPECT_HAS(all.out, "mail");
  const ended set =
      server_.run({"queues", "set", "mail", "--capacity", "5", "--when-full", "block"});
  EXPECT_EQ(set.code, 0) << set.err;
  EXPECT_HAS(set.out, "1 of 5 jobs");
  EXPECT_HAS(set.out, "block");
  EXPECT_HAS(server_.run({"queues", "pause", "mail"}).out, "mail paused");
  EXPECT_HAS(server_.run({"queues"}).out, "paused");
  EXPECT_FALSE(has(server_.run({"queues", "resume", "mail"}).out, "paused"));
  EXPECT_HAS(server_.run({"queues", "show", "mail", "--json"}).out, R"("name":"mail")");
}

TEST_F(Program, PurgesAQueueOnlyWithConfirmation) {
  push({"a"});
  const ended unconfirmed = server_.run({"queues", "purge", "default"});
  EXPECT_EQ(unconfirmed.code, 2);
  EXPECT_HAS(unconfirmed.err, "--yes");
  EXPECT_EQ(server_.run({"get", "1"}).code, 0);
  EXPECT_EQ(server_.run({"queues", "purge", "default", "--yes"}).out, "purged 1 job\n");
  EXPECT_EQ(server_.run({"get", "1"}).code, 3);
}

TEST_F(Program, ShowsTheServersCounters) {
  push({"a"});
  const ended stats = server_.run({"stats"});
  EXPECT_EQ(stats.code, 0) << stats.err;
  EXPECT_HAS(stats.out, "accepts pushes");
  EXPECT_HAS(stats.out, "pushed      1 (0 duplicates");
  EXPECT_HAS(server_.run({"stats", "--json"}).out, R"("pushed":1)");
}

TEST_F(Program, UsesColoursOnATerminalOnly) {
  push({"a"});
  const std::string escape = "\033[";
  EXPECT_FALSE(has(server_.run({"queues"}).out, escape));
  EXPECT_HAS(server_.run({"queues"}, {.on_terminal = true}).out, escape);
  EXPECT_FALSE(has(
      server_.run({"queues"}, {.environment = {"NO_COLOR=1"}, .on_terminal = true}).out, escape));
}

TEST_F(Program, GivesTheJobToTheCommandInItsEnvironment) {
  push({"kind-of-job", "--queue", "q"});
  const ended worked = work({"--jobs", "1", "--queue", "q", "--json", "--exec",
                             "echo $SLUICE_JOB_ID $SLUICE_JOB_KIND $SLUICE_JOB_QUEUE"});
  EXPECT_EQ(worked.code, 0) << worked.err;
  EXPECT_HAS(worked.out, R"("event":"succeeded","id":1,"kind":"kind-of-job","queue":"q")");
  EXPECT_HAS(server_.run({"get", "1"}).out, "1 kind-of-job q");
}

TEST_F(Program, RunsAProgramWithoutAShell) {
  push({"a"});
  const ended worked = work({"--jobs", "1", "--", "echo", "$HOME", "[1]"});
  EXPECT_EQ(worked.code, 0) << worked.err;
  EXPECT_HAS(server_.run({"get", "1"}).out, "$HOME [1]");
}

TEST_F(Program, RejectsAMissingProgram) {
  const ended worked = work({"--", "no-such-program-anywhere"});
  EXPECT_EQ(worked.code, 3);
  EXPECT_HAS(worked.err, "no-such-program-anywhere");
}

TEST_F(Program, StopsACommandAtItsTimeLimit) {
  std::string job;
  ended worked;
  // The server enforces the limit, too, a second later. Repeated if this machine was delayed for
  // longer than that.
  eventually([&] {
    job = push({"slow", "--time-limit", "100ms", "--attempts", "1"});
    worked = work({"--jobs", "1", "--exec", "exec tail -f /dev/null"});
    EXPECT_EQ(worked.code, 0) << worked.err;
    return !has(worked.out, "job " + job + " slow lost");
  });
  EXPECT_HAS(worked.out, "job " + job + " slow failed");
  const ended got = server_.run({"get", job, "--wait", "30s"});
  EXPECT_EQ(got.code, 1);
  EXPECT_HAS(got.out, "job " + job + " slow, dead");
}

TEST(ProgramAlone, PrintsItsVersion) {
  EXPECT_HAS(run_sluice({"version"}).out, "sluice 0.");
  EXPECT_HAS(run_sluice({"--version"}).out, "sluice 0.");
  EXPECT_HAS(run_sluice({"version", "--json"}).out, R"({"version":"0.)");
}

TEST(ProgramAlone, PrintsHelpToStandardOutput) {
  const ended help = run_sluice({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* command : {"serve", "push", "get", "work", "queues", "jobs", "stats"}) {
    EXPECT_HAS(help.out, command);
  }
}

}  // namespace
}  // namespace sluice::jobs::cli::program_test
