// `sluice serve`: its start, refusals to start, and its end.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "jobs/net/testing/socket_wire.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::serve_test {
namespace {

using namespace std::chrono_literals;
using jobs::testing::socket_wire;
using sluice::testing::eventually;
using testing::ended;
using testing::make_file;
using testing::program;
using testing::run_sluice;
using testing::server_program;
using testing::temporary_folder;

client connect(const server_program& server) {
  return std::move(*client::open({.url = server.url()}));
}

job_id push(client& c) {
  auto pushed = c.push({.kind = "k"});
  EXPECT_TRUE(pushed) << pushed.error().message;
  return pushed->id;
}

leased_job lease(client& c) {
  auto leased = c.lease({}, deadline::after(30s));
  EXPECT_TRUE(leased) << leased.error().message;
  return leased->front();
}

TEST(Serve, PrintsItsAddressItsStoreAndFirstCommands) {
  const temporary_folder folder;
  server_program server(folder);
  eventually([&] { return server.itself().out().find("Ctrl-C") != std::string::npos; });
  const std::string banner = server.itself().out();
  EXPECT_HAS(banner, "listens on " + server.url() + "\n");
  EXPECT_HAS(banner, "sync=full");
  EXPECT_HAS(banner, folder.file("data"));
  EXPECT_HAS(banner, "0 ready, 0 scheduled, 0 held, 0 to be retried; 0 dead\n");
  EXPECT_HAS(banner, "curl " + server.url() + "/v1/jobs -d '");
  // With the path by which it was started, so that a shell finds it without PATH.
  EXPECT_HAS(banner, "  " SLUICE_PROGRAM " work --exec cat --url " + server.url() + "\n");
  EXPECT_HAS(banner, "  " SLUICE_PROGRAM " queues --url " + server.url() + "\n");
  const ended end = server.stop();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.err, " info  store open ");
  EXPECT_HAS(end.err, " scheduled=0 held=0 retrying=0 ");
  EXPECT_HAS(end.err, " info  listening url=" + server.url());
  EXPECT_HAS(end.err, " info  shutting down signal=SIGTERM leased=0");
  EXPECT_HAS(end.err, " info  stopped ");
}

TEST(Serve, LogsAsJson) {
  const temporary_folder folder;
  server_program server(folder, {"--log-json", "--quiet"});
  const ended end = server.stop();
  EXPECT_EQ(end.out, "");
  EXPECT_HAS(end.err, R"("level":"info","event":"listening","url":")" + server.url() + '"');
  for (std::size_t at = 0; at < end.err.size(); at = end.err.find('\n', at) + 1) {
    EXPECT_EQ(end.err[at], '{');
  }
}

TEST(Serve, KeepsItsJobsAcrossRestarts) {
  const temporary_folder folder;
  {
    server_program server(folder);
    auto c = connect(server);
    push(c);
    EXPECT_EQ(server.stop().code, 0);
  }
  server_program server(folder);
  auto c = connect(server);
  EXPECT_EQ(lease(c).job->spec.kind, "k");
}

TEST(Serve, ForgetsEverythingWithMemory) {
  const temporary_folder folder;
  server_program server(folder, {"--memory"});
  auto c = connect(server);
  push(c);
  const ended end = server.stop();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.err, " warn  nothing is stored ");
  EXPECT_HAS(end.err, "--capacity-bytes");
  EXPECT_NE(::access(folder.file("data").c_str(), F_OK), 0) << "a folder was created";
}

TEST(Serve, EnforcesItsLimitsOfQueuesLeasesAndWaits) {
  const temporary_folder folder;
  server_program server(folder, {"--max-queues", "1", "--max-leases", "1", "--max-waiting", "2"});
  auto c = connect(server);
  // The other waiting call is the server's own, for webhooks.
  auto waits = c.async_lease({}, deadline::after(30s));
  eventually([&] {
    const auto stats = c.stats();
    return stats && stats->waiting_leases == 2;
  });
  const auto second = c.lease({}, deadline::after(30s));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::overloaded) << second.error().message;
  push(c);
  EXPECT_TRUE(waits.get());
  push(c);
  const auto third = c.lease({}, deadline::after(30s));  // a job is ready, but one runs already
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, error_code::overloaded) << third.error().message;
  const auto another = c.push({.queue = "another", .kind = "k"});
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().code, error_code::overloaded) << another.error().message;
}

TEST(Serve, RefusesAnAddressThatIsTaken) {
  const temporary_folder folder;
  const server_program first(folder);
  const ended second =
      run_sluice({"serve", "--data", folder.file("other"), "--listen", first.url().substr(7)});
  EXPECT_EQ(second.code, 8);
  EXPECT_HAS(second.err, "cannot listen on");
  EXPECT_HAS(second.err, first.url().substr(first.url().rfind(':') + 1));
}

TEST(Serve, RefusesDataThatAnotherServerHasOpen) {
  const temporary_folder folder;
  const server_program first(folder);
  const ended second = run_sluice({"serve", "--data", folder.file("data"), "--port", "0"});
  EXPECT_EQ(second.code, 7);
  EXPECT_HAS(second.err, "jobs.db");
}

