// Progress and log lines, from a handler to the source.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "jobs/worker/detail/attempt_notes.hpp"
#include "jobs/worker/detail/error_lines.hpp"
#include "jobs/worker/testing/worker_fixture.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::worker_notes_test {
namespace {

using namespace std::chrono_literals;
using detail::attempt_notes;
using sluice::testing::eventually;

using WorkerNotes = testing::worker_test;
using strings = std::vector<std::string>;

TEST_F(WorkerNotes, AreReportedBeforeTheEnd) {
  w().handle("k", [](job_context& ctx) {
    ctx.log("one");
    ctx.log("two\nthree\n");
    ctx.progress(50, "half");
    ctx.progress(100, "all");
  });
  w().start();
  const job_id id = source_.offer({.kind = "k"});
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
  strings lines;
  for (const strings& call : source_.logs(id)) lines.insert(lines.end(), call.begin(), call.end());
  EXPECT_EQ(lines, (strings{"one", "two", "three"}));
  ASSERT_FALSE(source_.reports(id).empty());
  EXPECT_EQ(source_.reports(id).back(), (progress{100, "all"}));
}

TEST_F(WorkerNotes, AreReportedAtOnceAndThenAtTheReportInterval) {
  event first;
  event second;
  event go_on;
  w().handle("k", [&](job_context& ctx) {
    ctx.progress(1);
    first.wait();
    ctx.progress(2);
    ctx.progress(3);
    ctx.log("late");
    second.set();
    go_on.wait();
  });
  w().start();
  const job_id id = source_.offer({.kind = "k"});
  eventually([&] { return source_.reports(id).size() == 1; }, "the first report");
  const auto sent_at = time_.timers().now();
  first.set();
  second.wait();
  const auto due = sent_at + options_.report_every;
  eventually([&] { return time_.timers().earliest() <= due; }, "the report to be delayed");
  EXPECT_EQ(source_.reports(id).size(), 1U);
  EXPECT_TRUE(source_.logs(id).empty());
  time_.advance(options_.report_every);
  eventually([&] { return source_.reports(id).size() == 2 && source_.logs(id).size() == 1; },
             "the delayed report");
  EXPECT_EQ(source_.reports(id).back(), (progress{3, ""}));
  EXPECT_EQ(source_.logs(id).back(), (strings{"late"}));
  go_on.set();
  wait_until_ended(id);
}

TEST_F(WorkerNotes, DelayTheEndUntilTheirReply) {
  source_.hold_notes();
  w().handle("k", [](job_context& ctx) {
    ctx.progress(10);
    ctx.log("line");
  });
  w().start();
  const job_id id = source_.offer({.kind = "k"});
  eventually([&] { return !source_.reports(id).empty() && w().stats().running == 0; },
             "the handler to end");
  EXPECT_EQ(source_.ended(id), "");
  source_.answer_notes();
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
  EXPECT_EQ(source_.logs(id), (std::vector<strings>{{"line"}}));
}

TEST_F(WorkerNotes, AreReportedForAFailedAttempt) {
  w().handle("k", [](job_context& ctx) {
    ctx.log("before the fall");
    throw std::runtime_error("fell");
  });
  w().start();
  const job_id id = source_.offer({.kind = "k"});
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "failed");
  EXPECT_EQ(source_.logs(id), (std::vector<strings>{{"before the fall"}}));
}

TEST_F(WorkerNotes, DoNotDelayTheEndWhenTheyAreRejected) {
  event go_on;
  w().handle("k", [&](job_context& ctx) {
    go_on.wait();
    ctx.progress(10);
  });
  w().start();
  const job_id id = source_.offer({.kind = "k"});
  eventually([&] { return w().stats().running == 1; }, "the handler to start");
  source_.lose(id);
  go_on.set();
  eventually([&] { return count(worker_event::event_kind::lost) == 1; }, "the lost event");
  EXPECT_TRUE(source_.reports(id).empty());
}

