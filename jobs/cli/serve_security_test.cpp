// `sluice serve` with tokens, certificates, a configuration file and systemd: refusals, reloads,
// and secrets that must not be logged.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "jobs/auth/token_file.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "jobs/http/testing/certificates.hpp"
#include "jobs/http/testing/wire.hpp"
#include "jobs/net/testing/socket_wire.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::serve_security_test {
namespace {

using jobs::testing::make_certificate;
using jobs::testing::wire;
using sluice::testing::eventually;
using testing::ended;
using testing::make_file;
using testing::run_sluice;
using testing::server_program;
using testing::temporary_folder;

class ServeSecurity : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_.file("data")); }

  token_set::created make_token(role_set roles) {
    return change_tokens(token_file_in(folder_.file("data")),
                         [&](token_set& all) {
                           return all.create({.name = "test", .roles = roles}, real_time().now());
                         })
        .value();
  }
  static std::uint16_t port_of(const server_program& server) {
    return static_cast<std::uint16_t>(std::stoul(server.url().substr(server.url().rfind(':') + 1)));
  }
  std::string secure_url(const server_program& server) const {
    return "https://localhost:" + std::to_string(port_of(server));
  }
  // Waits until the log has this text `times` times.
  static void wait_for(server_program& server, const std::string& text, std::size_t times = 1) {
    eventually([&] {
      std::size_t found = 0;
      const std::string log = server.itself().err();
      for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++found;
      return found >= times;
    });
  }

  temporary_folder folder_;
};

TEST_F(ServeSecurity, RequiresATokenOnceThereIsOne) {
  const auto made = make_token({role::push, role::read});
  server_program server(folder_);
  client nobody = client::open({.url = server.url()}).value();
  EXPECT_EQ(nobody.queues().error().code, error_code::unauthenticated);
  client somebody = client::open({.url = server.url(), .token = made.text}).value();
  EXPECT_TRUE(somebody.push({.kind = "k"}));
  EXPECT_EQ(somebody.purge("default").error().code, error_code::forbidden);
  const ended by_command = server.run({"queues"}, {.environment = {"SLUICE_TOKEN=" + made.text}});
  EXPECT_EQ(by_command.code, 0) << by_command.err;
  EXPECT_NE(server.run({"queues"}).code, 0);
}

TEST_F(ServeSecurity, ReloadsTokensWhileItServes) {
  server_program server(folder_);
  client nobody = client::open({.url = server.url()}).value();
  EXPECT_TRUE(nobody.queues());
  const auto made = make_token({role::read});
  const std::string loaded = "from=SIGHUP act=\"reload tokens\" outcome=ok";  // not automatic
  server.itself().signal(SIGHUP);
  wait_for(server, loaded);
  EXPECT_EQ(nobody.queues().error().code, error_code::unauthenticated);
  client somebody = client::open({.url = server.url(), .token = made.text}).value();
  EXPECT_TRUE(somebody.queues());
  ASSERT_TRUE(change_tokens(token_file_in(folder_.file("data")),
                            [&](token_set& all) { return all.remove(made.info.id); }));
  server.itself().signal(SIGHUP);
  wait_for(server, loaded, 2);
  EXPECT_EQ(somebody.queues().error().code, error_code::unauthenticated);
  EXPECT_EQ(nobody.queues().error().code, error_code::unauthenticated)
      << "a token stays required without any token";
}

TEST_F(ServeSecurity, DetectsCreatedAndRevokedTokensAndAuditsThem) {
  const auto first = make_token({role::read});
  server_program server(folder_);
  client c = client::open({.url = server.url(), .token = first.text}).value();
  EXPECT_TRUE(c.queues());
  const auto second = make_token({role::admin});
  wait_for(server, "act=\"create token " + second.info.id + " (test)\" outcome=ok");
  ASSERT_TRUE(change_tokens(token_file_in(folder_.file("data")),
                            [&](token_set& all) { return all.revoke(first.info.id); }));
  wait_for(server, "act=\"revoke token " + first.info.id + " (test)\" outcome=ok");
  eventually([&] { return !c.queues(); });
}

TEST_F(ServeSecurity, EndsAWaitingLeaseWhenItsTokenIsRevokedByCommand) {
  const auto worker = make_token({role::work});
  const auto reader = make_token({role::read});
  server_program server(folder_);
  client c = client::open({.url = server.url(), .token = reader.text}).value();
  wire w(port_of(server));
  w.request("POST", "/v1/leases", R"({"wait":"10m"})",
            "Authorization: Bearer " + worker.text + "\r\n");
  // One of the two is the server's own delivery.
  eventually([&] { return c.stats()->waiting_leases == 2; });
  const ended revoked =
      run_sluice({"token", "revoke", worker.info.id, "--data", folder_.file("data")});
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  const auto from = std::chrono::steady_clock::now();
  const auto got = w.receive();
  const auto took = std::chrono::steady_clock::now() - from;
  EXPECT_EQ(got.status, 401) << got.body;
  EXPECT_NE(got.body.find(worker.info.id), std::string::npos) << got.body;
  std::printf("401 after %.3f s\n", std::chrono::duration<double>(took).count());
  EXPECT_LT(took, std::chrono::seconds(30));  // 2 s on an idle machine
  EXPECT_EQ(c.stats()->waiting_leases, 1U);
}