TEST(Serve, RefusesAFolderThatItCannotCreateOrUse) {
  const temporary_folder folder;
  ended end = run_sluice({"serve", "--port", "0", "--data", folder.file("none/data")});
  EXPECT_EQ(end.code, 7);
  EXPECT_HAS(end.err, "none/data");
  EXPECT_HAS(end.err, "--data");
  end = run_sluice({"serve", "--port", "0", "--data", make_file(folder, "file", "x")});
  EXPECT_EQ(end.code, 7);
  EXPECT_HAS(end.err, "--data must be a folder");
  if (::geteuid() == 0) return;  // root may write everywhere
  ASSERT_EQ(::mkdir(folder.file("sealed").c_str(), 0500), 0);
  end = run_sluice({"serve", "--port", "0", "--data", folder.file("sealed")});
  EXPECT_EQ(end.code, 7);
  EXPECT_HAS(end.err, "access to it");
}

TEST(Serve, RefusesAFileThatIsNoStore) {
  const temporary_folder folder;
  ASSERT_EQ(::mkdir(folder.file("data").c_str(), 0700), 0);
  make_file(folder, "data/jobs.db", std::string(8192, 'x'));
  const ended end = run_sluice({"serve", "--port", "0", "--data", folder.file("data")});
  EXPECT_EQ(end.code, 7);
  EXPECT_HAS(end.err, "jobs.db");
}

TEST(Serve, DoesNotWaitForWorkersOfTheHttpApi) {
  const temporary_folder folder;
  leased_job job;
  {
    server_program server(folder);
    auto c = connect(server);
    push(c);
    job = lease(c);
    const ended end = server.stop();
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_HAS(end.err, "shutting down signal=SIGTERM leased=1");
    EXPECT_EQ(end.err.find("did not finish"), std::string::npos) << end.err;
  }
  server_program server(folder);
  auto c = connect(server);
  const auto again = c.lease({}, deadline::after(0s));
  EXPECT_FALSE(again) << "handed out twice";
  const auto extended = c.extend(job.ref());
  EXPECT_TRUE(extended) << extended.error().message;
  const auto acked = c.ack(job.ref());
  EXPECT_TRUE(acked) << acked.error().message;
}

TEST(Serve, RepliesToWaitingCallsAtShutdown) {
  const temporary_folder folder;
  server_program server(folder);
  auto c = connect(server);
  // The other waiting call is the server's own, for webhooks.
  auto waits = c.async_lease({}, deadline::after(60s));
  eventually([&] {
    const auto stats = c.stats();
    return stats && stats->waiting_leases == 2;
  });
  EXPECT_EQ(server.stop().code, 0);
  const auto answered = waits.get();
  ASSERT_FALSE(answered);
  EXPECT_EQ(answered.error().code, error_code::shutting_down) << answered.error().message;
}

TEST(Serve, EndsAtOnceOnASecondSignalAndHasLostNothing) {
  const temporary_folder folder;
  {
    server_program server(folder, {"--beanstalk", ":0"});
    auto c = connect(server);
    push(c);
    push(c);
    // It waits for a job held by a connection of beanstalk.
    socket_wire beanstalk(server.port_for("beanstalk"));
    beanstalk.send("reserve\r\n");
    ASSERT_TRUE(beanstalk.line().starts_with("RESERVED "));
    server.itself().signal(SIGINT);
    eventually([&] { return server.itself().err().find("shutting down") != std::string::npos; });
    server.itself().signal(SIGINT);
    const ended end = server.itself().wait();
    EXPECT_EQ(end.code, 130) << end.err;
    EXPECT_HAS(end.err, "ending at once signal=SIGINT leased=1");
  }
  server_program server(folder);
  auto c = connect(server);
  const auto queue = c.queue("default");
  ASSERT_TRUE(queue) << queue.error().message;
  EXPECT_EQ(queue->counts.unfinished(), 2U);
}

// A client that requests much data and reads none of it.
class deaf_client {
 public:
  deaf_client(const server_program& server, const std::string& target) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int small = 4096;
    EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    const std::string port = server.url().substr(server.url().rfind(':') + 1);
    address.sin_port = ::htons(static_cast<std::uint16_t>(std::stoi(port)));
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::string asks = "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    EXPECT_EQ(::send(socket_, asks.data(), asks.size(), 0), static_cast<ssize_t>(asks.size()));
  }
  ~deaf_client() { ::close(socket_); }
  deaf_client(const deaf_client&) = delete;
  deaf_client& operator=(const deaf_client&) = delete;

  bool is_answered() const {
    pollfd file{socket_, POLLIN, 0};
    return ::poll(&file, 1, 0) == 1;
  }

 private:
  int socket_;
};

