// `sluice serve` for clients of beanstalkd and Faktory: addresses, access control and shutdown.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "jobs/http/testing/certificates.hpp"
#include "jobs/http/testing/tls_wire.hpp"
#include "jobs/http/testing/wire.hpp"
#include "jobs/net/testing/socket_wire.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::serve_protocols_test {
namespace {

using namespace std::chrono_literals;
using jobs::testing::make_certificate;
using jobs::testing::socket_wire;
using jobs::testing::tls_wire;
using jobs::testing::wire;
using sluice::testing::eventually;
using testing::ended;
using testing::make_file;
using testing::run_sluice;
using testing::server_program;
using testing::temporary_folder;

const std::vector<std::string> both = {"--beanstalk", ":0", "--faktory", ":0"};

std::string put(socket_wire& wire, const std::string& body) {
  wire.send("put 0 0 60 " + std::to_string(body.size()) + "\r\n" + body + "\r\n");
  return wire.line();
}

void wait_for(server_program& server, const std::string& text) {
  eventually([&] { return server.itself().err().find(text) != std::string::npos; });
}

// Sends HELLO as a producer and returns the reply.
std::string hello(socket_wire& wire) {
  EXPECT_TRUE(wire.line().starts_with("+HI {"));
  wire.send("HELLO {\"v\":2}\r\n");
  return wire.line();
}

TEST(ServeProtocols, AreOffAndTheBannerShowsHowToTurnThemOn) {
  const temporary_folder folder;
  server_program server(folder);
  eventually([&] { return server.itself().out().find("Ctrl-C") != std::string::npos; });
  EXPECT_HAS(server.itself().out(), "--beanstalk :11300, --faktory :7419\n");
  const ended end = server.stop();
  EXPECT_EQ(end.err.find("beanstalk"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("faktory"), std::string::npos) << end.err;
}

TEST(ServeProtocols, PrintTheirAddressesForPeopleAndPrograms) {
  const temporary_folder folder;
  const std::string socket = folder.file("socket");
  auto words = both;
  words.insert(words.end(), {"--beanstalk-socket", socket});
  server_program server(folder, words);
  const std::string beanstalk = "127.0.0.1:" + std::to_string(server.port_for("beanstalk"));
  const std::string faktory = "127.0.0.1:" + std::to_string(server.port_for("faktory"));
  eventually([&] { return server.itself().out().find("Ctrl-C") != std::string::npos; });
  const std::string banner = server.itself().out();
  EXPECT_HAS(banner, "  also     beanstalk on " + beanstalk + "\n");
  EXPECT_HAS(banner, "beanstalk on " + socket + "\n");
  EXPECT_HAS(banner, "faktory on " + faktory + "\n");
  socket_wire by_path(socket);
  EXPECT_TRUE(put(by_path, "x").starts_with("INSERTED "));
  const ended end = server.stop();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.err, " info  listening beanstalk=" + beanstalk + " tls=no\n");
  EXPECT_HAS(end.err, " info  listening faktory=" + faktory + " tls=no password=no\n");
  EXPECT_HAS(end.err, "start " + server.url() + ", beanstalk on " + beanstalk);
}

TEST(ServeProtocols, SeeTheSameJobs) {
  const temporary_folder folder;
  server_program server(folder, both);
  socket_wire beanstalk(server.port_for("beanstalk"));
  ASSERT_TRUE(put(beanstalk, R"({"a":1})").starts_with("INSERTED "));
  socket_wire faktory(server.port_for("faktory"));
  ASSERT_EQ(hello(faktory), "+OK");
  faktory.send("PUSH {\"jid\":\"abcdefgh1\",\"jobtype\":\"t\",\"args\":[1]}\r\n");
  ASSERT_EQ(faktory.line(), "+OK");
  auto http = std::move(*client::open({.url = server.url()}));
  const auto first = http.lease({}, deadline::after(30s));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->front().job->spec.args.data, R"({"a":1})");
  const auto second = http.lease({}, deadline::after(30s));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->front().job->spec.kind, "t");
}

