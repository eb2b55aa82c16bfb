// Connections over real sockets, with a session that echoes text when the test allows it.
#include "jobs/protocol/wire_server.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "jobs/http/testing/certificates.hpp"
#include "jobs/http/testing/tls_wire.hpp"
#include "jobs/net/client_memory.hpp"
#include "jobs/net/testing/socket_wire.hpp"
#include "jobs/protocol/frames.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/temporary_folder.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::protocol::wire_server_test {
namespace {

using jobs::testing::socket_wire;
using sluice::testing::eventually;

// The state shared by a test and its sessions.
struct board {
  guarded<std::map<std::string, promise<std::string>>> asked;
  std::atomic<int> begun{0}, gone{0}, ended_inputs{0}, finished{0}, stopped{0}, echoed{0};
};

// Commands: `echo TEXT` replies TEXT. `ask KEY` replies with the test's answer for KEY. `bulk N`
// and N bytes replies their count. `quit` replies and ends. `nap` requests on_time at once.
class echo final : public session {
 public:
  echo(client& client, board& shared) : client_(client), board_(shared) { ++board_.begun; }

  void begin() override { client_.respond("hello\r\n"); }
  std::size_t consume(std::string_view in) override {
    needs_ = 0;
    if (client_.replies_left() == 0) return 0;
    const line_cut line = cut_line(in, 1024);
    if (line.is == line_cut::kind::incomplete) return 0;
    if (line.is == line_cut::kind::too_long) {
      client_.respond("too long\r\n");
      return line.used;
    }
    std::string_view rest = line.text;
    const std::string_view verb = cut_word(rest);
    if (verb == "bulk") return take_bulk(in, line, *parse_number(rest));
    if (verb == "echo") {
      client_.respond(std::string(rest) + "\r\n");
      ++board_.echoed;
    }
    if (verb == "ask") ask(std::string(rest));
    if (verb == "nap") client_.wake_at(seam::now());
    if (verb == "quit") {
      client_.respond("bye\r\n");
      client_.end();
    }
    return line.used;
  }
  std::size_t needs() const override { return needs_; }
  void on_time() override { client_.respond("good morning\r\n"); }
  void end_of_input() override { ++board_.ended_inputs; }
  void finish_up() override {
    ++board_.finished;
    auto asked = board_.asked.lock();
    for (auto& [key, result] : *asked) {
      if (key != "stubborn") result.set_value("shut down");
    }
    std::erase_if(*asked, [](const auto& a) { return a.first != "stubborn"; });
  }
  void gone() override {
    if (client_.gone_token().stop_requested()) ++board_.stopped;
    ++board_.gone;
  }

 private:
  std::size_t take_bulk(std::string_view in, const line_cut& line, std::size_t size) {
    const bulk_cut bulk = cut_bulk(in.substr(line.used), size);
    if (bulk.is == bulk_cut::kind::incomplete) {
      needs_ = line.used + size + 2;
      return 0;
    }
    client_.respond("got " + std::to_string(bulk.bytes.size()) + "\r\n");
    return line.used + bulk.used;
  }
  void ask(const std::string& key) {
    promise<std::string> answer;
    client_.when_done(answer.get_future(),
                      [this, reply = client_.open()](settled<std::string> text) {
                        client_.answer(reply, std::move(text).value() + "\r\n");
                      });
    board_.asked.lock()->insert_or_assign(key, std::move(answer));
  }

  client& client_;
  board& board_;
  std::size_t needs_ = 0;
};

class WireServer : public ::testing::Test {
 protected:
  WireServer() { options_.name = "test"; }
  ~WireServer() override {
    {
      auto asked = board_.asked.lock();
      for (auto& [key, reply] : *asked) reply.set_value("the test is over");
      asked->clear();  // `finish_up` answers the rest
    }
    server_.reset();
  }

