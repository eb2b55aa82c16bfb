// The freezer changes the schedule of a program and nothing else.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::freezing::freeze_test {
namespace {

using jobs::cli::testing::ended;
using jobs::cli::testing::program;
using jobs::cli::testing::start_options;
using sluice::testing::eventually;
using words = std::vector<std::string>;  // of a command

// The words of `sluice_freeze` for one of the programs in subject.cpp.
words of_subject(const words& options, const words& subject) {
  words all = options;
  all.emplace_back(SLUICE_FREEZE_SUBJECT);
  all.insert(all.end(), subject.begin(), subject.end());
  return all;
}

ended freeze(const words& subject, const words& options = {"--seed", "1"},
             const std::string& input = "") {
  return program(of_subject(options, subject), start_options{.input = input}).wait();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The number behind the words, as in "at most 4 at once".
int number_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + before.size());
}

TEST(freeze_test, PassesOnTheExitCode) {
  EXPECT_EQ(freeze({"exit", "0"}).code, 0);
  EXPECT_EQ(freeze({"exit", "3"}).code, 3);
  EXPECT_EQ(freeze({"exit", "255"}).code, 255);
}

TEST(freeze_test, EndsByTheSignalThatEndedTheProgram) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGKILL, SIGTERM}) {
    words arguments =
        of_subject({SLUICE_PROGRAM, "--seed", "1"}, {"raise", std::to_string(signal)});
    std::vector<char*> pointers;
    for (std::string& word : arguments) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t pid = 0;
    ASSERT_EQ(::posix_spawn(&pid, SLUICE_PROGRAM, nullptr, nullptr, pointers.data(), ::environ), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status)) << signal;
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_FALSE(WCOREDUMP(status)) << "of the freezer";
  }
}

