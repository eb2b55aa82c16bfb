// The content of `sluice top`, without a terminal, and its key input.
#include "jobs/cli/top_view.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "jobs/cli/terminal_screen.hpp"

namespace sluice::jobs::cli::top_view_test {
namespace {

using namespace std::chrono_literals;

constexpr time_point start{1h};

queue_info queue_of(std::string name, std::uint64_t ready, std::uint64_t running = 0) {
  queue_info q;
  q.name = std::move(name);
  q.counts.ready = ready;
  q.counts.running = running;
  return q;
}

top_snapshot snapshot_at(std::chrono::seconds after, std::vector<queue_info> queues,
                         engine_stats stats = {}) {
  return {.at = start + after,
          .wall = {1'767'225'600'000 + after.count() * 1000},
          .stats = stats,
          .health = {},
          .queues = std::move(queues)};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TopModel, ComputesRatesFromTwoSamples) {
  top_model seen;
  seen.add(snapshot_at(0s, {queue_of("a", 10)}, {.pushed = 100, .acked = 50, .failed = 1}));
  EXPECT_FALSE(seen.per_second().pushed);
  seen.add(snapshot_at(2s, {queue_of("a", 30)}, {.pushed = 300, .acked = 60, .failed = 1}));
  EXPECT_EQ(seen.per_second().pushed, 100.0);
  EXPECT_EQ(seen.per_second().done, 5.0);
  EXPECT_EQ(seen.per_second().failed, 0.0);
  EXPECT_EQ(seen.queues().at("a").net_per_second, 10.0);
}

TEST(TopModel, HasNoRatesAfterARestartOfTheServer) {
  top_model seen;
  seen.add(snapshot_at(0s, {}, {.pushed = 100}));
  seen.add(snapshot_at(1s, {}, {.pushed = 3}));
  EXPECT_FALSE(seen.per_second().pushed);
}

TEST(TopModel, DropsRemovedQueuesAndOldDepths) {
  top_model seen;
  for (int i = 0; i < 100; ++i) {
    seen.add(snapshot_at(std::chrono::seconds(i),
                         {queue_of("a", static_cast<std::uint64_t>(i)), queue_of("b", 1)}));
  }
  EXPECT_EQ(seen.queues().at("a").depth.size(), top_model::history_max);
  EXPECT_EQ(seen.queues().at("a").depth.back(), 99U);
  seen.add(snapshot_at(100s, {queue_of("a", 1)}));
  EXPECT_FALSE(seen.queues().contains("b"));
}

class TopFrame : public ::testing::Test {
 protected:
  TopFrame() {
    seen_.add(snapshot_at(0s, {}, {.pushed = 0}));
    seen_.add(snapshot_at(
        1s, {queue_of("default", 5, 2), queue_of("mail", 1'234'567, 40), queue_of("images", 0, 0)},
        {.pushed = 1500, .acked = 1200, .commit_p99_us = 900}));
    looks_.url = "http://127.0.0.1:7433";
  }
  std::vector<std::string> drawn() { return lines_of(render_top(seen_, choice_, looks_)); }
  // Returns the line of a queue; empty if it is not shown.
  std::string row_of(const std::string& queue) {
    for (const std::string& line : drawn()) {
      if (line.substr(0, 2 + queue.size()).ends_with(queue)) return line;
    }
    return "";
  }