TEST(AttemptNotes, KeepTheLastProgressWithinItsBounds) {
  attempt_notes notes;
  EXPECT_TRUE(notes.is_empty());
  notes.note({-5, ""});
  EXPECT_EQ(notes.take().progress, (progress{0, ""}));
  notes.note({std::numeric_limits<double>::quiet_NaN(), "?"});
  EXPECT_EQ(notes.take().progress, (progress{0, "?"}));
  notes.note({50, "a"});
  notes.note({500, "b"});
  EXPECT_EQ(notes.take().progress, (progress{100, "b"}));
  EXPECT_TRUE(notes.is_empty());
  notes.note({1, std::string(limits::progress_bytes_max - 1, 'x') + "\xC3\xA9"});
  EXPECT_EQ(notes.take().progress->text, std::string(limits::progress_bytes_max - 1, 'x'));
}

TEST(AttemptNotes, WakeTheWorkerOnceUntilTheyAreTaken) {
  attempt_notes notes;
  int woken = 0;
  notes.on_available([&] { ++woken; });
  notes.note({1, ""});
  notes.note({2, ""});
  notes.note_lines("a");
  EXPECT_EQ(woken, 1);
  const auto taken = notes.take();
  EXPECT_EQ(taken.progress->percent, 2);
  EXPECT_EQ(taken.lines, (strings{"a"}));
  notes.note_lines("b");
  EXPECT_EQ(woken, 2);
}

TEST(AttemptNotes, CountDroppedLines) {
  attempt_notes notes;
  for (std::size_t i = 0; i < limits::log_lines_at_once + 4; ++i) notes.note_lines("x");
  auto lines = notes.take().lines;
  ASSERT_EQ(lines.size(), limits::log_lines_at_once);
  EXPECT_EQ(lines.back(), "(5 lines were dropped: written faster than they could be sent)");
  // Limited by bytes.
  const std::string long_line(limits::log_line_bytes_max + 100, 'y');
  for (int i = 0; i < 200; ++i) notes.note_lines(long_line);
  lines = notes.take().lines;
  EXPECT_EQ(lines.size(), attempt_notes::bytes_max / limits::log_line_bytes_max + 1);
  EXPECT_EQ(lines.front().size(), limits::log_line_bytes_max);
}

TEST(ErrorLines, DistinguishProgressFromOtherLines) {
  using detail::progress_of;
  EXPECT_EQ(progress_of("sluice:progress 40 resizing it"), (progress{40, "resizing it"}));
  EXPECT_EQ(progress_of("sluice:progress 12.5%"), (progress{12.5, ""}));
  EXPECT_EQ(progress_of("sluice:progress 100\r"), (progress{100, ""}));
  for (const std::string_view other :
       {"", "sluice:progress", "sluice:progress ", "sluice:progress 101", "sluice:progress -1",
        "sluice:progress nan", "sluice:progress 5x", " sluice:progress 5", "progress 5"}) {
    EXPECT_FALSE(progress_of(other)) << other;
  }
}

TEST(ErrorLines, AreWholeLinesHoweverTheyAreSplit) {
  job_context ctx(leased_job{.job = std::make_shared<job>(), .key = 1});
  detail::error_lines lines(ctx, detail::lines_to::log);
  lines.add("one\ntw");
  lines.add("o\n\nsluice:prog");
  lines.add("ress 7 seven\nlast");
  lines.end();
  const auto notes = ctx.notes().take();
  EXPECT_EQ(notes.lines, (strings{"one", "two", "", "last"}));
  EXPECT_EQ(notes.progress, (progress{7, "seven"}));
}

TEST(ErrorLines, AreCutWhenTheyAreTooLong) {
  job_context ctx(leased_job{.job = std::make_shared<job>(), .key = 1});
  detail::error_lines lines(ctx, detail::lines_to::log);
  const std::string part(limits::log_line_bytes_max / 2 + 1, 'x');
  lines.add(part);
  lines.add(part);
  lines.add(part + "\nnext\n");
  const auto notes = ctx.notes().take();
  ASSERT_EQ(notes.lines.size(), 2U);
  EXPECT_EQ(notes.lines[0].size(), limits::log_line_bytes_max);
  EXPECT_EQ(notes.lines[1], "next");
}

}  // namespace
}  // namespace sluice::jobs::worker_notes_test