TEST(freeze_test, LeavesInputAndOutputAlone) {
  const std::string input(100'000, 'x');
  const ended e = freeze({"copy"}, {"--seed", "1"}, input);
  EXPECT_EQ(e.code, 0);
  EXPECT_EQ(e.out, input);
  EXPECT_EQ(e.err, "copied\n");
}

TEST(freeze_test, PrintsCountsOfASuccessOnlyOnRequest) {
  EXPECT_EQ(freeze({"exit", "0"}).err, "");
  const ended e = freeze({"exit", "0"}, {"--seed", "5", "--verbose"});
  EXPECT_TRUE(contains(e.err, " passed under seed 5; 1 threads seen, 0 freezes")) << e.err;
}

TEST(freeze_test, PrintsSeedAndCommandOfAFailure) {
  const ended e = freeze({"exit", "3", "a b", "it's"}, {"--seed", "41", "--longest-ms", "20"});
  const std::string program = SLUICE_PROGRAM;
  const std::string subject = SLUICE_FREEZE_SUBJECT;
  EXPECT_TRUE(
      contains(e.err, "freeze: " + subject + " failed under seed 41; run again with: " + program +
                          " --seed 41 --longest-ms 20 " + subject + " exit 3 'a b' 'it'\\''s'\n"))
      << e.err;
  EXPECT_TRUE(contains(e.err, "\nfreeze: exit code 3; 1 threads seen, ")) << e.err;
}

TEST(freeze_test, FreezesRunningThreads) {
  // Each subject ends only when each of its threads was seen stopped.
  for (const std::string seed : {"1", "2"}) {
    const ended e = freeze({"freezes", "10", "3"}, {"--seed", seed, "--verbose"});
    EXPECT_EQ(e.code, 0);
    EXPECT_GE(number_after(e.err, " threads seen, "), 3) << e.err;
  }
}

TEST(freeze_test, FreezesAtMostTheShareAtOnce) {
  // With the watcher there are 5 threads.
  const ended half = freeze({"crowds", "4", "2"}, {"--seed", "2", "--verbose"});
  EXPECT_EQ(half.code, 0);
  EXPECT_EQ(number_after(half.err, "at most "), 2) << half.err;
  const ended few = freeze({"crowds", "4", "1"}, {"--seed", "2", "--share", "20", "--verbose"});
  EXPECT_EQ(few.code, 0);
  EXPECT_EQ(number_after(few.err, "at most "), 1) << few.err;
}

TEST(freeze_test, NeverFreezesTheOnlyThread) {
  const ended e = freeze({"exit", "0"}, {"--seed", "1", "--share", "90", "--verbose"});
  EXPECT_EQ(number_after(e.err, " threads seen, "), 0) << e.err;
}

TEST(freeze_test, DeliversEverySignal) {
  EXPECT_EQ(freeze({"signals", "300"}).code, 0);
}

TEST(freeze_test, LeavesJobControlToTheProgram) {
  EXPECT_EQ(freeze({"stop"}).code, 0);
}

TEST(freeze_test, FollowsExecFromAnyThread) {
  EXPECT_EQ(freeze({"exec"}).code, 7);
}

TEST(freeze_test, FreezesChildrenUnlessForbidden) {
  EXPECT_TRUE(contains(freeze({"stop"}, {"--seed", "1", "--verbose"}).err, "; 2 threads seen"));
  const ended e = freeze({"stop"}, {"--seed", "1", "--verbose", "--children", "off"});
  EXPECT_TRUE(contains(e.err, "; 1 threads seen")) << e.err;
}

TEST(freeze_test, LeavesAChildThatOutlivesTheProgram) {
  for (const std::string children : {"on", "off"}) {
    const ended e = freeze({"leave"}, {"--seed", "1", "--children", children});
    EXPECT_EQ(e.code, 0);
    const pid_t child = std::atoi(e.out.c_str());
    ASSERT_GT(child, 1) << e.out;
    EXPECT_EQ(::kill(child, SIGKILL), 0) << "--children " << children;
  }
}

TEST(freeze_test, KillsTheProgramWhenItIsTerminated) {
  program freezer(of_subject({"--seed", "1"}, {"block"}));
  eventually([&] { return freezer.out().ends_with('\n'); }, "the subject's process id");
  const pid_t subject = std::atoi(freezer.out().c_str());
  ASSERT_GT(subject, 1);
  freezer.signal(SIGTERM);
  const ended e = freezer.wait();
  EXPECT_EQ(e.code, 128 + SIGTERM);
  EXPECT_EQ(e.err, "");
  EXPECT_EQ(::kill(subject, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(freeze_test, DrawsItsDecisionsFromTheSeed) {
  const auto plan = [](const std::string& seed) {
    return program({"--seed", seed, "--plan", "1000"}).wait().out;
  };
  const std::string once = plan("7");
  EXPECT_GT(once.size(), 1000U);
  EXPECT_EQ(plan("7"), once);
  EXPECT_NE(plan("8"), once);
}

TEST(freeze_test, FindsALostWakeUp) {
  int seed = 1;
  while (seed < 20 && freeze({"race", "300"}, {"--seed", std::to_string(seed)}).code == 0) ++seed;
  EXPECT_LT(seed, 20);
  std::printf("found under seed %d\n", seed);
}

// Run by the test below, and without a freezer by themselves.
TEST(freeze_death_test, AbortsInAFork) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(std::abort(), ::testing::KilledBySignal(SIGABRT), "");
}

TEST(freeze_death_test, AbortsInAThreadsafeFork) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::abort(), ::testing::KilledBySignal(SIGABRT), "");
}

TEST(freeze_test, RunsDeathTests) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const std::string seed : {"1", "2"}) {
    const ended e = program({"--seed", seed, self, "--gtest_filter=freeze_death_test.*"}).wait();
    EXPECT_EQ(e.code, 0) << e.out << e.err;
    EXPECT_TRUE(contains(e.out, "[  PASSED  ] 2 tests")) << e.out;
  }
}

TEST(freeze_test, RefusesWrongUsage) {
  const std::vector<words> wrong = {
      {},
      {"--seed", "1"},
      {"true"},
      {"--seed", "-1", "true"},
      {"--seed", "x", "true"},
      {"--seed", "1", "--share", "100", "true"},
      {"--seed", "1", "--longest-ms", "0", "true"},
      {"--seed", "1", "--children", "maybe", "true"},
      {"--seed", "1", "--unknown", "1", "true"},
      {"--seed"},
  };
  for (const words& w : wrong) {
    const ended e = program(w).wait();
    EXPECT_EQ(e.code, 2) << ::testing::PrintToString(w);
    EXPECT_TRUE(contains(e.err, "usage: sluice_freeze")) << e.err;
  }
}

TEST(freeze_test, ReportsAProgramThatCannotRun) {
  const ended e = program({"--seed", "1", "/no/such/program"}).wait();
  EXPECT_EQ(e.code, 127);
  EXPECT_EQ(e.err, "sluice_freeze: cannot run /no/such/program: No such file or directory\n");
}

// The program of the inner freezer has a tracer already.
TEST(freeze_test, ReportsThatTracingIsNotPermitted) {
  const ended e =
      program({"--seed", "1", SLUICE_PROGRAM, "--seed", "1", SLUICE_FREEZE_SUBJECT, "exit", "0"})
          .wait();
  EXPECT_EQ(e.code, 2);
  EXPECT_TRUE(contains(e.err, "ptrace is not permitted (Operation not permitted)")) << e.err;
  EXPECT_TRUE(contains(e.err, "kernel.yama.ptrace_scope")) << e.err;
}

}  // namespace
}  // namespace sluice::freezing::freeze_test
