// HTTPS: supported protocols, and a certificate that is replaced while it is in use.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "jobs/http/testing/certificates.hpp"
#include "jobs/http/testing/http_fixture.hpp"
#include "jobs/http/testing/tls_wire.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::http_tls_test {
namespace {

using sluice::testing::eventually;
using testing::make_certificate;
using testing::reply;
using testing::tls_wire;

class HttpTls : public testing::HttpTest {
 protected:
  void serve(http_server_options o = {}) {
    files_ = make_certificate(folder_, "first");
    o.tls = files_;
    start(std::move(o));
    expect_alive_ = false;  // the fixture does not use TLS
  }
  void TearDown() override {
    if (port() != 0 && is_impatient_) {
      eventually(
          [&] {
            tls_wire w(port());
            if (!w.is_secure()) return false;
            w.request("GET", "/healthz");
            return w.receive().status == 200;
          },
          "a server that answers");
    } else if (port() != 0) {
      EXPECT_EQ(ask_securely("GET", "/healthz").status, 200);
    }
    HttpTest::TearDown();
  }
  reply ask_securely(std::string_view method, std::string_view target, std::string_view body = {}) {
    tls_wire w(port());
    EXPECT_TRUE(w.is_secure());
    w.request(method, target, body);
    return w.receive();
  }
  void replace_by(const tls_files& with) {
    const auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(with.certificate, files_.certificate, over);
    std::filesystem::copy_file(with.key, files_.key, over);
  }

  sluice::testing::temporary_folder folder_;
  tls_files files_;
};

TEST_F(HttpTls, ServesRequestsOneAfterTheOther) {
  serve();
  tls_wire w(port());
  ASSERT_TRUE(w.is_secure());
  for (int i = 0; i < 10; ++i) {
    w.request("POST", "/v1/jobs", R"({"kind":"k"})");
    EXPECT_EQ(w.receive().status, 201);
  }
  for (int i = 0; i < 5; ++i) w.request("GET", "/v1/stats");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(w.receive().status, 200);
  EXPECT_EQ(jobs().queue("default")->counts.ready, 10U);
}

TEST_F(HttpTls, CarriesBodiesLargerThanARecordBothWays) {
  serve();
  const std::string args(std::size_t{900} << 10, 'x');
  const reply pushed = ask_securely("POST", "/v1/jobs", R"({"kind":"k","args":")" + args + "\"}");
  ASSERT_EQ(pushed.status, 201) << pushed.body;
  const reply got =
      ask_securely("GET", "/v1/jobs/" + std::to_string(read<push_receipt>(pushed).id));
  EXPECT_EQ(got.status, 200);
  EXPECT_NE(got.body.find(args), std::string::npos);
}

// Decrypted bytes are read without waiting for the socket: a connection yields after a mebibyte,
// here in the middle of the last record.
TEST_F(HttpTls, ReadsABodyThatArrivedAtOnceToItsEnd) {
  event is_held;
  event released;
  http_server_options o;
  o.body_time = milliseconds(3000);
  // Blocks the server's only thread, so that the whole body arrives before any of it is read.
  o.more_metrics = [&](std::string&) {
    is_held.set();
    released.wait();
  };
  serve(std::move(o));
  tls_wire w(port());
  w.request("GET", "/healthz");
  ASSERT_EQ(w.receive().status, 200);
  tls_wire holds(port());
  holds.request("GET", "/metrics");
  is_held.wait();
  const std::string begin = R"({"kind":"k","args":")";
  const std::size_t length = (std::size_t{1} << 20) - 50;  // less than the head
  const std::string head =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(length) + "\r\n\r\n";
  event is_sent;
  seam::thread sends([&] {
    EXPECT_TRUE(w.send(head));
    EXPECT_TRUE(w.send(begin + std::string(length - begin.size() - 2, 'x') + "\"}"));
    is_sent.set();
  });
  // If the system does not buffer as much, the test continues with a part.
  const bool is_all_there = bool(is_sent.wait(wait_limits(deadline::after(milliseconds(2000)))));
  RecordProperty("all_there", is_all_there ? 1 : 0);
  released.set();
  sends.join();
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(holds.receive().status, 200);
}

