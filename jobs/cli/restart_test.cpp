// Restarts of the real program under load: no push is refused, fails or is lost, and workers keep
// their leases.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "jobs/net/testing/socket_wire.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::cli::restart_test {
namespace {

using namespace std::chrono_literals;
using jobs::testing::socket_wire;
using sluice::testing::effort;
using sluice::testing::eventually;
using testing::ended;
using testing::make_file;
using testing::run_sluice;
using testing::server_program;
using testing::start_options;
using testing::temporary_folder;

client connect(const std::string& url) {
  return std::move(*client::open({.url = url}));
}

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Producers that push one job after the other: half of them on a connection that they keep, half on
// a new one for each push.
class producers {
 public:
  explicit producers(const std::string& url) {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, url, i] { run(url, i % 2 == 0 ? 60s : 0s, i); });
    }
  }
  ~producers() { stop(); }
  producers(const producers&) = delete;
  producers& operator=(const producers&) = delete;

  // Until each of them has pushed again.
  void await_progress() {
    const auto before = copy_of(done_);
    eventually([&] {
      if (!failures().empty()) return true;
      const auto now = copy_of(done_);
      for (std::size_t i = 0; i < count; ++i) {
        if (now[i] < before[i] + 3) return false;
      }
      return true;
    });
  }
  std::uint64_t stop() {
    stops_.request_stop();
    threads_.clear();  // joins
    std::uint64_t all = 0;
    for (const std::uint64_t n : copy_of(done_)) all += n;
    return all;
  }
  std::vector<std::string> failures() { return copy_of(failures_); }

 private:
  static constexpr std::size_t count = 4;

  template <class T>
  static T copy_of(guarded<T>& of) {
    return of.with([](const T& value) { return value; });
  }

  void run(const std::string& url, milliseconds keep_idle, std::size_t which) {
    auto c = std::move(*client::open({.url = url, .connections_max = 1, .keep_idle = keep_idle}));
    while (!stops_.stop_requested()) {
      const auto pushed = c.push({.queue = "load", .kind = "k"});
      if (pushed) {
        done_.with([which](auto& done) { ++done[which]; });
      } else {
        failures_.with([&](auto& all) { all.push_back(pushed.error().message); });
      }
    }
  }

  guarded<std::vector<std::uint64_t>> done_{std::vector<std::uint64_t>(count)};
  guarded<std::vector<std::string>> failures_;
  std::stop_source stops_;
  std::vector<seam::thread> threads_;
};

struct tally {
  std::uint64_t taken = 0;
  std::uint64_t unanswered = 0;
  std::vector<std::string> refusals{};
};

// Producers that speak the protocol of beanstalkd or Faktory, each on a connection that it opens
// again when a restart has closed it. A push without a reply may or may not be stored.
class wire_producers {
 public:
  struct dialect {
    std::uint16_t port = 0;
    std::string greeting{};  // sent in reply to the server's greeting; empty: none
    std::function<std::string(std::uint64_t number)> push{};
    std::string_view taken{};  // how a reply to a push begins
  };
  explicit wire_producers(dialect d) : dialect_(std::move(d)) {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { run(); });
  }
  ~wire_producers() { stop(); }
  wire_producers(const wire_producers&) = delete;
  wire_producers& operator=(const wire_producers&) = delete;

  void await_progress() {
    const std::uint64_t before = counts().taken;
    eventually([&] { return !counts().refusals.empty() || counts().taken >= before + 6; });
  }
  void expect_nothing_lost(const std::string& name, const std::string& queue,
                           const std::string& url) {
    stop();
    const tally all = counts();
    std::printf("%s: %llu pushes, %llu without a reply, %zu refused\n", name.c_str(),
                static_cast<unsigned long long>(all.taken),
                static_cast<unsigned long long>(all.unanswered), all.refusals.size());
    EXPECT_TRUE(all.refusals.empty()) << name << ": " << all.refusals.front();
    const auto found = connect(url).queue(queue);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GE(found->counts.ready, all.taken) << name;
    EXPECT_LE(found->counts.ready, all.taken + all.unanswered) << name;
  }

 private:
  void stop() {
    stops_.request_stop();
    threads_.clear();  // joins
  }
  tally counts() {
    return tally_.with([](const tally& t) { return t; });
  }
  void run() {
    while (!stops_.stop_requested()) {
      socket_wire wire(dialect_.port);
      if (!wire.connected()) {
        tally_.with([](tally& t) { t.refusals.emplace_back("the connection"); });
      } else if (begin(wire)) {
        push(wire);
      }
    }
  }
  bool begin(socket_wire& wire) const {
    if (dialect_.greeting.empty()) return true;
    return wire.line() != ended && wire.send(dialect_.greeting) && wire.line() != ended;
  }
  void push(socket_wire& wire) {
    while (!stops_.stop_requested()) {
      const std::string command = dialect_.push(number_.with([](auto& n) { return ++n; }));
      const std::string reply = wire.send(command) ? wire.line() : std::string(ended);
      tally_.with([&](tally& t) {
        if (reply.starts_with(dialect_.taken)) {
          ++t.taken;
        } else if (reply == ended) {
          ++t.unanswered;
        } else {
          t.refusals.push_back(reply);
        }
      });
      if (reply == ended) return;
    }
  }

  static constexpr std::string_view ended = "(the end)";  // of socket_wire::line

  const dialect dialect_;
  guarded<tally> tally_;
  guarded<std::uint64_t> number_{0U};
  std::stop_source stops_;
  std::vector<seam::thread> threads_;
};

