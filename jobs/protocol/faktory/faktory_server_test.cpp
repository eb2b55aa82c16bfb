// The whole server, over real sockets.

#include "jobs/protocol/faktory/faktory_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "jobs/net/testing/socket_wire.hpp"
#include "jobs/protocol/faktory/detail/sha256.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::faktory_server_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;

class client : public testing::socket_wire {
 public:
  explicit client(std::uint16_t port) : socket_wire(port) {}

  std::string hear() {
    std::string reply = line();
    if (!reply.starts_with('$') || reply == "$-1") return reply;
    const std::size_t size = std::stoul(reply.substr(1));
    std::string text = bytes(size + 2);
    text.resize(size);
    return text;
  }
  std::string ask(const std::string& command) {
    send(command + "\r\n");
    return hear();
  }
  void greet(const std::string& wid = "") {
    EXPECT_EQ(hear(), R"(+HI {"v":2})");
    EXPECT_EQ(ask(wid.empty() ? R"(HELLO {"v":2})" : R"(HELLO {"v":2,"wid":")" + wid + "\"}"),
              "+OK");
  }
};

std::string push_line(const std::string& jid, const std::string& more = "") {
  return R"(PUSH {"jid":")" + jid + R"(","jobtype":"mail","args":[1])" + more + "}";
}

class FaktoryServer : public ::testing::Test {
 protected:
  FaktoryServer() { options_.wire.listen = {{.port = 0}}; }
  ~FaktoryServer() override {
    server_.reset();
    engine_.reset();
  }

  std::uint16_t start() {
    engine_ = std::move(engine::open(make_memory_store({}))).value();
    server_ = std::make_unique<faktory_server>(options_);
    auto ports = server_->start(*engine_);
    EXPECT_TRUE(ports) << (ports ? "" : ports.error().message);
    return port_ = ports->front();
  }
  queue_counts counts() {
    const auto found = engine_->queue("default");
    return found ? found->counts : queue_counts{};
  }

  faktory_options options_;
  std::unique_ptr<engine> engine_;
  std::unique_ptr<faktory_server> server_;
  std::uint16_t port_ = 0;
};

TEST_F(FaktoryServer, AJobPassesFromProducerToWorker) {
  client c(start());
  c.greet();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  client w(port_);
  w.greet("w");
  EXPECT_NE(w.ask("FETCH default").find("\"jid\":\"12345678\""), std::string::npos);
  EXPECT_EQ(w.ask(R"(BEAT {"wid":"w"})"), "+OK");
  ASSERT_EQ(server_->workers().workers.size(), 1U);
  EXPECT_EQ(server_->workers().workers[0].running, 1U);
  EXPECT_EQ(w.ask(R"(ACK {"jid":"12345678"})"), "+OK");
  EXPECT_EQ(w.ask("END"), "+OK");
  EXPECT_TRUE(w.ends());
  eventually([&] { return server_->workers().workers.empty(); });
  EXPECT_EQ(server_->counts().accepted, 2U);
}

TEST_F(FaktoryServer, APasswordIsRequired) {
  options_.password = "secret";
  options_.hash_iterations = 10;
  client c(start());
  const std::string hi = c.hear();
  const std::string salt = hi.substr(hi.find("\"s\":\"") + 5, 32);
  EXPECT_EQ(
      c.ask(R"(HELLO {"v":2,"pwdhash":")" + faktory::password_hash("secret", salt, 10) + "\"}"),
      "+OK");
  server_->use_password("other");
  client d(port_);
  (void)d.hear();
  EXPECT_EQ(d.ask(R"(HELLO {"v":2,"pwdhash":"00"})"), "-ERR Invalid password");
  EXPECT_TRUE(d.ends());
}

TEST_F(FaktoryServer, HelloMustArriveInTime) {
  options_.hello_time = 50ms;
  client c(start());
  EXPECT_EQ(c.hear(), R"(+HI {"v":2})");
  EXPECT_EQ(c.hear(), "-ERR HELLO did not arrive in time");
  EXPECT_TRUE(c.ends());
}

TEST_F(FaktoryServer, TheJobsOfAKilledWorkerAreReleasedAtOnce) {
  client c(start());
  c.greet();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(c.ask(push_line("job-" + std::to_string(1000 + i))), "+OK");
  client w(port_);
  w.greet("w");
  for (int i = 0; i < 100; ++i) (void)w.ask("FETCH");
  EXPECT_EQ(counts().running, 100U);
  w.reset();
  eventually([&] { return counts().ready == 100; });
}

TEST_F(FaktoryServer, TheJobsOfAWorkerWhoseBeatsStopAreReleased) {
  options_.beat_lost = 50ms;
  client w(start());
  w.greet("w");
  EXPECT_EQ(w.ask(push_line("12345678")), "+OK");
  (void)w.ask("FETCH");
  EXPECT_EQ(w.ask(R"(BEAT {"wid":"w"})"), "+OK");
  eventually([&] { return counts().ready == 1; });
}

TEST_F(FaktoryServer, AWaitingFetchGetsAJobAtOnce) {
  options_.fetch_wait = 60s;
  client w(start());
  w.greet("w");
  w.send("FETCH a default\r\n");
  eventually([&] { return engine_->stats().waiting_leases == 1; });
  client c(port_);
  c.greet();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  EXPECT_NE(w.hear().find("12345678"), std::string::npos);
}