TEST_F(HttpTls, SupportsOneDotTwoAndUp) {
  serve();
  tls_wire newest(port());
  EXPECT_EQ(newest.version(), "TLSv1.3");
  tls_wire older(port(), {.version_max = TLS1_2_VERSION});
  EXPECT_TRUE(older.is_secure());
  EXPECT_EQ(older.version(), "TLSv1.2");
  tls_wire oldest(port(), {.version_max = TLS1_1_VERSION});
  EXPECT_FALSE(oldest.is_secure());
}

TEST_F(HttpTls, SelectsHttpOneDotOneAndRefusesOtherProtocols) {
  serve();
  tls_wire both(port(), {.protocols = "\x02h2\x08http/1.1"});
  EXPECT_TRUE(both.is_secure());
  EXPECT_EQ(both.protocol(), "http/1.1");
  tls_wire other(port(), {.protocols = "\x02h2"});
  EXPECT_FALSE(other.is_secure());
}

TEST_F(HttpTls, RefersPlainHttpClientsToHttps) {
  serve();
  for (const std::string& method : std::vector<std::string>{"GET", "POST", "PATCH", "DELETE"}) {
    const reply got = ask(method, "/v1/queues", "{}");
    const std::string why = problem_of(got, 400, error_code::invalid);
    EXPECT_NE(why.find("https://"), std::string::npos);
    EXPECT_EQ(got.header("connection"), "close");
  }
}

TEST_F(HttpTls, ClosesOnBytesThatAreNeitherTlsNorHttp) {
  serve();
  auto w = connect();
  w.send(std::string("\x00\x01\x02 not TLS", 11));
  EXPECT_TRUE(w.ends());
  auto empty = connect();
  empty.half_close();
  EXPECT_TRUE(empty.ends());
}

TEST_F(HttpTls, ClosesAStalledHandshake) {
  http_server_options o;
  o.head_time = milliseconds(50);
  serve(std::move(o));
  is_impatient_ = true;
  auto silent = connect();
  auto half = connect();
  half.send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(half.ends());
}

TEST_F(HttpTls, CountsAHandshakeAsAConnection) {
  http_server_options o;
  o.connections_max = 1;
  serve(std::move(o));
  {
    auto stalls = connect();
    eventually([&] { return server().connections() == 1; });
    tls_wire one_more(port());
    ASSERT_TRUE(one_more.is_secure());
    one_more.request("GET", "/healthz");
    EXPECT_EQ(one_more.receive().status, 503);
  }
  eventually([&] { return server().connections() == 0; });
}

TEST_F(HttpTls, UsesAReloadedCertificateForNewConnectionsAndDropsNone) {
  serve();
  tls_wire before(port());
  EXPECT_EQ(before.shown(), "first");
  before.request("GET", "/healthz");
  EXPECT_EQ(before.receive().status, 200);

  replace_by(make_certificate(folder_, "second"));
  const auto loaded = server().reload_tls();
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_NE(loaded->subject.find("second"), std::string::npos);
  tls_wire after(port());
  EXPECT_EQ(after.shown(), "second");
  before.request("GET", "/healthz");
  EXPECT_EQ(before.receive().status, 200) << "on the connection that was open";
  after.request("GET", "/healthz");
  EXPECT_EQ(after.receive().status, 200);
}

TEST_F(HttpTls, KeepsTheCertificateWhenTheNewOneIsInvalidAndReportsWhy) {
  serve();
  const tls_files other = make_certificate(folder_, "other");
  const auto refused = [&](std::string_view why) {
    const auto loaded = server().reload_tls();
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, error_code::invalid);
    EXPECT_NE(loaded.error().message.find(why), std::string::npos) << loaded.error().message;
    EXPECT_NE(loaded.error().message.find(folder_.path()), std::string::npos);
    tls_wire w(port());
    EXPECT_EQ(w.shown(), "first");
  };
  std::filesystem::copy_file(other.certificate, files_.certificate,
                             std::filesystem::copy_options::overwrite_existing);
  refused("key");  // the key still belongs to the first certificate
  std::ofstream(files_.certificate) << "nonsense";
  refused("certificate");
  std::filesystem::remove(files_.certificate);
  refused("No such file");
  replace_by(other);
  std::filesystem::permissions(files_.key, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  refused("chmod");
}