TEST_F(ServeSecurity, DoesNotStartOnTokensThatOthersCanRead) {
  make_token({role::read});
  ASSERT_EQ(::chmod(token_file_in(folder_.file("data")).c_str(), 0644), 0);
  const ended end = run_sluice({"serve", "--port", "0", "--data", folder_.file("data")});
  EXPECT_EQ(end.code, 2);
  EXPECT_NE(end.err.find("chmod 600"), std::string::npos) << end.err;
}

TEST_F(ServeSecurity, ListensForOthersOnlyWithATokenAndTls) {
  const std::vector<std::string> words = {"serve", "--listen", "0.0.0.0:0", "--data",
                                          folder_.file("data")};
  ended end = run_sluice(words);
  EXPECT_EQ(end.code, 2);
  EXPECT_NE(end.err.find("sluice token create"), std::string::npos) << end.err;
  make_token({role::read});
  end = run_sluice(words);
  EXPECT_EQ(end.code, 2);
  EXPECT_NE(end.err.find("tls.cert"), std::string::npos) << end.err;
  server_program server(folder_, {"--listen", "0.0.0.0:0", "--insecure-http"});
  EXPECT_NE(server.stop().err.find("are sent unencrypted"), std::string::npos);
}

TEST_F(ServeSecurity, ReplacesItsCertificateWhileAConnectionIsOpen) {
  const tls_files first = make_certificate(folder_, "first");
  server_program server(folder_, {"--tls-cert", first.certificate, "--tls-key", first.key});
  client before = client::open({.url = secure_url(server), .ca_file = first.certificate}).value();
  ASSERT_TRUE(before.push({.kind = "k"}));

  const tls_files second = make_certificate(folder_, "second");
  const std::string trusts_first = make_file(folder_, "trust", testing::text_of(first.certificate));
  const auto over = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(second.certificate, first.certificate, over);
  server.itself().signal(SIGHUP);
  wait_for(server, "reload failed, keeping the previous state what=certificate");
  EXPECT_TRUE(client::open({.url = secure_url(server), .ca_file = trusts_first}).value().queues())
      << "its key is missing, so the first certificate is still used";

  std::filesystem::copy_file(second.key, first.key, over);
  server.itself().signal(SIGHUP);
  wait_for(server, "info  reloaded what=certificate");
  EXPECT_TRUE(before.queues()) << "on the connection that was open";
  EXPECT_TRUE(
      client::open({.url = secure_url(server), .ca_file = second.certificate}).value().queues());
  EXPECT_FALSE(client::open({.url = secure_url(server), .ca_file = trusts_first}).value().queues());
}

TEST_F(ServeSecurity, ReloadsItsFile) {
  const std::string file = make_file(folder_, "c.toml", "[queues.mail]\ncapacity_jobs = 5\n");
  server_program server(folder_, {"--config", file});
  client c = client::open({.url = server.url()}).value();
  EXPECT_EQ(c.queue("mail")->options.capacity_jobs, 5U);
  make_file(folder_, "c.toml", "[queues.mail]\ncapacity_jobs = 6\n");
  server.itself().signal(SIGHUP);
  wait_for(server, "reloaded what=configuration");
  EXPECT_EQ(c.queue("mail")->options.capacity_jobs, 6U);
  make_file(folder_, "c.toml", "[queues.mail]\ncapacity_jobs = 'many'\n");
  server.itself().signal(SIGHUP);
  wait_for(server, "reload failed, keeping the previous state what=configuration");
  EXPECT_EQ(c.queue("mail")->options.capacity_jobs, 6U);
}