TEST(ServeProtocols, WorkEachOthersJobs) {
  const temporary_folder folder;
  server_program server(folder, both);
  socket_wire beanstalk(server.port_for("beanstalk"));
  socket_wire faktory(server.port_for("faktory"));
  ASSERT_EQ(hello(faktory), "+OK");

  const std::string id = put(beanstalk, "hi").substr(9);
  faktory.send("FETCH default\r\n");
  ASSERT_TRUE(faktory.line().starts_with("$"));
  const std::string fetched = faktory.line();
  EXPECT_HAS(fetched, R"("jobtype":"beanstalk")");
  EXPECT_HAS(fetched, R"("args":["aGk="])");
  const std::size_t jid = fetched.find(R"("jid":")") + 7;
  faktory.send("ACK {\"jid\":\"" + fetched.substr(jid, fetched.find('"', jid) - jid) + "\"}\r\n");
  ASSERT_EQ(faktory.line(), "+OK");
  beanstalk.send("peek " + id + "\r\n");
  EXPECT_EQ(beanstalk.line(), "NOT_FOUND");

  faktory.send("PUSH {\"jid\":\"abcdefgh1\",\"jobtype\":\"t\",\"args\":[1, 2]}\r\n");
  ASSERT_EQ(faktory.line(), "+OK");
  beanstalk.send("reserve\r\n");
  const std::string reserved = beanstalk.line();
  ASSERT_TRUE(reserved.starts_with("RESERVED ")) << reserved;
  EXPECT_EQ(beanstalk.line(), "[1, 2]");
  beanstalk.send("delete " + reserved.substr(9, reserved.find(' ', 9) - 9) + "\r\n");
  EXPECT_EQ(beanstalk.line(), "DELETED");
}

TEST(ServeProtocols, RefuseAnAddressBeyondLoopbackWithoutTheFlag) {
  const temporary_folder folder;
  const std::vector<std::string> base = {"serve", "--memory", "--port", "0"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return run_sluice(more);
  };
  ended end = run({"--beanstalk", "0.0.0.0:0"});
  EXPECT_EQ(end.code, 2);
  EXPECT_HAS(end.err, "has no authentication");
  EXPECT_HAS(end.err, "--beanstalk-open");
  end = run({"--faktory", "0.0.0.0:0"});
  EXPECT_EQ(end.code, 2);
  EXPECT_HAS(end.err, "--faktory-password-file");
  EXPECT_HAS(end.err, "--faktory-open");
  const std::string password = make_file(folder, "password", "sesame\n");
  ASSERT_EQ(::chmod(password.c_str(), 0600), 0);
  end = run({"--faktory", "0.0.0.0:0", "--faktory-password-file", password});
  EXPECT_EQ(end.code, 2) << "a password without TLS";
  EXPECT_HAS(end.err, "--tls-cert");
}

TEST(ServeProtocols, WarnAboutAnOpenAddress) {
  const temporary_folder folder;
  server_program server(folder, {"--beanstalk", "0.0.0.0:0", "--beanstalk-open", "--faktory",
                                 "0.0.0.0:0", "--faktory-open"});
  const ended end = server.stop();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_HAS(end.err,
             " warn  the beanstalk address is open: any client can put, reserve and delete jobs ");
  EXPECT_HAS(end.err,
             " warn  the Faktory address is open: any client can push, fetch and delete jobs ");
}

TEST(ServeProtocols, RefuseAnAddressThatIsTaken) {
  const temporary_folder folder;
  const server_program first(folder, both);
  for (const std::string name : {"beanstalk", "faktory"}) {
    const ended second = run_sluice({"serve", "--memory", "--port", "0", "--" + name,
                                     ":" + std::to_string(first.port_for(name))});
    EXPECT_EQ(second.code, 8);
    EXPECT_HAS(second.err, name + ": ");
  }
}

TEST(ServeProtocols, DrainOnASignalAndKeepServing) {
  const temporary_folder folder;
  server_program server(folder, both);
  socket_wire beanstalk(server.port_for("beanstalk"));
  ASSERT_TRUE(put(beanstalk, "1").starts_with("INSERTED "));
  server.itself().signal(SIGUSR1);
  wait_for(server, "draining");
  EXPECT_EQ(put(beanstalk, "2"), "DRAINING");
  beanstalk.send("reserve-with-timeout 0\r\n");
  EXPECT_TRUE(beanstalk.line().starts_with("RESERVED "));
  auto http = std::move(*client::open({.url = server.url()}));
  EXPECT_TRUE(http.push({.kind = "k"}));
  server.itself().signal(SIGKILL);
}

TEST(ServeProtocols, AcceptASignalToDrainWithoutBeanstalk) {
  const temporary_folder folder;
  server_program server(folder);
  server.itself().signal(SIGUSR1);
  wait_for(server, "nothing to drain");
  EXPECT_EQ(server.stop().code, 0);
}

TEST(ServeProtocols, AreInTheMetrics) {
  const temporary_folder folder;
  server_program server(folder, both);
  wire http(
      static_cast<std::uint16_t>(std::stoul(server.url().substr(server.url().rfind(':') + 1))));
  http.request("GET", "/metrics");
  const auto shown = http.receive();
  EXPECT_EQ(shown.status, 200);
  EXPECT_HAS(shown.body, "\nsluice_beanstalk_");
  EXPECT_HAS(shown.body, "\nsluice_faktory_");
}