TEST_F(FaktoryServer, AClientThatLeavesWhileItWaitsIsDetected) {
  options_.fetch_wait = 60s;
  client w(start());
  w.greet("w");
  w.send("FETCH default\r\n");
  eventually([&] { return engine_->stats().waiting_leases == 1; });
  w.close();
  eventually([&] { return engine_->stats().waiting_leases == 0; });
  client half(port_);
  half.greet();
  half.send("FETCH default\r\n");
  eventually([&] { return engine_->stats().waiting_leases == 1; });
  half.half_close();
  EXPECT_EQ(half.hear(), "$-1");
  EXPECT_TRUE(half.ends());
}

TEST_F(FaktoryServer, CommandsSentBeforeTheEndAreExecuted) {
  client c(start());
  c.greet();
  std::string lines;
  for (int i = 0; i < 500; ++i) lines += push_line("job-" + std::to_string(1000 + i)) + "\r\n";
  c.send(lines + "FETCH\r\nACK {\"jid\":\"job-1000\"}\r\nEND\r\n");
  c.half_close();
  for (int i = 0; i < 500; ++i) EXPECT_EQ(c.hear(), "+OK");
  EXPECT_NE(c.hear().find("job-1000"), std::string::npos);
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_TRUE(c.ends());
  EXPECT_EQ(counts().ready, 499U);
}

TEST_F(FaktoryServer, ALongCommandIsReadAndATooLongCommandIsRefused) {
  client c(start());
  c.greet();
  const std::string long_args =
      R"(PUSH {"jid":"12345678","jobtype":"a","args":[")" + std::string(4'000'000, 'x') + "\"]}";
  EXPECT_EQ(c.ask(long_args), "+OK");
  EXPECT_GT(c.ask("FETCH").size(), 4'000'000U);
  std::thread sender([&] { c.send(std::string(5'000'000, 'x')); });
  EXPECT_EQ(c.hear(), "-ERR the command is longer than 4194304 bytes");
  sender.join();
}

TEST_F(FaktoryServer, WhileItClosesWorkersGetTerminate) {
  client w(start());
  w.greet("w");
  EXPECT_EQ(w.ask(push_line("12345678")), "+OK");
  (void)w.ask("FETCH");
  server_->close_intake();
  EXPECT_EQ(server_->fetched_jobs(), 1U);
  EXPECT_EQ(w.ask(push_line("22222222")), "+OK") << "pushes are accepted until stop";
  EXPECT_EQ(w.ask("FETCH"), "$-1");
  EXPECT_EQ(w.ask(R"(BEAT {"wid":"w"})"), R"(+{"state":"terminate"})");
  client later(port_);
  later.greet("later");
  EXPECT_EQ(later.ask(R"(BEAT {"wid":"later"})"), R"(+{"state":"terminate"})");
  EXPECT_EQ(w.ask(R"(ACK {"jid":"12345678"})"), "+OK");
  EXPECT_EQ(server_->fetched_jobs(), 0U);
}

TEST_F(FaktoryServer, ItStopsWhileClientsWait) {
  options_.fetch_wait = 60s;
  client w(start());
  w.greet("w");
  w.send("FETCH default\r\n");
  eventually([&] { return engine_->stats().waiting_leases == 1; });
  server_->stop();
  EXPECT_EQ(w.hear(), "$-1");
  EXPECT_TRUE(w.ends());
}

TEST_F(FaktoryServer, WorkersGetStatesByName) {
  client w(start());
  w.greet("w");
  EXPECT_FALSE(server_->set_state("nobody", worker_state::quiet));
  EXPECT_TRUE(server_->set_state("w", worker_state::quiet));
  EXPECT_EQ(w.ask(R"(BEAT {"wid":"w"})"), R"(+{"state":"quiet"})");
  EXPECT_TRUE(server_->set_state("w", worker_state::terminate));
  EXPECT_EQ(w.ask(R"(BEAT {"wid":"w"})"), R"(+{"state":"terminate"})");
}

TEST_F(FaktoryServer, ItHasMetrics) {
  client c(start());
  c.greet("w");
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  EXPECT_EQ(c.ask("JUMP"), "-ERR Unknown command JUMP");
  std::string out;
  server_->write_metrics(out);
  for (const std::string line :
       {"# TYPE sluice_faktory_pushed_total counter\nsluice_faktory_pushed_total 1\n",
        "sluice_faktory_commands_total 3\n", "sluice_faktory_errors_total 1\n",
        "sluice_faktory_workers 1\n", "sluice_faktory_connections 1\n",
        "sluice_faktory_connection_timeouts_total 0\n"}) {
    EXPECT_NE(out.find(line), std::string::npos) << line << out;
  }
}

TEST_F(FaktoryServer, BeforeItStartsItHasNoWorkers) {
  faktory_server server(options_);
  EXPECT_TRUE(server.workers().workers.empty());
  EXPECT_FALSE(server.set_state("w", worker_state::quiet));
  server.close_intake();
  std::string out;
  server.write_metrics(out);
  EXPECT_NE(out.find("sluice_faktory_connections 0\n"), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::faktory_server_test
