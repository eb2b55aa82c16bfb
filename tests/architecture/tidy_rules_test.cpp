// Each tidy rule, shown to object to what it is for and to leave its look-alikes alone.
#include "tests/architecture/tidy_rules.hpp"

#include <gtest/gtest.h>

namespace sluice::architecture::tidy_rules_test {
namespace {

std::string verdict(findings (*rule)(const source_tree&), std::string path, std::string text) {
  return to_string(rule({{std::move(path), std::move(text)}}));
}

std::string lines(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "x\n";
  return text;
}

TEST(CodeOf, KeepsLinesAndColumnsAndBlanksCommentsAndLiterals) {
  EXPECT_EQ(code_of("a; // b\nc;"), "a;     \nc;");
  EXPECT_EQ(code_of("a /* b\n c */ d"), "a     \n      d");
  EXPECT_EQ(code_of("f(\"a\\\"b\", 'c');"), "f(\"    \", ' ');");
  EXPECT_EQ(code_of("R\"x(a)\" // )x\"; b"), "R\"           \"; b");
  EXPECT_EQ(code_of("1'000'000 + \"a\""), "1'000'000 + \" \"");
  EXPECT_EQ(code_of("\"// no comment\"; a"), "\"             \"; a");
}

TEST(TidyForm, ObjectsToTheHundredAndFirstColumn) {
  const std::string hundred(100, 'x');
  EXPECT_EQ(verdict(check_form, "a.cpp", "\n" + hundred + "\n"), "");
  EXPECT_EQ(verdict(check_form, "a.cpp", "\n" + hundred + "x\n"),
            "a.cpp:2: 101 columns, at most 100 are allowed\n");
  EXPECT_EQ(verdict(check_form, "a.md", hundred + "x\n"), "");
}

TEST(TidyForm, CountsCharactersRatherThanBytes) {
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "\xC3\xBC";
  EXPECT_EQ(verdict(check_form, "a.cpp", hundred + "\n"), "");
  EXPECT_NE(verdict(check_form, "a.cpp", hundred + "\xC3\xBC\n"), "");
}

TEST(TidyForm, ObjectsToTabsExceptInGo) {
  EXPECT_EQ(verdict(check_form, "a.cpp", "\tx\n"), "a.cpp:1: a tab\n");
  EXPECT_EQ(verdict(check_form, "a.go", "\tx\n"), "");
}

TEST(TidyForm, ObjectsToTrailingWhitespace) {
  EXPECT_EQ(verdict(check_form, "a.md", "x\nx \n"), "a.md:2: trailing whitespace\n");
  EXPECT_EQ(verdict(check_form, "a.cpp", "x\r\n"), "a.cpp:1: trailing whitespace\n");
}

TEST(TidyForm, ObjectsToAMissingNewlineAtTheEnd) {
  EXPECT_EQ(verdict(check_form, "a.cpp", "x"), "a.cpp:1: no newline at the end\n");
  EXPECT_EQ(verdict(check_form, "a.cpp", ""), "");
}

TEST(TidySize, ObjectsToAFileThatIsTwoIdeas) {
  EXPECT_EQ(verdict(check_size, "sluice/low/a.hpp", lines(400)), "");
  EXPECT_EQ(verdict(check_size, "sluice/low/a.hpp", lines(401)),
            "sluice/low/a.hpp:0: 401 lines, at most 400 are allowed: this is two ideas\n");
  EXPECT_EQ(verdict(check_size, "sluice/low/a.cpp", lines(800)), "");
  EXPECT_NE(verdict(check_size, "sluice/low/a.cpp", lines(801)), "");
  EXPECT_EQ(verdict(check_size, "sluice/low/a_test.cpp", lines(1200)), "");
  EXPECT_NE(verdict(check_size, "sluice/low/a_test.cpp", lines(1201)), "");
  EXPECT_EQ(verdict(check_size, "sluice/low/testing/a.hpp", lines(1200)), "");
  EXPECT_EQ(verdict(check_size, "docs/a.md", lines(5000)), "");
}

TEST(TidyLeftovers, ObjectToMarksForLater) {
  // Put together here, so that this file has none of them.
  const std::string todo = std::string("TO") + "DO";
  const std::string fixme = std::string("FIX") + "ME";
  const std::string crosses(3, 'X');
  EXPECT_EQ(verdict(check_leftovers, "a.cpp", "\n// " + todo + ": x\n"),
            "a.cpp:2: " + todo + ": do it, or write it down elsewhere\n");
  EXPECT_NE(verdict(check_leftovers, "a.md", fixme + "\n"), "");
  EXPECT_NE(verdict(check_leftovers, "scripts/a", "# " + crosses + "\n"), "");
  EXPECT_EQ(verdict(check_leftovers, "scripts/a", "mktemp a." + crosses + crosses + "\n"), "");
}

TEST(TidySeam, ObjectsToTheStandardLibrarysAtomicsLocksAndThreads) {
  for (const std::string banned :
       {"std::atomic<int> a;", "std::atomic_thread_fence(x);", "std::mutex m;",
        "std::condition_variable_any c;", "std::this_thread::yield();", "std::jthread t;",
        "syscall(SYS_futex, 0);", "std::chrono::steady_clock::now();", "std::once_flag f;",
        "__atomic_load_n(p, 0);", "pthread_self();"}) {
    EXPECT_NE(verdict(check_seam, "sluice/queue/a.hpp", banned + "\n"), "") << banned;
    EXPECT_NE(verdict(check_seam, "sluice/sync/detail/a.cpp", banned + "\n"), "") << banned;
    EXPECT_EQ(verdict(check_seam, "sluice/base/a.hpp", banned + "\n"), "") << banned;
    EXPECT_EQ(verdict(check_seam, "sluice/sim/detail/a.cpp", banned + "\n"), "") << banned;
    EXPECT_EQ(verdict(check_seam, "sluice/queue/a_test.cpp", banned + "\n"), "") << banned;
    EXPECT_EQ(verdict(check_seam, "sluice/queue/testing/a.hpp", banned + "\n"), "") << banned;
    EXPECT_EQ(verdict(check_seam, "benchmarks/queue/a.cpp", banned + "\n"), "") << banned;
  }
}

TEST(TidySeam, HoldsForTheJobServerToo) {
  for (const std::string banned :
       {"std::atomic<int> a;", "std::mutex m;", "std::jthread t;", "pthread_mutex_lock(&m);",
        "std::chrono::steady_clock::now();", "std::chrono::system_clock::now();"}) {
    EXPECT_NE(verdict(check_seam, "jobs/engine/a.cpp", banned + "\n"), "") << banned;
    EXPECT_NE(verdict(check_seam, "jobs/store/sqlite/detail/a.hpp", banned + "\n"), "") << banned;
    EXPECT_EQ(verdict(check_seam, "jobs/engine/a_test.cpp", banned + "\n"), "") << banned;
    EXPECT_EQ(verdict(check_seam, "jobs/store/testing/a.hpp", banned + "\n"), "") << banned;
  }
}

TEST(TidySeam, LetsOneFileReadTheWallClockAndNothingElse) {
  const std::string wall = "std::chrono::system_clock::now();\n";
  EXPECT_EQ(verdict(check_seam, "jobs/model/time.cpp", wall), "");
  EXPECT_NE(verdict(check_seam, "jobs/model/job.cpp", wall), "");
  EXPECT_NE(verdict(check_seam, "sluice/queue/time.cpp", wall), "");
  EXPECT_NE(verdict(check_seam, "jobs/model/time.cpp", "std::mutex m;\n"), "");
}

TEST(TidySeam, LetsTheJobServerTalkToTheKernelAboutProcessesAndSignals) {
  for (const std::string call : {"pthread_sigmask(SIG_BLOCK, &set, nullptr);",
                                 "syscall(SYS_pidfd_open, pid, 0);", "::kill(pid, SIGTERM);"}) {
    EXPECT_EQ(verdict(check_seam, "jobs/worker/a.cpp", call + "\n"), "") << call;
  }
  EXPECT_NE(verdict(check_seam, "sluice/sync/a.cpp", "syscall(SYS_pidfd_open, pid, 0);\n"), "");
  EXPECT_NE(verdict(check_seam, "jobs/worker/a.cpp", "syscall(SYS_futex, &word);\n"), "");
}

TEST(TidySeam, LeavesProseAndLookAlikesAlone) {
  EXPECT_EQ(verdict(check_seam, "sluice/sync/a.hpp",
                    "// smaller than std::mutex\n"
                    "check(ok, \"like std::latch\");\n"
                    "sluice::atomic<int> a;\n"
                    "std::memory_order_acquire;\n"
                    "std::lock_guard guard(m);\n"
                    "seam::now();\n"),
            "");
}

TEST(TidySleep, ObjectsToATestThatSleeps) {
  for (const std::string sleep : {"std::this_thread::sleep_for(1ms);", "usleep(10);",
                                  "std::this_thread::sleep_until(t);", "::sleep(1);"}) {
    EXPECT_NE(verdict(check_sleep, "sluice/queue/a_test.cpp", sleep + "\n"), "") << sleep;
    EXPECT_NE(verdict(check_sleep, "tests/stress/a.cpp", sleep + "\n"), "") << sleep;
    EXPECT_EQ(verdict(check_sleep, "benchmarks/a.cpp", sleep + "\n"), "") << sleep;
    EXPECT_EQ(verdict(check_sleep, "sluice/sim/a_test.cpp", sleep + "\n"), "") << sleep;
  }
  EXPECT_EQ(verdict(check_sleep, "sluice/queue/a_test.cpp", "// sleep_for is banned\n"), "");
  EXPECT_EQ(verdict(check_sleep, "sluice/queue/a_test.cpp", "co_await sleep_for(1h);\n"), "")
      << "a timer that a coroutine awaits is no sleep";
}

}  // namespace
}  // namespace sluice::architecture::tidy_rules_test
