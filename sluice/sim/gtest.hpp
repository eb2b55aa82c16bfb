#pragma once

// Defines a GoogleTest whose body is explored: it passes if no schedule fails, and otherwise shows
// the smallest failing schedule.
//
// The body runs once per schedule. sim::check ends a schedule immediately. GoogleTest's EXPECT and
// ASSERT work too, on every thread of the body: the first failure is that of the schedule. The
// options are those of sim::explore, written as in a designated initializer. A failure prints the
// command that replays it: SLUICE_SIM_TRACE in the environment, set to the trace, and a filter for
// the test, because every test that runs replays the trace.
//
// Limits: use SCOPED_TRACE only outside of the body, because it leaves memory allocated; GTEST_SKIP
// in a body has no effect.
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

// Receives failed expectations in GoogleTest's place during its life, from all threads of a
// schedule (GoogleTest sees one thread). GoogleTest would store them in the schedule's memory,
// where they count as a leak and are freed with it. So they are stored here, in a fixed buffer.
class expectations final : public ::testing::ScopedFakeTestPartResultReporter {
 public:
  expectations() : ScopedFakeTestPartResultReporter(INTERCEPT_ONLY_CURRENT_THREAD, nullptr) {
    // GoogleTest creates its list of traces on first use: this must not happen in a schedule.
    const ::testing::ScopedTrace made(__FILE__, __LINE__, "");
  }

  void ReportTestPartResult(const ::testing::TestPartResult& heard) override {
    if (!heard.failed() || failed_) return;
    failed_ = true;
    std::snprintf(text_.data(), text_.size(), "an expectation (%s:%d)\n%s",
                  heard.file_name() != nullptr ? heard.file_name() : "unknown file",
                  heard.line_number(), heard.message());
  }

  // Returns the failure since the last call, or "".
  std::string take() {
    const bool failed = failed_;
    failed_ = false;
    return failed ? text_.data() : "";
  }

 private:
  bool failed_ = false;
  std::array<char, 4096> text_{};
};

inline result explore_with_expectations(options o, const std::function<void()>& body) {
  expectations heard;
  o.also_failed = [&heard] { return heard.take(); };
  return explore(o, body);
}

// Runs the exploration and reports a failure at the line of the macro.
inline void explore_as_test(options o, const char* name, const char* file, int line,
                            void (*body)()) {
  o.name = name;
  if (const char* const trace = std::getenv("SLUICE_SIM_TRACE")) {
    o.search = search::replay;
    o.trace = trace;
  }
  const auto found = explore_with_expectations(o, body);
  auto text = found.text();
  if (!found.failed()) {
    std::printf("%s\n", text.c_str());
    return;
  }
  // A trace that is too long to be shown is too long for a command line.
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
