// The client with a server that has TLS and requires tokens: trusted and untrusted certificates.
#include <gtest/gtest.h>

#include <cstdlib>

#include "jobs/client/client.hpp"
#include "jobs/http/http_server.hpp"
#include "jobs/http/testing/certificates.hpp"
#include "jobs/http/testing/scripted_server.hpp"
#include "jobs/store/memory/memory_store.hpp"

namespace sluice::jobs::client_tls_test {
namespace {

using testing::make_certificate;

class ClientTls : public ::testing::Test {
 protected:
  void serve(const testing::certificate_options& certificate = {},
             std::optional<token_set> tokens = {}) {
    files_ = make_certificate(folder_, "server", certificate);
    http_server_options o;
    o.port = 0;
    o.tls = files_;
    o.tokens = std::move(tokens);
    o.wrong_token_delay = milliseconds(0);
    engine_ = engine::open(make_memory_store(), {}).value();
    server_ = std::make_unique<http_server>(std::move(o));
    port_ = server_->start(*engine_).value();
  }
  std::string url(std::string_view host = "localhost", std::string_view scheme = "https") const {
    return std::string(scheme) + "://" + std::string(host) + ":" + std::to_string(port_);
  }
  client_options options() const { return {.url = url(), .ca_file = files_.certificate}; }
  static std::string failure(client_options o) {
    client c = client::open(std::move(o)).value();
    const auto queues = c.queues();
    EXPECT_FALSE(queues);
    if (queues) return "";
    EXPECT_EQ(queues.error().code, error_code::unavailable);
    return queues.error().message;
  }

  sluice::testing::temporary_folder folder_;
  tls_files files_;
  std::unique_ptr<engine> engine_;
  std::unique_ptr<http_server> server_;
  std::uint16_t port_ = 0;
};

TEST_F(ClientTls, PushesAndWorksOverHttps) {
  serve();
  client c = client::open(options()).value();
  const std::string args = '"' + std::string(std::size_t{300} << 10, 'x') + '"';
  const auto pushed = c.push({.kind = "k", .args = {args}});
  ASSERT_TRUE(pushed) << pushed.error().message;
  const auto leased = c.lease({});
  ASSERT_TRUE(leased) << leased.error().message;
  EXPECT_EQ(leased->front().job->spec.args.data, args);
  EXPECT_TRUE(c.ack(leased->front().ref()));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(c.queues());
  EXPECT_EQ(server_->connections(), 1U) << "one connection, kept";
}

TEST_F(ClientTls, AcceptsAnAddressInTheCertificate) {
  serve();
  client_options o = options();
  o.url = url("127.0.0.1");
  EXPECT_TRUE(client::open(std::move(o)).value().queues());
}

TEST_F(ClientTls, EndsAtItsLimits) {
  serve();
  client c = client::open(options()).value();
  const auto leased = c.lease({}, deadline::after(milliseconds(20)));
  ASSERT_FALSE(leased);
  EXPECT_EQ(leased.error().code, error_code::timed_out);
  EXPECT_TRUE(c.queues());
}

TEST_F(ClientTls, RejectsAnUnsignedCertificate) {
  serve();
  client_options o = options();
  o.ca_file.clear();
  const std::string why = failure(std::move(o));
  EXPECT_NE(why.find("not trusted"), std::string::npos) << why;
  EXPECT_NE(why.find("SLUICE_CA_FILE"), std::string::npos) << why;
}

TEST_F(ClientTls, RejectsACertificateForAnotherHost) {
  serve({.names = "DNS:other.example"});
  const std::string why = failure(options());
  EXPECT_NE(why.find("not trusted"), std::string::npos) << why;
  EXPECT_NE(why.find("not for localhost"), std::string::npos) << why;
  client_options o = options();
  o.url = url("127.0.0.1");
  EXPECT_NE(failure(std::move(o)).find("not for 127.0.0.1"), std::string::npos);
}

TEST_F(ClientTls, RejectsAnExpiredCertificate) {
  serve({.valid_from_seconds = -7200, .valid_until_seconds = -3600});
  const std::string why = failure(options());
  EXPECT_NE(why.find("expired"), std::string::npos) << why;
}

TEST_F(ClientTls, ReportsAServerWithoutTls) {
  testing::scripted_server plain(
      [](const testing::received&) { return testing::answer(200, "{}"); });
  serve();
  std::string at = plain.url();
  at.replace(0, 4, "https");
  const std::string why = failure({.url = at, .ca_file = files_.certificate});
  EXPECT_NE(why.find("TLS"), std::string::npos) << why;
}

TEST_F(ClientTls, ReportsAServerWithTls) {
  serve();
  client c = client::open({.url = url("localhost", "http")}).value();
  const auto queues = c.queues();
  ASSERT_FALSE(queues);
  EXPECT_NE(queues.error().message.find("https://"), std::string::npos) << queues.error().message;
}

TEST_F(ClientTls, NamesAnInvalidFileOfAuthorities) {
  const auto none = client::open({.url = "https://localhost", .ca_file = folder_.file("none")});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, error_code::invalid);
  EXPECT_NE(none.error().message.find(folder_.file("none")), std::string::npos);
}

TEST_F(ClientTls, SendsItsToken) {
  token_set tokens;
  const auto now = real_time().now();
  const auto made = tokens.create({.name = "n", .roles = {role::push}}, now).value();
  serve({}, tokens);
  client_options o = options();
  const auto refused = client::open(o).value().push({.kind = "k"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::unauthenticated);
  o.token = made.text;
  client c = client::open(o).value();
  EXPECT_TRUE(c.push({.kind = "k"}));
  const auto forbidden = c.queues();
  ASSERT_FALSE(forbidden);
  EXPECT_EQ(forbidden.error().code, error_code::forbidden);
  EXPECT_NE(forbidden.error().message.find("read"), std::string::npos);
}

TEST_F(ClientTls, TakesTokenAndAuthoritiesFromTheEnvironment) {
  token_set tokens;
  const auto made = tokens.create({.name = "n", .roles = {role::read}}, real_time().now()).value();
  serve({}, tokens);
  ::setenv("SLUICE_TOKEN", made.text.c_str(), 1);
  ::setenv("SLUICE_CA_FILE", files_.certificate.c_str(), 1);
  EXPECT_TRUE(client::open({.url = url()}).value().queues());
  ::unsetenv("SLUICE_TOKEN");
  ::unsetenv("SLUICE_CA_FILE");
}

TEST(ClientToken, IsRejectedIfInvalidInAHeader) {
  for (const char* bad : {"a b", "a\r\nX: y", "a\n", "\x01"}) {
    const auto opened = client::open({.url = "http://localhost", .token = bad});
    ASSERT_FALSE(opened) << bad;
    EXPECT_EQ(opened.error().message.find(bad), std::string::npos);
  }
}

TEST(ClientUrl, IsNotRepeatedWithItsPassword) {
  for (const char* with : {"http://ada:hunter2@host", "https://hunter2@host", "ftp://a:hunter2@h",
                           "http://ada:p@ss:hunter2@host", "ada:hunter2@host",
                           "http://ada:hunter2@host?x", "http://a b:hunter2@host"}) {
    const auto opened = client::open({.url = with});
    ASSERT_FALSE(opened) << with;
    EXPECT_EQ(opened.error().message.find("hunter2"), std::string::npos) << opened.error().message;
  }
}

}  // namespace
}  // namespace sluice::jobs::client_tls_test
