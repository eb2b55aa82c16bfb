// The whole server, over real sockets.
#include "jobs/protocol/beanstalk/beanstalk_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "jobs/net/testing/socket_wire.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::beanstalk_server_test {
namespace {

using sluice::testing::eventually;
using testing::socket_wire;
using namespace std::chrono_literals;

class beanstalk_server_test : public ::testing::Test {
 protected:
  ~beanstalk_server_test() override { server_.reset(); }

  void start() {
    jobs_ = std::move(engine::open(make_memory_store({}))).value();
    server_.emplace(options_);
    auto ports = server_->start(*jobs_);
    ASSERT_TRUE(ports) << ports.error().message;
    port_ = ports->front();
  }
  socket_wire connect() {
    socket_wire w(port_);
    EXPECT_TRUE(w.connected());
    return w;
  }
  std::uint64_t count(job_state s) {
    const auto info = jobs_->queue("default");
    return info ? info->counts.of(s) : 0;
  }

  beanstalk_options options_{.wire = {.listen = {{.port = 0}}, .name = "test"}};
  std::unique_ptr<engine> jobs_;
  std::optional<beanstalk_server> server_;
  std::uint16_t port_ = 0;
};

TEST_F(beanstalk_server_test, AJobPassesThroughTheSocket) {
  start();
  auto w = connect();
  w.send("put 0 0 10 5\r\nhello\r\nreserve\r\ndelete 1\r\nquit\r\n");
  EXPECT_EQ(w.line(), "INSERTED 1");
  EXPECT_EQ(w.line(), "RESERVED 1 5");
  EXPECT_EQ(w.line(), "hello");
  EXPECT_EQ(w.line(), "DELETED");
  EXPECT_TRUE(w.ends());
  EXPECT_EQ(server_->counts().accepted, 1U);
  EXPECT_GT(server_->counts().bytes_in, 0U);
}

TEST_F(beanstalk_server_test, AUnixSocketHasTheSameProtocol) {
  const sluice::testing::temporary_folder folder;
  const std::string path = folder.path() + "/b.sock";
  options_.wire.listen = {{.unix_path = path}};
  start();
  socket_wire w(path);
  w.send("put 0 0 10 1\r\na\r\n");
  EXPECT_EQ(w.line(), "INSERTED 1");
  EXPECT_EQ(jobs_->get(1).get()->spec.args.data, "a");
}

TEST_F(beanstalk_server_test, TheJobsOfAKilledClientAreReleased) {
  start();
  auto w = connect();
  w.send("put 0 0 1000 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(w.line(), "INSERTED 1");
  EXPECT_EQ(w.line(), "RESERVED 1 1");
  EXPECT_EQ(count(job_state::running), 1U);
  w.reset();
  eventually([&] { return count(job_state::ready) == 1; });
  auto next = connect();
  next.send("reserve\r\n");
  EXPECT_EQ(next.line(), "RESERVED 1 1");
}

TEST_F(beanstalk_server_test, AClientThatIsKilledWhileItWaitsTakesNoJob) {
  start();
  auto w = connect();
  w.send("reserve\r\n");
  eventually([&] { return jobs_->stats().waiting_leases == 1; });
  w.reset();
  eventually([&] { return jobs_->stats().waiting_leases == 0; });
  auto next = connect();
  next.send("put 0 0 10 1\r\na\r\npeek-ready\r\n");
  EXPECT_EQ(next.line(), "INSERTED 1");
  EXPECT_EQ(next.line(), "FOUND 1 1");
}

TEST_F(beanstalk_server_test, AHalfClosedClientGetsAllItsReplies) {
  start();
  auto w = connect();
  w.send("put 0 0 10 1\r\na\r\ndelete 1\r\nreserve\r\nlist-tube-used\r\n");
  w.half_close();
  EXPECT_EQ(w.line(), "INSERTED 1");
  EXPECT_EQ(w.line(), "DELETED");
  EXPECT_EQ(w.line(), "TIMED_OUT");
  EXPECT_EQ(w.line(), "USING default");
  EXPECT_TRUE(w.ends());
}

TEST_F(beanstalk_server_test, TheLargestBodyPassesThroughTheSocket) {
  options_.job_bytes_max = 4u << 20;
  start();
  auto w = connect();
  const std::string body(4u << 20, 'x');
  w.send("put 0 0 10 " + std::to_string(body.size()) + "\r\n" + body + "\r\nreserve\r\n");
  EXPECT_EQ(w.line(), "INSERTED 1");
  EXPECT_EQ(w.line(), "RESERVED 1 " + std::to_string(body.size()));
  EXPECT_EQ(w.bytes(body.size()), body);
  EXPECT_EQ(w.line(), "");
  w.send("put 0 0 10 " + std::to_string(body.size() + 1) + "\r\n" + body +
         "y\r\nlist-tube-used\r\n");
  EXPECT_EQ(w.line(), "JOB_TOO_BIG");
  EXPECT_EQ(w.line(), "USING default");
}

TEST_F(beanstalk_server_test, DrainAnswersPutsWithDraining) {
  start();
  auto w = connect();
  w.send("put 0 0 10 1\r\na\r\n");
  EXPECT_EQ(w.line(), "INSERTED 1");
  EXPECT_FALSE(server_->is_draining());
  server_->drain();
  EXPECT_TRUE(server_->is_draining());
  w.send("put 0 0 10 1\r\nb\r\nreserve\r\n");
  EXPECT_EQ(w.line(), "DRAINING");
  EXPECT_EQ(w.line(), "RESERVED 1 1");
}

TEST_F(beanstalk_server_test, StoppingEndsWaitsAndReleasesJobs) {
  start();
  auto holder = connect();
  holder.send("put 0 0 1000 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(holder.line(), "INSERTED 1");
  EXPECT_EQ(holder.line(), "RESERVED 1 1");
  EXPECT_EQ(holder.line(), "a");
  auto waits = connect();
  waits.send("reserve\r\n");
  eventually([&] { return jobs_->stats().waiting_leases == 1; });
  server_->stop();
  EXPECT_EQ(waits.line(), "TIMED_OUT");
  EXPECT_TRUE(waits.ends());
  EXPECT_TRUE(holder.ends());
  eventually([&] { return count(job_state::ready) == 1; });
}

TEST_F(beanstalk_server_test, MetricsExistOnceItHasStarted) {
  beanstalk_server idle(options_);
  std::string out;
  idle.write_metrics(out);
  EXPECT_EQ(out, "");
  start();
  auto w = connect();
  w.send("stats\r\n");
  EXPECT_TRUE(w.line().starts_with("OK "));
  server_->write_metrics(out);
  EXPECT_NE(out.find("sluice_beanstalk_commands_total{command=\"stats\"} 1\n"), std::string::npos);
  EXPECT_NE(out.find("sluice_beanstalk_connections 1\n"), std::string::npos);
}

TEST_F(beanstalk_server_test, ManyStatsOfManyTubesAreAllAnswered) {
  start();
  for (int i = 0; i < 120; ++i) {
    EXPECT_TRUE(jobs_->push({.queue = "q" + std::to_string(i), .kind = "k"}).get());
  }
  auto w = connect();
  w.send("list-tubes\r\nstats\r\nlist-tubes\r\nlist-tube-used\r\n");
  for (int i = 0; i < 3; ++i) {
    const std::string head = w.line();
    EXPECT_TRUE(head.starts_with("OK ")) << head;
    EXPECT_TRUE(w.bytes(std::stoul(head.substr(3))).starts_with("---\n"));
    EXPECT_EQ(w.line(), "");
  }
  EXPECT_EQ(w.line(), "USING default");
}

// Producers and workers that pipeline, on several loops: every job is done exactly once.
TEST_F(beanstalk_server_test, NoJobIsLostOrDoneTwiceUnderLoad) {
  constexpr int pairs = 4;
  constexpr int jobs_each = 500;
  constexpr int depth = 16;
  options_.wire.threads = 2;
  start();
  std::atomic<int> wrong{0};
  std::vector<std::set<std::string>> done(pairs);
  {
    std::vector<std::jthread> all;
    for (int p = 0; p < pairs; ++p) {
      all.emplace_back([&, p] {
        socket_wire w(port_);
        for (int i = 0; i < jobs_each; i += depth) {
          const int some = std::min(depth, jobs_each - i);
          std::string puts;
          for (int k = 0; k < some; ++k) {
            const std::string body = std::to_string(p * jobs_each + i + k);
            puts += "put 0 0 60 " + std::to_string(body.size()) + "\r\n" + body + "\r\n";
          }
          w.send(puts);
          for (int k = 0; k < some; ++k) wrong += w.line().starts_with("INSERTED ") ? 0 : 1;
        }
      });
      all.emplace_back([&, p] {
        socket_wire w(port_);
        for (int i = 0; i < jobs_each; i += depth) {
          const int some = std::min(depth, jobs_each - i);
          std::string ask;
          for (int k = 0; k < some; ++k) ask += "reserve\r\n";
          w.send(ask);
          ask.clear();
          for (int k = 0; k < some; ++k) {
            const std::string head = w.line();
            wrong += head.starts_with("RESERVED ") ? 0 : 1;
            wrong += done[static_cast<std::size_t>(p)].insert(w.line()).second ? 0 : 1;
            ask += "delete " + head.substr(9, head.find(' ', 9) - 9) + "\r\n";
          }
          w.send(ask);
          for (int k = 0; k < some; ++k) wrong += w.line() == "DELETED" ? 0 : 1;
        }
      });
    }
  }
  std::set<std::string> every;
  for (const auto& some : done) every.insert(some.begin(), some.end());
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(every.size(), static_cast<std::size_t>(pairs * jobs_each));
  const auto info = jobs_->queue("default");
  EXPECT_EQ(info->counts.unfinished(), 0U);
}

}  // namespace
}  // namespace sluice::jobs::beanstalk_server_test