TEST_F(ServeSecurity, ReportsEveryMistakeInItsFile) {
  const std::string file =
      make_file(folder_, "c.toml", "[http]\nidle_tme = '1s'\nmax_connections = 0\n");
  const ended end = run_sluice({"serve", "--config", file, "--data", folder_.file("data")});
  EXPECT_EQ(end.code, 2);
  EXPECT_NE(end.err.find(file + ":2:1: [http] idle_tme"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find(file + ":3:1: [http] max_connections must be from"), std::string::npos);
}

TEST_F(ServeSecurity, PrintsTheEffectiveSettingsAndStartsNothing) {
  const std::string file = make_file(folder_, "c.toml", "http.idle_time = '5s'\n");
  const ended end = run_sluice({"serve", "--config", file, "--check-config", "--sync", "off",
                                "--data", folder_.file("none")},
                               {.environment = {"SLUICE_LOG_LEVEL=warn"}});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_NE(end.out.find(file + ":1"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("--sync"), std::string::npos);
  EXPECT_NE(end.out.find("SLUICE_LOG_LEVEL"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("none")));
}

TEST_F(ServeSecurity, TakesItsLimitsFromItsFile) {
  const std::string file =
      make_file(folder_, "c.toml", "[http]\nmax_body = '1KB'\nmax_head = '1KB'\n");
  server_program server(folder_, {"--config", file});
  wire large(port_of(server));
  large.request("POST", "/v1/jobs", "{\"kind\":\"" + std::string(2000, 'k') + "\"}");
  EXPECT_EQ(large.receive().status, 413);
  wire line(port_of(server));
  line.request("GET", "/" + std::string(2000, 'x'));
  EXPECT_EQ(line.receive().status, 414);
  wire head(port_of(server));
  head.request("GET", "/healthz", "", "X: " + std::string(2000, 'x') + "\r\n");
  EXPECT_EQ(head.receive().status, 431);
}

TEST_F(ServeSecurity, TakesTheTimeoutsOfClientsFromItsFile) {
  // Not both in one test: a slow client would be idle before it begins.
  const std::string file = make_file(folder_, "c.toml", "[http]\nhead_time = '50ms'\n");
  {
    server_program server(folder_, {"--config", file});
    wire slow(port_of(server));
    slow.send("GET /hea");
    EXPECT_EQ(slow.receive().status, 408);
  }
  make_file(folder_, "c.toml", "[http]\nidle_time = '50ms'\n");
  server_program server(folder_, {"--config", file});
  wire idle(port_of(server));
  EXPECT_TRUE(idle.ends());
}

TEST_F(ServeSecurity, WritesAnAuditLineForEveryAdministrativeAct) {
  const auto made = make_token({role::admin});
  const std::string file = folder_.file("audit");
  server_program server(folder_, {"--audit-log", file, "--log-level", "off"});
  client c = client::open({.url = server.url(), .token = made.text}).value();
  const auto id = c.push({.kind = "k"})->id;
  ASSERT_TRUE(c.cancel(id));
  ASSERT_TRUE(c.configure("default", {.paused = true}));
  ASSERT_TRUE(c.purge("default"));
  server.itself().signal(SIGHUP);
  eventually([&] { return testing::text_of(file).find("reload tokens") != std::string::npos; });
  EXPECT_EQ(server.stop().code, 0);
  const std::string audit = testing::text_of(file);
  const std::string who = "audit who=" + made.info.id + " from=127.0.0.1 ";
  for (const std::string& line :
       {std::string("audit who=local from=start act=\"start http://"),
        who + "act=\"POST /v1/jobs/" + std::to_string(id) + "/cancel\" outcome=200",
        who + "act=\"PATCH /v1/queues/default\" outcome=200",
        who + "act=\"POST /v1/queues/default/purge\" outcome=200",
        std::string("audit who=local from=SIGHUP act=\"reload tokens\" outcome=ok"),
        std::string("audit who=local from=SIGTERM act=stop")}) {
    EXPECT_NE(audit.find(line), std::string::npos) << line << "\nis not in\n" << audit;
  }
}

TEST_F(ServeSecurity, KeepsAnEntryPausedUnlessTheFileResumesIt) {
  const std::string entry = "[[cron]]\nname = 'n'\nschedule = '@yearly'\nkind = 'k'\n";
  const std::string config = make_file(folder_, "c.toml", entry);
  const auto is_paused = [](const server_program& server) {
    const ended shown = server.run({"cron", "--json"});
    EXPECT_EQ(shown.code, 0) << shown.err;
    return shown.out.find(R"("paused":true)") != std::string::npos;
  };
  {
    server_program server(folder_, {"--config", config});
    EXPECT_FALSE(is_paused(server));
    EXPECT_EQ(server.run({"cron", "pause", "n"}).code, 0);
    server.itself().signal(SIGHUP);
    wait_for(server, "reloaded what=configuration");
    EXPECT_TRUE(is_paused(server)) << "after SIGHUP";
    EXPECT_EQ(server.stop().code, 0);
  }
  server_program server(folder_, {"--config", config});
  EXPECT_TRUE(is_paused(server)) << "after a start";
  make_file(folder_, "c.toml", entry + "paused = false\n");
  server.itself().signal(SIGHUP);
  wait_for(server, "reloaded what=configuration");
  EXPECT_FALSE(is_paused(server)) << "the file sets it";
}

TEST_F(ServeSecurity, LogsNoSecret) {
  const auto good = make_token({role::admin});
  const auto other = make_token({role::read});
  const std::string secret = good.text.substr(13);
  const std::string wrong = good.text.substr(0, 13) + other.text.substr(13);
  const std::string file = folder_.file("audit");
  const std::string signs = make_file(folder_, "signs", "hunter2-hunter2-hunter2\n");
  ASSERT_EQ(::chmod(signs.c_str(), 0600), 0);
  const std::string config =
      make_file(folder_, "c.toml", "delivery.secret_file = '" + signs + "'\n");
  server_program server(folder_, {"--audit-log", file, "--log-level", "debug", "--config", config});
  const auto ask = [&](const std::string& target, const std::string& token) {
    wire w(port_of(server));
    w.request("POST", target, "{}", "Authorization: Bearer " + token + "\r\n");
    return w.receive();
  };
  std::string answers;
  for (const std::string& token : {good.text, wrong, "x" + good.text, good.text + "x"}) {
    for (const std::string& target :
         {std::string("/v1/queues/q/pause"), "/v1/queues/q/pause?token=" + token,
          "/v1/nothing?access_token=" + token, std::string("/v1/queues/q/purge")}) {
      answers += ask(target, token).body;
    }
  }
  server.itself().signal(SIGHUP);
  wait_for(server, "reloaded what=tokens");
  const ended end = server.stop();
  for (const std::string& text : {end.out, end.err, testing::text_of(file), answers}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << text;
    EXPECT_EQ(text.find(other.text.substr(13)), std::string::npos) << text;
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
    EXPECT_EQ(text.find("Bearer slk_" + good.info.id), std::string::npos) << text;
  }
  EXPECT_NE(end.err.find("requests with unknown tokens"), std::string::npos) << end.err;
}

// The notification socket of systemd, to which a service sends its state.
class systemd_socket {
 public:
  explicit systemd_socket(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un here{};
    here.sun_family = AF_UNIX;
    std::memcpy(here.sun_path, name.c_str(), name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
    const timeval patience{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~systemd_socket() { ::close(socket_); }
  systemd_socket(const systemd_socket&) = delete;
  systemd_socket& operator=(const systemd_socket&) = delete;

  std::string received() const {
    char text[512];
    ssize_t n = 0;
    do {
      n = ::recv(socket_, text, sizeof text, 0);
    } while (n < 0 && errno == EINTR);  // the thread was stopped and continued (signal(7))
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "nothing";
  }

 private:
  int socket_;
};

TEST_F(ServeSecurity, ReportsItsStateToSystemd) {
  const std::string name = folder_.file("notify");
  const systemd_socket systemd(name);
  server_program server(folder_, {}, {.environment = {"NOTIFY_SOCKET=" + name}});
  EXPECT_EQ(systemd.received(), "READY=1\nSTATUS=listening on " + server.url() + "\n");
  server.itself().signal(SIGHUP);
  EXPECT_TRUE(systemd.received().starts_with("RELOADING=1\n"));
  EXPECT_TRUE(systemd.received().starts_with("READY=1\n"));
  server.itself().signal(SIGTERM);
  EXPECT_TRUE(systemd.received().starts_with("STOPPING=1\n"));
  EXPECT_EQ(server.itself().wait().code, 0);
}

// A separate test: the socket holds few messages, and these arrive continuously.
TEST_F(ServeSecurity, SendsTheWatchdogSignalToSystemd) {
  const std::string name = folder_.file("notify");
  const systemd_socket systemd(name);
  server_program server(folder_, {},
                        {.environment = {"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=20000"}});
  EXPECT_TRUE(systemd.received().starts_with("READY=1\n"));
  EXPECT_EQ(systemd.received(), "WATCHDOG=1\n");
  EXPECT_EQ(systemd.received(), "WATCHDOG=1\n");
  EXPECT_EQ(server.stop().code, 0);
}

TEST_F(ServeSecurity, SendsTheWatchdogSignalWhileItStops) {
  const std::string name = folder_.file("notify");
  const systemd_socket systemd(name);
  server_program server(folder_, {"--beanstalk", ":0"},
                        {.environment = {"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=20000"}});
  jobs::testing::socket_wire worker(server.port_for("beanstalk"));
  worker.send("put 0 0 60 1\r\nx\r\nreserve\r\n");
  EXPECT_TRUE(worker.line().starts_with("INSERTED "));
  EXPECT_TRUE(worker.line().starts_with("RESERVED "));
  server.itself().signal(SIGTERM);
  while (!systemd.received().starts_with("STOPPING=1\n")) {
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(systemd.received(), "WATCHDOG=1\n");
  worker.close();  // releases its job, so the stop completes
  EXPECT_EQ(server.itself().wait().code, 0);
}

}  // namespace
}  // namespace sluice::jobs::cli::serve_security_test
