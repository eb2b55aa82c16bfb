#pragma once

// A GoogleTest whose body is explored: it passes when no schedule fails, and shows the smallest one
// that does.
//
// The body runs once per schedule. sim::check ends a schedule at once. GoogleTest's own EXPECT and
// ASSERT work as well, on every thread of the body: the first of them that fails in a schedule is
// what that schedule failed with. The options are those of sim::explore, written as in a designated
// initialiser. A failure prints the command that replays it: SLUICE_SIM_TRACE in the environment,
// set to the trace, with a filter for the test, as every test that is run replays the trace.
//
// Limits: SCOPED_TRACE is for the outside of a body, as it leaves memory behind; GTEST_SKIP in a
// body skips nothing.
//
//     SLUICE_EXPLORE(Queue, HandsOver, .schedules = 10'000) {
//       sluice::bounded_queue<int> q(1);
//       std::jthread maker([&] { (void)q.push(1); });
//       EXPECT_EQ(*q.pop(), 1);
//     }

#include <errno.h>  // program_invocation_name
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "sluice/sim/explore.hpp"

namespace sluice::sim::detail {

// While it lives, it hears of failed expectations in GoogleTest's place: of all threads of a
// schedule, as they are one to GoogleTest. GoogleTest keeps what it hears in memory that would be
// the schedule's: counted as a leak, and gone with it. So it is kept here, where nothing is
// allocated.
class expectations final : public ::testing::ScopedFakeTestPartResultReporter {
 public:
  expectations() : ScopedFakeTestPartResultReporter(INTERCEPT_ONLY_CURRENT_THREAD, nullptr) {
    // GoogleTest makes its list of traces when it is first asked for: not in a schedule.
    const ::testing::ScopedTrace made(__FILE__, __LINE__, "");
  }

  void ReportTestPartResult(const ::testing::TestPartResult& heard) override {
    if (!heard.failed() || failed_) return;
    failed_ = true;
    std::snprintf(text_.data(), text_.size(), "an expectation (%s:%d)\n%s",
                  heard.file_name() != nullptr ? heard.file_name() : "unknown file",
                  heard.line_number(), heard.message());
  }

  // What failed since it was last asked, or nothing.
  std::string take() {
    const bool failed = failed_;
    failed_ = false;
    return failed ? text_.data() : "";
  }

 private:
  bool failed_ = false;
  std::array<char, 4096> text_{};
};

inline result explore_with_expectations(options how, const std::function<void()>& body) {
  expectations heard;
  how.also_failed = [&heard] { return heard.take(); };
  return explore(how, body);
}

// Fails at the place of the macro: what failed inside is part of the text.
inline void explore_as_test(options how, const char* name, const char* file, int line,
                            void (*body)()) {
  how.name = name;
  if (const char* const trace = std::getenv("SLUICE_SIM_TRACE")) {
    how.how = search::replay;
    how.trace = trace;
  }
  const auto found = explore_with_expectations(how, body);
  auto text = found.text();
  if (!found.failed()) {
    std::printf("%s\n", text.c_str());
    return;
  }
  // One that is too long to be shown is too long for a command as well.
  if (text.find(found.trace) != std::string::npos) {
    text += "or with SLUICE_SIM_TRACE=" + found.trace + " " + program_invocation_name +
            " --gtest_filter=" + name + "\n";
  }
  ADD_FAILURE_AT(file, line) << text;
}

}  // namespace sluice::sim::detail

#define SLUICE_EXPLORE(Suite, Name, ...)                                                           \
  static void sluice_explored_##Suite##_##Name();                                                  \
  TEST(Suite, Name) {                                                                              \
    ::sluice::sim::detail::explore_as_test(::sluice::sim::options{__VA_ARGS__}, #Suite "." #Name,  \
                                           __FILE__, __LINE__, &sluice_explored_##Suite##_##Name); \
  }                                                                                                \
  static void sluice_explored_##Suite##_##Name()