TEST(Serve, EndsAtOnceOnASecondSignalWhenAClientBlocksItsEnd) {
  const temporary_folder folder;
  server_program server(folder);
  auto c = connect(server);
  const job_spec large{.kind = "k", .args = {'"' + std::string(4'000'000, 'x') + '"'}};
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(c.push(large));  // more than sockets hold
  const deaf_client deaf(server, "/v1/jobs?limit=5");
  eventually([&] { return deaf.is_answered(); });
  server.itself().signal(SIGTERM);
  eventually(
      [&] { return server.itself().err().find("closing connections") != std::string::npos; });
  server.itself().signal(SIGTERM);
  const ended end = server.itself().wait();
  EXPECT_EQ(end.code, 143) << end.err;
  EXPECT_HAS(end.err, "ending at once signal=SIGTERM leased=0");
}

TEST(Serve, RejectsPushesWhileItsDiskFailsAndAcceptsThemAgain) {
  const temporary_folder folder;
  server_program server(folder);
  auto c = connect(server);
  const job_spec large{.kind = "k", .args = {'"' + std::string(400'000, 'x') + '"'}};
  // Its file is already longer than the limit: no write beyond its end succeeds.
  EXPECT_TRUE(c.push(large));
  server.itself().limit_files(200'000);
  const auto refused = c.push(large);
  ASSERT_FALSE(refused) << "an acknowledged job is missing";
  eventually([&] { return server.itself().err().find("store fails") != std::string::npos; });
  EXPECT_HAS(server.itself().err(), "error store fails pushes=rejected code=");
  const auto health = c.health();
  ASSERT_TRUE(health) << health.error().message;
  EXPECT_FALSE(health->takes_pushes);

  server.itself().limit_files({});
  eventually([&] { return server.itself().err().find("store works again") != std::string::npos; });
  push(c);
  const auto queue = c.queue("default");
  ASSERT_TRUE(queue) << queue.error().message;
  EXPECT_EQ(queue->counts.ready, 2U) << "the refused job is not stored";
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Stats, AreRepeatedUntilASignal) {
  const temporary_folder folder;
  const server_program server(folder);
  program watch({"stats", "--watch", "5ms", "--url", server.url()});
  eventually([&] { return watch.out().find("rates ") != std::string::npos; });
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait().code, 0);
}

TEST(Work, FinishesRunningJobsAtShutdown) {
  const temporary_folder folder;
  server_program server(folder);
  auto c = connect(server);
  push(c);
  const std::string started = folder.file("started");
  const std::string go_on = folder.file("go-on");
  ASSERT_EQ(::mkfifo(go_on.c_str(), 0600), 0);
  program worker({"work", "--url", server.url(), "--exec",
                  "touch " + started + "; cat " + go_on + " >/dev/null"});
  eventually([&] { return ::access(started.c_str(), F_OK) == 0; });
  worker.signal(SIGTERM);
  eventually([&] { return worker.err().find("finishing running jobs") != std::string::npos; });
  make_file(folder, "go-on", "x");
  const ended end = worker.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.out, "job 1 k succeeded");
}

TEST(Work, DetectsAFailedCommandWhenStartedWithSigchldIgnored) {
  const temporary_folder folder;
  server_program server(folder);
  auto c = connect(server);
  push(c);
  auto* const before = ::signal(SIGCHLD, SIG_IGN);  // survives the start of a program
  program worker({"work", "--url", server.url(), "--jobs", "1", "--exec", "exit 3"});
  ::signal(SIGCHLD, before);
  const ended end = worker.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.out, "job 1 k failed: exit_code: exit code 3");
  const auto queue = c.queue("default");
  ASSERT_TRUE(queue) << queue.error().message;
  EXPECT_EQ(queue->counts.retrying, 1U) << "it was not done, and must not be lost";
}

TEST(Work, ReleasesRunningJobsOnASecondSignal) {
  const temporary_folder folder;
  server_program server(folder);
  auto c = connect(server);
  push(c);
  const std::string started = folder.file("started");
  program worker(
      {"work", "--url", server.url(), "--exec", "touch " + started + "; exec tail -f /dev/null"});
  eventually([&] { return ::access(started.c_str(), F_OK) == 0; });
  worker.signal(SIGINT);
  eventually([&] { return worker.err().find("finishing running jobs") != std::string::npos; });
  worker.signal(SIGINT);
  const ended end = worker.wait();
  EXPECT_EQ(end.code, 130) << end.err;
  const auto queue = c.queue("default");
  ASSERT_TRUE(queue) << queue.error().message;
  EXPECT_EQ(queue->counts.running, 0U);
  EXPECT_EQ(queue->counts.ready, 1U) << "it was not done, and another worker can lease it";
}

TEST(Work, WaitsForAMissingServer) {
  program worker({"work", "--url", "http://127.0.0.1:1", "--exec", "cat"});
  eventually([&] {
    return worker.err().find("127.0.0.1:1 ") != std::string::npos ||
           worker.err().find("unavailable") != std::string::npos;
  });
  EXPECT_FALSE(worker.has_ended());
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait().code, 0);
}

}  // namespace
}  // namespace sluice::jobs::cli::serve_test