TEST_F(HttpTls, DoesNotStartWithABadCertificate) {
  http_server_options o;
  o.port = 0;
  o.tls = tls_files{folder_.file("none.pem"), folder_.file("none.key")};
  auto opened = engine::open(make_memory_store(), {});
  ASSERT_TRUE(opened);
  http_server alone(std::move(o));
  const auto port = alone.start(**opened);
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, error_code::invalid);
  EXPECT_NE(port.error().message.find("none.pem"), std::string::npos);
}

TEST_F(HttpTls, ReportsAnExpiredCertificate) {
  serve();
  EXPECT_FALSE(server().certificate()->is_outside_validity);
  replace_by(make_certificate(folder_, "old",
                              {.valid_from_seconds = -7200, .valid_until_seconds = -3600}));
  const auto loaded = server().reload_tls();
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->is_outside_validity);
}

TEST_F(HttpTls, ReleasesLeasesWhenTheClientHasGone) {
  serve();
  ASSERT_EQ(ask_securely("POST", "/v1/jobs", R"({"kind":"k"})").status, 201);
  {
    tls_wire w(port());
    w.request("POST", "/v1/leases", R"({"queues":["empty"],"wait":"600s"})");
    eventually([&] { return jobs().stats().waiting_leases == 1; });
  }
  eventually([&] { return jobs().stats().waiting_leases == 0; });
}

// Beyond loopback.

class HttpListening : public ::testing::Test {
 protected:
  result<std::uint16_t> start(http_server_options o) {
    o.port = 0;
    o.address = "0.0.0.0";
    auto opened = engine::open(make_memory_store(), {});
    EXPECT_TRUE(opened);
    http_server alone(std::move(o));
    return alone.start(**opened);
  }
  sluice::testing::temporary_folder folder_;
};

TEST_F(HttpListening, BeyondLoopbackRequiresAValidToken) {
  http_server_options o;
  o.insecure_http = true;
  EXPECT_NE(start(o).error().message.find("sluice token create"), std::string::npos);
  o.tokens.emplace();
  EXPECT_FALSE(start(o));
  const auto made = o.tokens->create({.name = "n", .roles = {role::push}}, real_time().now());
  EXPECT_TRUE(start(o));
  EXPECT_TRUE(o.tokens->revoke(made->info.id));
  EXPECT_FALSE(start(o));
}

TEST_F(HttpListening, BeyondLoopbackRequiresTlsUnlessInsecureIsSet) {
  http_server_options o;
  o.tokens.emplace();
  ASSERT_TRUE(o.tokens->create({.name = "n", .roles = {role::push}}, real_time().now()));
  const auto refused = start(o);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("tls.cert"), std::string::npos);
  EXPECT_NE(refused.error().message.find("http.insecure"), std::string::npos);
  o.tls = make_certificate(folder_, "server");
  EXPECT_TRUE(start(o));
}

class HttpHosts : public testing::HttpTest {};

TEST_F(HttpHosts, AreAcceptedWhenTheServerKnowsThem) {
  http_server_options o;
  o.hosts = {"jobs.example"};
  start(std::move(o));
  const auto status = [&](const std::string& host, const std::string& more = "") {
    return send("GET /healthz HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n").status;
  };
  EXPECT_EQ(status("jobs.example"), 200);
  EXPECT_EQ(status("JOBS.example:7433"), 200);
  EXPECT_EQ(status("127.0.0.1:7433"), 200);
  EXPECT_EQ(status("evil.example"), 421);
  EXPECT_EQ(status("jobs.example.evil"), 421);
  EXPECT_EQ(status("localhost", "Origin: https://jobs.example\r\n"), 200);
  EXPECT_EQ(status("localhost", "Origin: https://evil.example\r\n"), 403);
}

}  // namespace
}  // namespace sluice::jobs::http_tls_test