// A worker whose job takes longer than all restarts.
class holder {
 public:
  explicit holder(const std::string& url) : client_(connect(url)) {
    EXPECT_TRUE(client_.push({.queue = "held", .kind = "k", .lease_for = 10min}));
    auto leased = client_.lease({.queues = {"held"}, .worker = "ada"}, deadline::after(30s));
    EXPECT_TRUE(leased) << leased.error().message;
    lease_ = leased->front().ref();
  }
  void expect_held() {
    const auto extended = client_.extend(lease_);
    EXPECT_TRUE(extended) << extended.error().message;
    const auto queue = client_.queue("held");
    ASSERT_TRUE(queue) << queue.error().message;
    EXPECT_EQ(queue->counts.ready, 0U) << "could be handed out twice";
    EXPECT_EQ(queue->counts.running, 1U);
  }
  void finish() {
    const auto acked = client_.ack(lease_);
    EXPECT_TRUE(acked) << acked.error().message;
  }

 private:
  client client_;
  lease_ref lease_;
};

void expect_nothing_lost(const std::string& url, producers& load, std::uint64_t restarts) {
  const std::uint64_t pushed = load.stop();
  const auto failures = load.failures();
  std::printf("%llu pushes in %llu restarts, %zu refused or failed\n",
              static_cast<unsigned long long>(pushed), static_cast<unsigned long long>(restarts),
              failures.size());
  EXPECT_TRUE(failures.empty()) << failures.front();
  const auto queue = connect(url).queue("load");
  ASSERT_TRUE(queue) << queue.error().message;
  EXPECT_EQ(queue->counts.ready, pushed);
}

// A listening socket as systemd holds it for a unit.
class unit_socket {
 public:
  unit_socket() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket, SOMAXCONN), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ::ntohs(address.sin_port);
    // A number above the descriptors that the program gets.
    descriptor_ = ::fcntl(socket, F_DUPFD_CLOEXEC, 100);
    ::close(socket);
  }
  ~unit_socket() { ::close(descriptor_); }
  unit_socket(const unit_socket&) = delete;
  unit_socket& operator=(const unit_socket&) = delete;

  int descriptor() const { return descriptor_; }
  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
};

constexpr sluice::testing::effort_counts restarts_of{.ci = 5, .full = 20, .sanitized = 3};

TEST(Restart, InPlaceRefusesNoPush) {
  const temporary_folder folder;
  server_program server(folder, {"--quiet"});
  const pid_t pid = server.itself().pid();
  holder worker(server.url());
  producers load(server.url());
  const std::uint64_t restarts = effort("Restart.InPlaceRefusesNoPush", "restarts", restarts_of);
  for (std::uint64_t i = 1; i <= restarts; ++i) {
    load.await_progress();
    server.itself().signal(SIGUSR2);
    eventually([&] { return times_in(server.itself().err(), " store open ") == i + 1; });
    worker.expect_held();
  }
  load.await_progress();
  expect_nothing_lost(server.url(), load, restarts);
  worker.finish();
  EXPECT_EQ(server.itself().pid(), pid);
  const ended end = server.stop();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(times_in(end.err, " stopped "), restarts + 1) << end.err;
}