  top_model seen_;
  top_choice choice_;
  top_looks looks_;
};

TEST_F(TopFrame, ShowsTotalsRatesAndEveryQueue) {
  const std::string text = render_top(seen_, choice_, looks_);
  EXPECT_TRUE(has(text, "http://127.0.0.1:7433")) << text;
  EXPECT_TRUE(has(text, "healthy  1,234,572 ready")) << text;
  EXPECT_TRUE(has(text, "pushed 1,500/s  done 1,200/s  failed 0/s")) << text;
  EXPECT_TRUE(has(text, "p99 900 us")) << text;
  EXPECT_TRUE(has(row_of("mail"), "1.2M     40")) << text;
  EXPECT_TRUE(has(row_of("images"), "     0      0")) << text;
}

TEST_F(TopFrame, FillsItsScreenExactly) {
  for (int i = 0; i < 50; ++i) {
    seen_.add(snapshot_at(std::chrono::seconds(2 + i),
                          {queue_of("default", 5), queue_of(std::string(120, 'q'), 1u << 30)}));
  }
  using mode = top_choice::mode;
  for (const mode m : {mode::watching, mode::filtering, mode::asking, mode::helping}) {
    choice_.now = m;
    for (const screen_size size : {screen_size{80, 24}, screen_size{40, 8}, screen_size{200, 60},
                                   screen_size{10, 3}, screen_size{1, 1}}) {
      looks_.size = size;
      const auto lines = drawn();
      EXPECT_EQ(lines.size(), size.rows);
      for (const std::string& line : lines)
        EXPECT_LE(width_of(line), std::max<std::size_t>(size.columns, 3)) << line;
    }
  }
}

TEST_F(TopFrame, MarksTheSelectedQueueAndScrollsToIt) {
  std::vector<queue_info> many;
  for (int i = 100; i < 200; ++i) many.push_back(queue_of("q" + std::to_string(i), 1));
  seen_.add(snapshot_at(2s, many));
  EXPECT_TRUE(row_of("q100").starts_with("> q100"));
  choice_.selected = "q199";
  EXPECT_TRUE(row_of("q199").starts_with("> q199"));
  EXPECT_EQ(row_of("q100"), "");
}

TEST_F(TopFrame, SortsAndFilters) {
  choice_.order = top_order::ready;
  const auto by_ready = shown_queues(seen_, choice_);
  ASSERT_EQ(by_ready.size(), 3U);
  EXPECT_EQ(by_ready[0]->info.name, "mail");
  EXPECT_EQ(by_ready[2]->info.name, "images");
  choice_.filter = "ma";
  EXPECT_EQ(shown_queues(seen_, choice_).size(), 2U);  // images, mail
  choice_.filter = "zzz";
  EXPECT_TRUE(has(render_top(seen_, choice_, looks_), "no queue name contains 'zzz'"));
}

TEST_F(TopFrame, AsksBeforeItPauses) {
  choice_.now = top_choice::mode::asking;
  choice_.selected = "mail";
  EXPECT_TRUE(drawn().back().starts_with("pause mail?"));
}

TEST_F(TopFrame, KeepsTheLastSampleWhenTheServerDoesNotReply) {
  seen_.lose("connection refused");
  const std::string text = render_top(seen_, choice_, looks_);
  EXPECT_TRUE(has(text, "no reply: connection refused")) << text;
  EXPECT_NE(row_of("mail"), "");
  const top_model nothing;
  EXPECT_TRUE(has(render_top(nothing, choice_, looks_), "connecting"));
}

TEST_F(TopFrame, ShowsWhyTheServerRejectsPushes) {
  top_snapshot now = snapshot_at(3s, {});
  now.health = {.takes_pushes = false, .code = error_code::disk_full, .reason = "no space left"};
  seen_.add(now);
  EXPECT_TRUE(has(render_top(seen_, choice_, looks_), "rejects pushes: no space left"));
}

TEST_F(TopFrame, UsesNoEscapesWithoutColours) {
  EXPECT_FALSE(has(render_top(seen_, choice_, looks_), "\033"));
  looks_.style.colours = true;
  EXPECT_TRUE(has(render_top(seen_, choice_, looks_), "\033[7m"));
}

TEST_F(TopFrame, IsATableWithoutATerminal) {
  const std::string text = top_table(seen_, looks_);
  EXPECT_TRUE(has(text, "QUEUE")) << text;
  EXPECT_TRUE(has(text, "1,234,567")) << text;
  EXPECT_TRUE(has(text, "pushed 1,500/s")) << text;
}

TEST(Compact, NeverTakesMoreThanFiveCharacters) {
  EXPECT_EQ(compact(0), "0");
  EXPECT_EQ(compact(9999), "9999");
  EXPECT_EQ(compact(10'000), "10.0k");
  EXPECT_EQ(compact(123'456), "123k");
  EXPECT_EQ(compact(999'949), "1.0M");
  EXPECT_EQ(compact(1'234'567), "1.2M");
  for (std::uint64_t n = 1; n < std::uint64_t{1} << 62; n = n * 3 + 1) {
    EXPECT_LE(compact(n).size(), 5U) << n;
  }
}

TEST(Sparkline, ShowsTheNewestValues) {
  EXPECT_EQ(sparkline({0, 1, 2, 4, 8}, 8, false), "_.:=#");
  EXPECT_EQ(sparkline({9, 9, 0, 8}, 2, true), "▁█");
  EXPECT_EQ(sparkline({}, 5, true), "");
  EXPECT_EQ(sparkline({0, 0}, 5, true), "▁▁");
}

std::vector<key_press> keys_in(std::string text, more_keys more = more_keys::may_come) {
  return take_keys(text, more);
}

TEST(Keys, AreLettersAndSequences) {
  using all = std::vector<key_press>;
  EXPECT_EQ(keys_in("q"), (all{{key::text, 'q'}}));
  EXPECT_EQ(keys_in("\033[A\033[Bj"), (all{{key::up}, {key::down}, {key::text, 'j'}}));
  EXPECT_EQ(keys_in("\033OA\033[5~\033[6~"), (all{{key::up}, {key::page_up}, {key::page_down}}));
  EXPECT_EQ(keys_in("\r\177"), (all{{key::enter}, {key::erase}}));
  EXPECT_EQ(keys_in("\033[1;5C").size(), 0U) << "an unused sequence";
}

TEST(Keys, WaitForTheRestOfASequence) {
  std::string read = "\033[";
  EXPECT_TRUE(take_keys(read, more_keys::may_come).empty());
  EXPECT_EQ(read, "\033[");
  read += "A";
  EXPECT_EQ(take_keys(read, more_keys::may_come), (std::vector<key_press>{{key::up}}));
  EXPECT_EQ(read, "");
}

TEST(Keys, AreTheEscapeKeyWhenNothingFollows) {
  std::string read = "\033";
  EXPECT_TRUE(take_keys(read, more_keys::may_come).empty());
  EXPECT_EQ(take_keys(read, more_keys::none), (std::vector<key_press>{{key::escape}}));
  EXPECT_EQ(read, "");
}

}  // namespace
}  // namespace sluice::jobs::cli::top_view_test
