// Job options of the command line, observed in the commands that a real worker ran.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"

namespace sluice::jobs::cli::work_test {
namespace {

using testing::ended;
using testing::make_file;
using testing::server_program;
using testing::temporary_folder;
using testing::text_of;

class WorkedOff : public ::testing::Test {
 protected:
  // Runs a command that must succeed; returns its output.
  std::string did(const std::vector<std::string>& words, const std::string& input = {}) {
    const ended end = server_.run(words, {.input = input});
    EXPECT_EQ(end.code, 0) << words.front() << ": " << end.err;
    return end.out;
  }
  // Runs this many jobs, several at a time, each with this shell command. `say` in it appends a
  // line to the text that `said` returns.
  void work(int jobs, const std::string& script, const std::string& queue = "default") {
    const std::string say = "say() { echo \"$*\" >> '" + folder_.file("said") + "'; }; ";
    did({"work", "--jobs", std::to_string(jobs), "--concurrency", "4", "--queue", queue, "--quiet",
         "--exec", say + script});
  }
  std::vector<std::string> logged() const {
    std::istringstream lines(text_of(folder_.file("said")));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    return all;
  }

  temporary_folder folder_;
  server_program server_{folder_};
};

TEST_F(WorkedOff, JobsOfOneKeyRunOneByOneInOrderBesideThoseOfAnother) {
  constexpr int of_each = 5;
  std::string lines;
  for (int i = 0; i < of_each; ++i) {
    for (const std::string key : {"a", "b"}) {
      lines.append("{\"kind\":\"").append(key).append("\",\"key\":\"").append(key).append("\"}\n");
    }
  }
  did({"push", "--ndjson", "-"}, lines);
  // Both keys must have a running job before either ends: they run side by side. The delay would
  // reveal a second running job of the same key.
  const std::string here = folder_.file("began-");
  work(2 * of_each, "say began $SLUICE_JOB_KIND $SLUICE_JOB_ID; touch '" + here +
                        "'$SLUICE_JOB_KIND; until [ -e '" + here + "a' ] && [ -e '" + here +
                        "b' ]; do sleep 0.01; done; sleep 0.02; say ended $SLUICE_JOB_KIND");
  std::set<std::string> running;
  std::map<std::string, int> last;
  int began = 0;
  for (const std::string& line : logged()) {
    std::istringstream words(line);
    std::string step, key;
    int id = 0;
    words >> step >> key >> id;
    if (step == "ended") {
      EXPECT_EQ(running.erase(key), 1U) << line;
      continue;
    }
    ++began;
    EXPECT_TRUE(running.insert(key).second) << line << ": another of the key was not done";
    EXPECT_GT(id, last[key]) << line << ": not in order of arrival";
    last[key] = id;
  }
  EXPECT_EQ(began, 2 * of_each);
  EXPECT_TRUE(running.empty());
}

TEST_F(WorkedOff, AJobRunsAfterItsDependency) {
  did({"push", "first"});
  did({"push", "second", "--after", "1", "--priority", "10"});
  did({"push", "never", "--after", "1:failure", "--priority", "10"});
  work(2, "say began $SLUICE_JOB_KIND; sleep 0.05; say ended $SLUICE_JOB_KIND");
  EXPECT_EQ(logged(), (std::vector<std::string>{"began first", "ended first", "began second",
                                                "ended second"}));
}

TEST_F(WorkedOff, TheCallbackOfABatchRunsWhenAllItsJobsAreDone) {
  const std::string file = make_file(folder_, "batch.json",
                                     R"({"jobs": [{"kind": "a"}, {"kind": "a"}, {"kind": "a"}],
                                         "on_success": {"kind": "party", "priority": 10},
                                         "on_failure": {"kind": "sorry", "priority": 10}})");
  did({"batch", "create", "-f", file});
  work(4, "sleep 0.02; say $SLUICE_JOB_KIND");
  EXPECT_EQ(logged(), (std::vector<std::string>{"a", "a", "a", "party"}));
}

TEST_F(WorkedOff, TheOtherCallbackOfABatchRunsWhenAJobHasFailed) {
  const std::string file = make_file(folder_, "batch.json",
                                     R"({"jobs": [{"kind": "bad", "retry": {"attempts": 1}}],
                                         "on_success": {"kind": "party"},
                                         "on_failure": {"kind": "sorry"}})");
  did({"batch", "create", "-f", file});
  work(2, "say $SLUICE_JOB_KIND; [ $SLUICE_JOB_KIND != bad ]");
  EXPECT_EQ(logged(), (std::vector<std::string>{"bad", "sorry"}));
}

TEST_F(WorkedOff, ACronEntryRunsOnSchedule) {
  did({"cron", "set", "tick", "* * * * * *", "beat", R"({"a":1})", "--queue", "beats"});
  work(2, "say $SLUICE_JOB_KIND $(cat)", "beats");
  const auto all = logged();
  ASSERT_GE(all.size(), 2U);
  for (const std::string& line : all) EXPECT_EQ(line, R"(beat {"a":1})");
}

TEST_F(WorkedOff, TheRateOfAQueueDelaysItsJobs) {
  constexpr int jobs = 6;
  did({"queues", "set", "mail", "--rate", "5/s", "--burst", "1"});
  for (int i = 0; i < jobs; ++i) did({"push", "a", "--queue", "mail"});
  const auto began = std::chrono::steady_clock::now();
  work(jobs, "say done", "mail");
  // The first starts at once, each of the others 200 ms after the previous; times are whole
  // milliseconds.
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(990));
  EXPECT_EQ(logged().size(), static_cast<std::size_t>(jobs));
}

}  // namespace
}  // namespace sluice::jobs::cli::work_test