TEST(Restart, RefusesNoPushOfBeanstalkAndFaktory) {
  const temporary_folder folder;
  server_program server(folder, {"--quiet", "--beanstalk", ":0", "--faktory", ":0"});
  wire_producers beanstalk({.port = server.port_for("beanstalk"),
                            .push = [](std::uint64_t) { return "put 0 0 60 1\r\nx\r\n"; },
                            .taken = "INSERTED "});
  wire_producers faktory({.port = server.port_for("faktory"),
                          .greeting = "HELLO {\"v\":2}\r\n",
                          .push =
                              [](std::uint64_t n) {
                                return "PUSH {\"jid\":\"push-number-" + std::to_string(n) +
                                       "\",\"jobtype\":\"k\",\"args\":[],\"queue\":\"load\"}\r\n";
                              },
                          .taken = "+OK"});
  const std::uint64_t restarts =
      effort("Restart.RefusesNoPushOfBeanstalkAndFaktory", "restarts", restarts_of);
  for (std::uint64_t i = 1; i <= restarts; ++i) {
    beanstalk.await_progress();
    faktory.await_progress();
    server.itself().signal(SIGUSR2);
    eventually([&] { return times_in(server.itself().err(), " store open ") == i + 1; });
  }
  beanstalk.await_progress();
  faktory.await_progress();
  beanstalk.expect_nothing_lost("beanstalk", "default", server.url());
  faktory.expect_nothing_lost("faktory", "load", server.url());
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Restart, WaitsForAJobOfFaktoryAndRefusesNoPush) {
  const temporary_folder folder;
  server_program server(folder, {"--quiet", "--faktory", ":0"});
  socket_wire worker(server.port_for("faktory"));
  EXPECT_TRUE(worker.line().starts_with("+HI "));
  worker.send("HELLO {\"v\":2,\"wid\":\"w1\",\"hostname\":\"h\",\"pid\":1}\r\n");
  EXPECT_EQ(worker.line(), "+OK");
  worker.send("PUSH {\"jid\":\"job-of-faktory\",\"jobtype\":\"k\",\"args\":[]}\r\n");
  EXPECT_EQ(worker.line(), "+OK");
  worker.send("FETCH default\r\n");
  EXPECT_TRUE(worker.line().starts_with("$"));
  EXPECT_HAS(worker.line(), "job-of-faktory");
  producers load(server.url());
  load.await_progress();
  server.itself().signal(SIGUSR2);
  eventually([&] { return times_in(server.itself().err(), " shutting down ") == 1; });
  worker.send("ACK {\"jid\":\"job-of-faktory\"}\r\n");
  EXPECT_EQ(worker.line(), "+OK");
  eventually([&] { return times_in(server.itself().err(), " store open ") == 2; });
  load.await_progress();
  expect_nothing_lost(server.url(), load, 1);
  const auto queue = connect(server.url()).queue("default");
  ASSERT_TRUE(queue) << queue.error().message;
  EXPECT_EQ(queue->counts.unfinished(), 0U) << "could be handed out twice";
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Restart, WithASocketOfSystemdRefusesNoPush) {
  const temporary_folder folder;
  const unit_socket unit;
  const start_options passed{.sockets = {{"http", unit.descriptor()}}};
  std::optional<server_program> server;
  server.emplace(folder, std::vector<std::string>{"--quiet"}, passed);
  EXPECT_EQ(server->url(), unit.url());
  holder worker(unit.url());
  producers load(unit.url());
  const std::uint64_t restarts =
      effort("Restart.WithASocketOfSystemdRefusesNoPush", "restarts", restarts_of);
  for (std::uint64_t i = 1; i <= restarts; ++i) {
    load.await_progress();
    const ended end = server->stop();
    EXPECT_EQ(end.code, 0) << end.err;
    server.emplace(folder, std::vector<std::string>{"--quiet"}, passed);
    worker.expect_held();
  }
  load.await_progress();
  expect_nothing_lost(unit.url(), load, restarts);
  worker.finish();
}

TEST(Restart, EveryPortAndTheSocketFileStayOpen) {
  const temporary_folder folder;
  const std::string path = folder.file("socket");
  server_program server(
      folder, {"--quiet", "--beanstalk", ":0", "--beanstalk-socket", path, "--faktory", ":0"});
  const std::uint16_t beanstalk = server.port_for("beanstalk");
  const std::uint16_t faktory = server.port_for("faktory");
  for (std::size_t i = 1; i <= 2; ++i) {
    server.itself().signal(SIGUSR2);
    // At once, whether or not the next server is there.
    socket_wire by_port(beanstalk);
    socket_wire by_path(path);
    socket_wire to_faktory(faktory);
    EXPECT_TRUE(by_port.connected() && by_path.connected() && to_faktory.connected());
    eventually([&] { return times_in(server.itself().err(), " store open ") == i + 1; });
  }
  socket_wire by_path(path);
  by_path.send("put 0 0 60 1\r\nx\r\n");
  EXPECT_TRUE(by_path.line().starts_with("INSERTED "));
  EXPECT_TRUE(socket_wire(faktory).line().starts_with("+HI {"));
  EXPECT_EQ(server.stop().code, 0);
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "the file is removed at the end";
}