TEST(ServeProtocols, RequireThePasswordOfTheFileAlsoAfterAReload) {
  const temporary_folder folder;
  const std::string file = make_file(folder, "password", "first-one\n");
  ended end = run_sluice(
      {"serve", "--memory", "--port", "0", "--faktory", ":0", "--faktory-password-file", file});
  EXPECT_EQ(end.code, 2) << "other users can read it";
  EXPECT_HAS(end.err, "chmod 600");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  server_program server(folder, {"--faktory", ":0", "--faktory-password-file", file});
  {
    socket_wire without(server.port_for("faktory"));
    EXPECT_TRUE(hello(without).starts_with("-ERR"));
    EXPECT_TRUE(without.ends());
  }
  make_file(folder, "password", "another");
  server.itself().signal(SIGHUP);
  wait_for(server, "reloaded what=\"Faktory password\"");
  make_file(folder, "password", "");
  server.itself().signal(SIGHUP);
  wait_for(server, "reload failed, keeping the previous state what=configuration");
  socket_wire without(server.port_for("faktory"));
  EXPECT_TRUE(hello(without).starts_with("-ERR")) << "the password is still required";
  end = server.stop();
  EXPECT_EQ(end.err.find("first-one"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("another"), std::string::npos) << end.err;
}

TEST(ServeProtocols, SpeakTlsWithTheReloadedCertificate) {
  const temporary_folder folder;
  const tls_files files = make_certificate(folder, "first");
  auto words = both;
  words.insert(words.end(),
               {"--beanstalk-tls", "--tls-cert", files.certificate, "--tls-key", files.key});
  server_program server(folder, words);
  const auto beanstalk_port = server.port_for("beanstalk");
  const auto faktory_port = server.port_for("faktory");
  tls_wire beanstalk(beanstalk_port);
  tls_wire faktory(faktory_port);
  EXPECT_EQ(beanstalk.shown(), "first");
  EXPECT_EQ(faktory.shown(), "first");
  EXPECT_TRUE(put(beanstalk, "1").starts_with("INSERTED "));
  EXPECT_EQ(hello(faktory), "+OK");
  {
    socket_wire plain(beanstalk_port);
    plain.send("list-tubes\r\n");
    EXPECT_EQ(plain.line().find("OK"), std::string::npos) << "a client without TLS was accepted";
  }

  const tls_files second = make_certificate(folder, "second");
  const auto over = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(second.certificate, files.certificate, over);
  server.itself().signal(SIGHUP);
  wait_for(server, "reload failed, keeping the previous state what=\"beanstalk certificate\"");
  wait_for(server, "reload failed, keeping the previous state what=\"Faktory certificate\"");
  EXPECT_EQ(tls_wire(beanstalk_port).shown(), "first") << "its key is missing";

  std::filesystem::copy_file(second.key, files.key, over);
  server.itself().signal(SIGHUP);
  wait_for(server, "info  reloaded what=\"beanstalk certificate\"");
  wait_for(server, "info  reloaded what=\"Faktory certificate\"");
  EXPECT_EQ(tls_wire(beanstalk_port).shown(), "second");
  EXPECT_EQ(tls_wire(faktory_port).shown(), "second");
  EXPECT_TRUE(put(beanstalk, "2").starts_with("INSERTED ")) << "on the connection that was open";
  faktory.send("PUSH {\"jid\":\"abcdefgh1\",\"jobtype\":\"t\",\"args\":[]}\r\n");
  EXPECT_EQ(faktory.line(), "+OK");
  const std::string log = server.stop().err;
  EXPECT_HAS(log, "listening beanstalk=127.0.0.1:" + std::to_string(beanstalk_port) + " tls=yes\n");
}

TEST(ServeProtocols, RefuseTlsWithoutACertificate) {
  const ended end =
      run_sluice({"serve", "--memory", "--port", "0", "--beanstalk", ":0", "--beanstalk-tls"});
  EXPECT_EQ(end.code, 2);
  EXPECT_HAS(end.err, "beanstalk.tls needs a certificate");
}

TEST(ServeProtocols, GiveWorkersTimeAtShutdown) {
  const temporary_folder folder;
  server_program server(folder, both);
  socket_wire beanstalk(server.port_for("beanstalk"));
  const std::string inserted = put(beanstalk, "1");
  ASSERT_TRUE(inserted.starts_with("INSERTED "));
  beanstalk.send("reserve-with-timeout 0\r\n");
  ASSERT_TRUE(beanstalk.line().starts_with("RESERVED "));
  EXPECT_EQ(beanstalk.bytes(3), "1\r\n");
  server.itself().signal(SIGTERM);
  wait_for(server, "shutting down");
  EXPECT_TRUE(put(beanstalk, "2").starts_with("INSERTED ")) << "pushes are accepted until the end";
  EXPECT_FALSE(server.itself().has_ended());
  beanstalk.send("delete " + inserted.substr(9) + "\r\n");
  EXPECT_EQ(beanstalk.line(), "DELETED");
  const ended end = server.itself().wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(end.err.find("did not finish"), std::string::npos) << end.err;
}

}  // namespace
}  // namespace sluice::jobs::cli::serve_protocols_test
