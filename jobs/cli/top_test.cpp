// `sluice top` on a pseudo terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::top_test {
namespace {

using sluice::testing::eventually;
using testing::ended;
using testing::program;
using testing::server_program;
using testing::temporary_folder;

const std::string enters = "\033[?1049h";
const std::string leaves = "\033[?1049l";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Top : public ::testing::Test {
 protected:
  Top() {
    EXPECT_EQ(server_.run({"push", "a", "--queue", "mail"}).code, 0);
    EXPECT_EQ(server_.run({"push", "a", "--queue", "images"}).code, 0);
  }

  void start() {
    top_.emplace(std::vector<std::string>{"top", "--every", "100ms", "--url", server_.url()},
                 testing::start_options{
                     .environment = {"LANG=C"}, .on_terminal = true, .has_keyboard = true});
    see("mail");
    EXPECT_TRUE(has(shown_, enters));
    EXPECT_TRUE(top_->terminal_is_raw());
  }
  // Waits until the text is on the screen, drawn after the last `see`.
  void see(const std::string& text) {
    std::string fresh;
    eventually(
        [&] {
          fresh += top_->out();
          return has(fresh, text) || top_->has_ended();
        },
        "a text on the screen");
    EXPECT_TRUE(has(fresh, text)) << text << " in: " << fresh << top_->err();
    shown_ += fresh;
  }
  // Checks that it has ended and restored the terminal.
  void expect_end(int code) {
    const ended end = top_->wait();
    EXPECT_EQ(end.code, code) << end.err;
    shown_ += end.out;
    EXPECT_TRUE(has(shown_, leaves));
    EXPECT_GT(shown_.rfind(leaves), shown_.rfind(enters));
    EXPECT_FALSE(top_->terminal_is_raw());
  }

  temporary_folder folder_;
  server_program server_{folder_};
  std::optional<program> top_;
  std::string shown_;
};

TEST_F(Top, ShowsQueuesUntilQ) {
  start();
  see("healthy");
  top_->type("q");
  expect_end(0);
}

TEST_F(Top, RestoresTheTerminalHoweverItEnds) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    start();
    top_->signal(number);
    expect_end(128 + number);
  }
  start();
  top_->signal(SIGSEGV);
  expect_end(128 + SIGSEGV);
  start();
  top_->type("\003");
  expect_end(0);
}

TEST_F(Top, PausesAQueueAfterAConfirmation) {
  start();
  top_->type("\033[B");  // images, then mail
  see("> mail");
  top_->type("p");
  see("pause mail?");
  top_->type("y");
  see("mail is paused");
  EXPECT_TRUE(has(server_.run({"queues"}).out, "paused"));
  top_->type("p");
  see("resume mail?");
  top_->type("n");
  top_->type("q");
  expect_end(0);
  EXPECT_TRUE(has(server_.run({"queues"}).out, "paused"));
}

TEST_F(Top, SortsFiltersAndHelps) {
  start();
  top_->type("s");
  see("sort: depth");
  top_->type("/ma");
  see("filter: ma_");
  top_->type("\r");
  see("filter: ma");
  top_->type("?");
  see("any key returns");
  top_->type(" q");
  expect_end(0);
}

TEST_F(Top, FollowsTheSizeOfItsWindow) {
  start();
  top_->resize(200, 50);
  // A frame has as many lines as there are rows.
  std::string fresh;
  eventually(
      [&] {
        fresh += top_->out();
        const auto begin = fresh.rfind("\033[H", fresh.rfind("\033[J"));
        if (begin == std::string::npos) return false;
        const std::string frame = fresh.substr(begin);
        return std::count(frame.begin(), frame.end(), '\n') >= 49;
      },
      "a frame of fifty rows");
  shown_ += fresh;
  top_->type("q");
  expect_end(0);
}

TEST_F(Top, ReportsThatTheServerIsGoneAndContinues) {
  start();
  server_.stop();
  see("no reply");
  top_->type("q");
  expect_end(0);
}

TEST_F(Top, PrintsOneFrameWithoutATerminal) {
  const ended once = server_.run({"top", "--every", "100ms"});
  EXPECT_EQ(once.code, 0) << once.err;
  EXPECT_TRUE(has(once.out, "healthy")) << once.out;
  EXPECT_TRUE(has(once.out, "mail")) << once.out;
  EXPECT_FALSE(has(once.out, "\033")) << once.out;
  const ended as_json = server_.run({"top", "--json"});
  EXPECT_TRUE(has(as_json.out, R"("queues":[{)")) << as_json.out;
  const ended wrong = server_.run({"top", "--every", "1ms"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.err, "100ms to 1m")) << wrong.err;
}

}  // namespace
}  // namespace sluice::jobs::cli::top_test