TEST(Restart, SocketsOfSystemdServeEachProtocolByName) {
  const temporary_folder folder;
  const unit_socket http;
  const unit_socket beanstalk;
  const unit_socket faktory;
  server_program server(folder, {"--quiet", "--beanstalk", ":0", "--faktory", ":0"},
                        {.sockets = {{"faktory", faktory.descriptor()},
                                     {"http", http.descriptor()},
                                     {"beanstalk", beanstalk.descriptor()},
                                     {"other", unit_socket().descriptor()}}});
  EXPECT_EQ(server.url(), http.url());
  EXPECT_EQ(server.port_for("beanstalk"), beanstalk.port());
  EXPECT_EQ(server.port_for("faktory"), faktory.port());
  EXPECT_TRUE(connect(http.url()).push({.kind = "k"}));
  socket_wire to_beanstalk(beanstalk.port());
  to_beanstalk.send("put 0 0 60 1\r\nx\r\n");
  EXPECT_TRUE(to_beanstalk.line().starts_with("INSERTED "));
  EXPECT_TRUE(socket_wire(faktory.port()).line().starts_with("+HI {"));
  const ended end = server.stop();
  EXPECT_HAS(end.err, "no setting uses a passed socket socket=other");
}

TEST(Restart, ASocketOfSystemdWithAnotherAddressIsRefused) {
  const temporary_folder folder;
  const unit_socket unit;
  for (const std::string protocol : {"beanstalk", "faktory"}) {
    const ended end = run_sluice(
        {"serve", "--data", folder.file("data"), "--port", "0", "--" + protocol, "127.0.0.1:1"},
        {.sockets = {{protocol, unit.descriptor()}}});
    EXPECT_EQ(end.code, 2) << end.err;
    EXPECT_HAS(end.err, "systemd passed the socket '" + protocol +
                            "' on 127.0.0.1:" + std::to_string(unit.port()) +
                            ", but the configured address is 127.0.0.1:1");
  }
  const ended end = run_sluice({"serve", "--data", folder.file("data"), "--listen", "127.0.0.1:1"},
                               {.sockets = {{"http", unit.descriptor()}}});
  EXPECT_EQ(end.code, 2) << end.err;
  EXPECT_HAS(end.err, "ListenStream=127.0.0.1:1");
}

TEST(Restart, InPlaceKeepsItsSocketAndWarnsIfTheConfigurationHasAnotherAddress) {
  const temporary_folder folder;
  const std::string config = make_file(folder, "sluice.toml", "[beanstalk]\nlisten = ':0'\n");
  server_program server(folder, {"--quiet", "--config", config});
  const std::uint16_t port = server.port_for("beanstalk");
  make_file(folder, "sluice.toml", "[beanstalk]\nlisten = ':1'\n");
  server.itself().signal(SIGUSR2);
  eventually([&] { return times_in(server.itself().err(), " store open ") == 2; });
  socket_wire wire(port);
  wire.send("put 0 0 60 1\r\nx\r\n");
  EXPECT_TRUE(wire.line().starts_with("INSERTED "));
  EXPECT_HAS(server.itself().err(),
             "using the passed socket instead of the configured address socket=beanstalk");
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Restart, ASocketWithoutANameIsThatOfHttp) {
  const temporary_folder folder;
  const unit_socket unit;
  const server_program server(folder, {"--quiet"},
                              {.sockets = {{"sluice.socket", unit.descriptor()}}});
  EXPECT_EQ(server.url(), unit.url());
}

TEST(Restart, ASocketThatDoesNotListenIsRefused) {
  const temporary_folder folder;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const ended end = run_sluice({"serve", "--data", folder.file("data"), "--port", "0"},
                               {.sockets = {{"http", socket}}});
  ::close(socket);
  EXPECT_EQ(end.code, 2) << end.err;
  EXPECT_HAS(end.err, "the socket 'http' (descriptor 3) does not listen");
}

TEST(Restart, AConfigurationThatIsWrongDoesNotEndTheServer) {
  const temporary_folder folder;
  const std::string config = make_file(folder, "sluice.toml", "shutdown_grace = '1s'\n");
  server_program server(folder, {"--quiet", "--config", config});
  make_file(folder, "sluice.toml", "shutdown_grace = 'soon'\n");
  server.itself().signal(SIGUSR2);
  eventually([&] { return server.itself().err().find("restart rejected") != std::string::npos; });
  EXPECT_HAS(server.itself().err(), "shutdown_grace");
  EXPECT_TRUE(connect(server.url()).push({.kind = "k"}));
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Restart, AServerThatKeepsNothingIsNotRestarted) {
  const temporary_folder folder;
  server_program server(folder, {"--quiet", "--memory"});
  server.itself().signal(SIGUSR2);
  eventually([&] { return server.itself().err().find("restart rejected") != std::string::npos; });
  EXPECT_TRUE(connect(server.url()).push({.kind = "k"}));
}

}  // namespace
}  // namespace sluice::jobs::cli::restart_test