  void start() {
    server_.emplace(options_);
    auto ports =
        server_->start([this](client& client) { return std::make_unique<echo>(client, board_); });
    ASSERT_TRUE(ports) << ports.error().message;
    port_ = ports->front();
  }
  // Connects a client, and reads the greeting.
  socket_wire meet() {
    socket_wire w(port_);
    EXPECT_EQ(w.line(), "hello");
    return w;
  }
  void answer(const std::string& key, const std::string& text) {
    eventually([&] { return board_.asked.lock()->contains(key); }, "the question");
    auto node = board_.asked.lock()->extract(key);
    node.mapped().set_value(text);
  }
  // Returns the replies to long commands that `send` sends. A client with a reservation is cut off
  // if this thread, which serves all clients, stalls for a second while another client waits: then
  // `send` is repeated.
  template <class Send>
  std::vector<std::string> replies_to(Send send) {
    std::vector<std::string> replies;
    eventually([&] {
      const auto cut_off = server_->counts().timeouts;
      replies = send();
      return server_->counts().timeouts == cut_off;
    });
    return replies;
  }

  wire_server_options options_;
  board board_;
  std::optional<wire_server> server_;
  std::uint16_t port_ = 0;
};

TEST_F(WireServer, AnswersInTheOrderOfTheCommandsInAnyOrderOfCompletion) {
  start();
  auto w = meet();
  w.send("ask a\r\necho 1\r\nask b\r\necho 2\r\n");
  answer("b", "B");
  answer("a", "A");
  EXPECT_EQ(w.line(), "A");
  EXPECT_EQ(w.line(), "1");
  EXPECT_EQ(w.line(), "B");
  EXPECT_EQ(w.line(), "2");
}

TEST_F(WireServer, ReadsCommandsByteByByte) {
  start();
  auto w = meet();
  for (const char c : std::string_view("echo hello you\r\nbulk 3\r\nabc\r\necho x\n")) {
    w.send({&c, 1});
  }
  EXPECT_EQ(w.line(), "hello you");
  EXPECT_EQ(w.line(), "got 3");
  EXPECT_EQ(w.line(), "x");
}

TEST_F(WireServer, ReadsACommandThatIsLongerThanItsBuffer) {
  start();
  auto w = meet();
  const std::string body(3'000'000, 'x');
  w.send("bulk 3000000\r\n" + body + "\r\necho after\r\n");
  EXPECT_EQ(w.line(), "got 3000000");
  EXPECT_EQ(w.line(), "after");
}

TEST_F(WireServer, LongCommandsShareABudgetAndAllComplete) {
  options_.memory = std::make_shared<net::client_memory>(1 << 20);
  start();
  const std::string body(900'000, 'x');
  const auto replies = replies_to([&] {
    std::vector<std::unique_ptr<socket_wire>> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(std::make_unique<socket_wire>(meet()));
      all.back()->send("bulk 900000\r\nbegin");
    }
    std::vector<std::string> lines;
    for (auto& w : all) {
      w->send(body.substr(5) + "\r\n");
      lines.push_back(w->line());
    }
    return lines;
  });
  EXPECT_EQ(replies, std::vector<std::string>(4, "got 900000"));
}

TEST_F(WireServer, ASlowCommandWithAReservationIsCutOffWhileOthersWait) {
  options_.memory = std::make_shared<net::client_memory>(1 << 20);
  start();
  auto stuck = meet();
  stuck.send("bulk 900000\r\n" + std::string(100'000, 'x'));
  eventually([&] { return server_->counts().bytes_in > 100'000; }, "it to have the budget");
  auto other = meet();
  other.send("bulk 900000\r\n" + std::string(900'000, 'x') + "\r\n");
  EXPECT_EQ(other.line(), "got 900000") << "long before command_time";
  EXPECT_TRUE(stuck.ends());
  EXPECT_EQ(server_->counts().timeouts, 1U);
}

TEST_F(WireServer, ASlowCommandKeepsItsReservationWhileNoOtherWaits) {
  options_.memory = std::make_shared<net::client_memory>(1 << 20);
  options_.command_rate = 1 << 30;  // no client is that fast
  start();
  auto slow = meet();
  slow.send("bulk 200000\r\n" + std::string(100'000, 'x'));
  const auto begun = seam::now();
  eventually([&] { return seam::now() > begun + std::chrono::milliseconds(1500); },
             "more than a second to pass");
  slow.send(std::string(100'000, 'x') + "\r\n");
  EXPECT_EQ(slow.line(), "got 200000");
}

TEST_F(WireServer, AClientThatLeavesWithdrawsItsReservation) {
  options_.memory = std::make_shared<net::client_memory>(1 << 20);
  start();
  const auto replies = replies_to([&] {
    auto first = meet();
    auto second = meet();
    auto third = meet();
    first.send("bulk 900000\r\n" + std::string(100'000, 'x'));
    second.send("bulk 900000\r\n" + std::string(100'000, 'x'));
    second.reset();
    third.send("bulk 900000\r\n" + std::string(100'000, 'x'));
    first.send(std::string(800'000, 'x') + "\r\n");
    std::vector<std::string> lines = {first.line()};
    third.send(std::string(800'000, 'x') + "\r\n");
    lines.push_back(third.line());
    return lines;
  });
  EXPECT_EQ(replies, std::vector<std::string>(2, "got 900000"));
}

TEST_F(WireServer, StopsReadingAtTheLimitOfOpenReplies) {
  options_.replies_max = 4;
  start();
  auto w = meet();
  std::string commands;
  for (int i = 0; i < 10; ++i) commands += "ask " + std::to_string(i) + "\r\n";
  w.send(commands);
  for (int i = 0; i < 10; ++i) {
    eventually([&] { return board_.asked.lock()->contains(std::to_string(i)); }, "the question");
    EXPECT_LE(board_.asked.lock()->size(), 4U);
    answer(std::to_string(i), "answer " + std::to_string(i));
    EXPECT_EQ(w.line(), "answer " + std::to_string(i));
  }
}

TEST_F(WireServer, RepliesBehindAnOpenReplyCountAsUnsent) {
  options_.unsent_bytes_max = 64 << 10;
  start();
  auto w = meet();
  std::string many = "ask a\r\n";
  for (int i = 0; i < 200; ++i) many += "echo " + std::string(1000, 'x') + "\r\n";
  w.send(many);
  eventually([&] { return board_.echoed >= 60; }, "replies to wait");
  // Later clients have been served, so the server has read as much of the first client as it will.
  for (int i = 0; i < 5; ++i) {
    auto other = meet();
    other.send("echo done\r\n");
    EXPECT_EQ(other.line(), "done");
  }
  EXPECT_LE(board_.echoed, 80);
  answer("a", "A");
  EXPECT_EQ(w.line(), "A");
  for (int i = 0; i < 200; ++i) EXPECT_EQ(w.line().size(), 1000U);
}

TEST_F(WireServer, AClientThatDoesNotReadDelaysNoOther) {
  options_.unsent_bytes_max = 64 << 10;
  start();
  socket_wire deaf(port_);
  deaf.receive_buffer(4096);
  const std::string command = "echo " + std::string(1000, 'x') + "\r\n";
  std::string many;
  for (int i = 0; i < 200; ++i) many += command;
  // Sends until the server's and the system's buffers are full.
  eventually(
      [&] {
        std::size_t sent = 0;
        for (int i = 0; i < 50; ++i) sent += deaf.send_without_waiting(many);
        return sent == 0;
      },
      "the deaf client's socket to be full");
  auto w = meet();
  w.send("echo still here\r\n");
  EXPECT_EQ(w.line(), "still here");
}

TEST_F(WireServer, ClosesTheLargestIdleConnectionsWhenTheMemoryOfAllIsExceeded) {
  options_.memory = std::make_shared<net::client_memory>(1 << 20);
  start();
  auto honest = meet();
  const std::string echo = "echo " + std::string(1000, 'x') + "\r\n";
  std::string many;
  for (int i = 0; i < 500; ++i) many += echo;
  std::vector<std::unique_ptr<socket_wire>> deaf;
  for (int i = 0; i < 8; ++i) {
    deaf.push_back(std::make_unique<socket_wire>(meet()));
    // Behind a reply that does not come, so that no socket takes them.
    deaf.back()->send("ask " + std::to_string(i) + "\r\n");
    deaf.back()->send(many);
  }
  eventually([&] { return options_.memory->closed() > 0; }, "a connection to be closed");
  EXPECT_LT(options_.memory->bytes(), 3U << 20U);
  honest.send("echo still here\r\n");
  EXPECT_EQ(honest.line(), "still here") << "it held next to nothing";
}

TEST_F(WireServer, ProcessesInputThatWaitedForMemory) {
  options_.memory = std::make_shared<net::client_memory>(1 << 20);
  start();
  auto w = meet();
  auto other = std::make_optional<net::client_memory::account>(*options_.memory);
  other->open(false, [](auto) {});
  other->report({.output = 2 << 20});
  w.send("echo a\r\necho b\r\n");
  eventually([&] { return options_.memory->is_wanted(); }, "the connection to wait");
  EXPECT_EQ(board_.echoed, 0);
  other.reset();
  EXPECT_EQ(w.line(), "a");
  EXPECT_EQ(w.line(), "b");
}

TEST_F(WireServer, ATooLongLineIsRefusedAndTheNextIsRead) {
  start();
  auto w = meet();
  w.send(std::string(5000, 'a') + "\r\necho on\r\n");
  std::string last;
  while ((last = w.line()) == "too long") {
  }
  EXPECT_EQ(last, "on");
}

TEST_F(WireServer, TheLastReplyIsWrittenBeforeTheEnd) {
  start();
  auto w = meet();
  w.send("ask late\r\nquit\r\necho never\r\n");
  answer("late", "at last");
  EXPECT_EQ(w.line(), "at last");
  EXPECT_EQ(w.line(), "bye");
  EXPECT_TRUE(w.ends());
  w.close();
  eventually([&] { return board_.gone == 1; }, "the call of the session");
}

TEST_F(WireServer, AHalfClosedClientGetsItsReplies) {
  start();
  auto w = meet();
  w.send("ask a\r\necho b\r\n");
  w.half_close();
  eventually([&] { return board_.ended_inputs == 1; }, "the call of the session");
  answer("a", "A");
  EXPECT_EQ(w.line(), "A");
  EXPECT_EQ(w.line(), "b");
  EXPECT_TRUE(w.ends());
  eventually([&] { return board_.gone == 1; }, "the call of the session");
}

TEST_F(WireServer, CallsReturnToASessionWhoseClientHasGone) {
  start();
  {
    auto w = meet();
    w.send("ask a\r\n");
    eventually([&] { return board_.asked.lock()->contains("a"); }, "the question");
    w.reset();
  }
  eventually([&] { return board_.gone == 1; }, "the call of the session");
  EXPECT_EQ(board_.stopped, 1);
  answer("a", "nobody hears this");
}

TEST_F(WireServer, ASessionIsCalledAtItsTime) {
  start();
  auto w = meet();
  w.send("nap\r\n");
  EXPECT_EQ(w.line(), "good morning");
}

TEST_F(WireServer, ACommandThatNeverEndsEndsItsConnection) {
  options_.command_time = milliseconds(50);
  start();
  auto w = meet();
  w.send("echo half");
  EXPECT_TRUE(w.ends());
  EXPECT_EQ(server_->counts().timeouts, 1U);
}

TEST_F(WireServer, AnIdleConnectionIsClosedAfterIdleTime) {
  options_.idle_time = milliseconds(50);
  start();
  auto w = meet();
  EXPECT_TRUE(w.ends());
}

TEST_F(WireServer, AConnectionBeyondTheLimitGetsTheRefusal) {
  options_.connections_max = 1;
  options_.refusal = "too many\r\n";
  start();
  auto w = meet();
  socket_wire second(port_);
  EXPECT_EQ(second.line(), "too many");
  EXPECT_TRUE(second.ends());
  EXPECT_EQ(server_->counts().refused, 1U);
  w.close();
  eventually([&] { return server_->counts().open == 0; }, "the first to be gone");
  auto third = meet();
}

TEST_F(WireServer, StoppingFinishesEverySessionAndWritesOpenReplies) {
  start();
  auto w = meet();
  w.send("ask a\r\n");
  eventually([&] { return board_.asked.lock()->contains("a"); }, "the question");
  server_->stop();
  EXPECT_EQ(w.line(), "shut down");
  EXPECT_TRUE(w.ends());
  EXPECT_EQ(board_.finished, 1);
  EXPECT_EQ(board_.gone, 1);
}

TEST_F(WireServer, ConnectionsLeftAtTheLimitAreCutOff) {
  start();
  auto w = meet();
  w.send("ask stubborn\r\n");
  eventually([&] { return board_.asked.lock()->contains("stubborn"); }, "the question");
  const std::jthread late([&] {
    eventually([&] { return board_.gone == 1; }, "the connection to be cut");
    answer("stubborn", "nobody hears this");
  });
  server_->stop(wait_limits(deadline::after(milliseconds(0))));
  EXPECT_TRUE(w.ends());
}

TEST_F(WireServer, ListensOnAUnixSocket) {
  sluice::testing::temporary_folder folder;
  const std::string path = folder.path() + "/s.sock";
  options_.listen = {{.unix_path = path}};
  start();
  struct stat made {};
  ASSERT_EQ(::lstat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0600U);
  socket_wire w(path);
  EXPECT_EQ(w.line(), "hello");
  w.send("echo over here\r\n");
  EXPECT_EQ(w.line(), "over here");
  // A second server cannot listen on the same path.
  wire_server other(options_);
  auto second =
      other.start([this](client& client) { return std::make_unique<echo>(client, board_); });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::unavailable);
  w.close();
  server_->stop();
  EXPECT_NE(::lstat(path.c_str(), &made), 0);
}

TEST_F(WireServer, ReplacesAnUnservedSocketAndNoOtherFile) {
  sluice::testing::temporary_folder folder;
  const std::string path = folder.path() + "/s.sock";
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  path.copy(where.sun_path, sizeof where.sun_path - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
  ::close(left);
  options_.listen = {{.unix_path = path}};
  start();
  socket_wire w(path);
  EXPECT_EQ(w.line(), "hello");

  const std::string file = folder.path() + "/data";
  std::ofstream(file) << "precious";
  options_.listen = {{.unix_path = file}};
  wire_server other(options_);
  auto refused =
      other.start([this](client& client) { return std::make_unique<echo>(client, board_); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid);
  std::string kept;
  std::ifstream(file) >> kept;
  EXPECT_EQ(kept, "precious");
}

TEST_F(WireServer, BeyondLoopbackItListensOnlyIfOpenToAll) {
  options_.listen = {{.address = "0.0.0.0"}};
  options_.how_to_open = "use --open";
  wire_server closed(options_);
  auto refused =
      closed.start([this](client& client) { return std::make_unique<echo>(client, board_); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cannot listen on 0.0.0.0, an address beyond loopback: use --open");
  options_.open_to_all = true;
  start();
  auto w = meet();
}

TEST_F(WireServer, SupportsTls) {
  sluice::testing::temporary_folder folder;
  options_.tls = jobs::testing::make_certificate(folder, "server", {});
  start();
  jobs::testing::tls_wire w(port_);
  ASSERT_TRUE(w.is_secure());
  EXPECT_EQ(w.line(), "hello");
  w.send("bulk 200000\r\n" + std::string(200'000, 'x') + "\r\necho secret\r\n");
  EXPECT_EQ(w.line(), "got 200000");
  EXPECT_EQ(w.line(), "secret");
  // A TLS record boundary inside a read.
  const std::string long_one = "bulk 65532\r\n" + std::string(65'532, 'x') + "\r\n";
  w.send(long_one.substr(0, 10));
  w.send(long_one.substr(10));
  EXPECT_EQ(w.line(), "got 65532");
  // A client without TLS is refused.
  socket_wire plain(port_);
  plain.send("ECHO x\r\n");
  EXPECT_TRUE(plain.ends());
}

}  // namespace
}  // namespace sluice::jobs::protocol::wire_server_test
