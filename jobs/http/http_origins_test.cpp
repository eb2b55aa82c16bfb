// Web pages whose unsafe requests are accepted, on every route.
#include <gtest/gtest.h>

#include "jobs/http/detail/router.hpp"
#include "jobs/http/testing/certificates.hpp"
#include "jobs/http/testing/http_fixture.hpp"
#include "jobs/http/testing/tls_wire.hpp"

namespace sluice::jobs::http_origins_test {
namespace {

using testing::reply;
using testing::wire;

struct row {
  std::string_view label;
  std::string_view host;
  std::string_view headers;
  bool is_allowed;
};

constexpr std::string_view local = "localhost:7433";
constexpr std::string_view proxied = "jobs.example";

constexpr auto rows = std::to_array<row>({
    // Clients other than browsers.
    {"no Origin", local, "", true},
    {"no Origin, sent to an address", "203.0.113.5:7433", "", true},
    // The origin that the request was sent to.
    {"same", local, "Origin: http://localhost:7433\r\n", true},
    {"same, in capitals", local, "Origin: http://LocalHost:7433\r\n", true},
    {"same address", "127.0.0.1:7433", "Origin: http://127.0.0.1:7433\r\n", true},
    {"same address, its usual port", "203.0.113.5", "Origin: http://203.0.113.5:80\r\n", true},
    {"same IPv6 address", "[::1]:7433", "Origin: http://[::1]:7433\r\n", true},
    {"same, of a name", proxied, "Origin: http://jobs.example\r\n", true},
    // Other origins.
    {"other port", local, "Origin: http://localhost:7434\r\n", false},
    {"other port of localhost", local, "Origin: http://localhost:3000\r\n", false},
    {"usual port", local, "Origin: http://localhost\r\n", false},
    {"other name of this machine", local, "Origin: http://127.0.0.1:7433\r\n", false},
    {"IPv4 literal", local, "Origin: http://203.0.113.5\r\n", false},
    {"IPv4 literal, same port", local, "Origin: http://203.0.113.5:7433\r\n", false},
    {"IPv6 literal", local, "Origin: http://[2001:db8::1]\r\n", false},
    {"IPv6 literal, same port", local, "Origin: http://[::1]:7433\r\n", false},
    {"IPv6 literal, other port", "[::1]:7433", "Origin: http://[::1]:3000\r\n", false},
    {"null", local, "Origin: null\r\n", false},
    {"empty", local, "Origin:\r\n", false},
    {"only a scheme", local, "Origin: http://\r\n", false},
    {"other site", local, "Origin: https://evil.example\r\n", false},
    {"other site, same beginning", local, "Origin: http://localhost:7433.evil.example\r\n", false},
    {"https for http", local, "Origin: https://localhost:7433\r\n", false},
    // A proxy with TLS. http.hosts has jobs.example and two.example:8443.
    {"https of a listed name", local, "Origin: https://jobs.example\r\n", true},
    {"https of a listed name, kept Host", proxied, "Origin: https://jobs.example\r\n", true},
    {"https of a listed name and port", local, "Origin: https://two.example:8443\r\n", true},
    {"listed name, other port", local, "Origin: https://jobs.example:3000\r\n", false},
    {"listed name, without its port", local, "Origin: https://two.example\r\n", false},
    {"http of a listed name", local, "Origin: http://jobs.example\r\n", false},
    {"below a listed name", local, "Origin: https://x.jobs.example\r\n", false},
    // Sec-Fetch-Site, which browsers send since 2020 to localhost and over https.
    {"fetch: same-origin", local, "Sec-Fetch-Site: same-origin\r\n", true},
    {"fetch: same-origin, rewritten Host", local,
     "Sec-Fetch-Site: same-origin\r\nOrigin: https://unlisted.example\r\n", true},
    {"fetch: same-site", local, "Sec-Fetch-Site: same-site\r\n", false},
    {"fetch: same-site, other port", local,
     "Sec-Fetch-Site: same-site\r\nOrigin: http://localhost:3000\r\n", false},
    {"fetch: cross-site", local, "Sec-Fetch-Site: cross-site\r\n", false},
    {"fetch: cross-site, own Origin", local,
     "Sec-Fetch-Site: cross-site\r\nOrigin: http://localhost:7433\r\n", false},
    {"fetch: none", local, "Sec-Fetch-Site: none\r\n", false},
    {"fetch: unknown", local, "Sec-Fetch-Site: Same-Origin\r\n", false},
    {"fetch: twice", local, "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: same-origin\r\n",
     false},
    // A page cannot add this header to a request for another origin.
    {"bearer token", local, "Origin: https://evil.example\r\nAuthorization: Bearer x\r\n", true},
    {"no bearer token", local, "Origin: https://evil.example\r\nAuthorization: Basic eDp4\r\n",
     false},
});

reply request(wire& w, const row& r, std::string_view method, std::string_view target) {
  w.send(std::string(method) + " " + std::string(target) +
         " HTTP/1.1\r\nHost: " + std::string(r.host) + "\r\n" + std::string(r.headers) +
         "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n[]");
  return w.receive();
}

class HttpOrigins : public testing::HttpTest {
 protected:
  void SetUp() override { start({.hosts = {"jobs.example", "two.example:8443"}}); }
};

TEST_F(HttpOrigins, AreCheckedOnEveryUnsafeRoute) {
  wire w = connect();
  std::size_t routes = 0;
  for (const http::route& r : http::routes()) {
    if (http::is_safe(r.method)) continue;
    ++routes;
    std::string path(r.path);
    for (const std::string_view variable : {"{id}", "{name}", "{wid}"}) {
      if (const auto at = path.find(variable); at != std::string::npos) {
        path.replace(at, variable.size(), "1");
      }
    }
    for (const row& each : rows) {
      const reply got = request(w, each, to_string(r.method), path);
      EXPECT_EQ(got.status != 403, each.is_allowed)
          << to_string(r.method) << " " << path << ": " << each.label << ": " << got.body;
      EXPECT_NE(got.status, 421) << each.label;
      if (!each.is_allowed) problem_of(got, 403, error_code::invalid);
    }
  }
  EXPECT_GE(routes, 27U);
}

TEST_F(HttpOrigins, AreCheckedAlsoForMethodsAndPathsWithoutARoute) {
  wire w = connect();
  for (const row& each : rows) {
    for (const auto& [method, target] : {std::pair("BREW", "/v1/jobs"), std::pair("POST", "/no")}) {
      const reply got = request(w, each, method, target);
      EXPECT_EQ(got.status, each.is_allowed ? (target == std::string_view("/no") ? 404 : 405) : 403)
          << each.label;
    }
  }
}

// Links of other sites are allowed. A script of another site sends its Origin, and so does the
// preflight OPTIONS request of its browser.
TEST_F(HttpOrigins, OfSafeRequestsAreCheckedIfPresent) {
  wire w = connect();
  const auto status = [&](std::string_view method, std::string_view headers) {
    return request(w, {"", local, headers, true}, method, "/v1/queues").status;
  };
  for (const std::string_view link :
       {"", "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: none\r\n",
        "Origin: http://localhost:7433\r\n"}) {
    EXPECT_EQ(status("GET", link), 200) << link;
    EXPECT_EQ(status("OPTIONS", link), 204) << link;
  }
  for (const std::string_view script :
       {"Origin: null\r\n", "Origin: http://localhost:3000\r\n", "Origin: http://[::1]\r\n",
        "Origin: http://203.0.113.5\r\n", "Origin: https://evil.example\r\n"}) {
    EXPECT_EQ(status("GET", script), 403) << script;
    EXPECT_EQ(status("OPTIONS", script), 403) << script;
  }
}

TEST_F(HttpOrigins, ThatAreRefusedGetAnInstruction) {
  const reply got = ask("POST", "/v1/queues/q/pause", "", "Origin: http://localhost:3000\r\n");
  const std::string why = problem_of(got, 403, error_code::invalid);
  for (const std::string_view part :
       {"another origin", "localhost", "bearer token", "http.hosts"}) {
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }
  EXPECT_FALSE(jobs().queue("q"));
}

// The scheme of an own origin is the one of the listener.
class HttpOriginsOverTls : public testing::HttpTest {
 protected:
  void SetUp() override {
    files_ = testing::make_certificate(folder_, "server");
    start({.tls = files_, .hosts = {"jobs.example", "two.example:8443"}});
    expect_alive_ = false;  // the fixture does not use TLS
  }

  sluice::testing::temporary_folder folder_;
  tls_files files_;
};

constexpr auto tls_rows = std::to_array<row>({
    {"no Origin", local, "", true},
    {"same", local, "Origin: https://localhost:7433\r\n", true},
    {"same address", "127.0.0.1:7433", "Origin: https://127.0.0.1:7433\r\n", true},
    {"same name, its usual port", proxied, "Origin: https://jobs.example:443\r\n", true},
    {"same IPv6 address", "[::1]:7433", "Origin: https://[::1]:7433\r\n", true},
    {"http for https", local, "Origin: http://localhost:7433\r\n", false},
    {"http for https, usual port", proxied, "Origin: http://jobs.example\r\n", false},
    {"other port", local, "Origin: https://localhost:7434\r\n", false},
    {"usual port", local, "Origin: https://localhost\r\n", false},
    {"usual port of http", proxied, "Origin: https://jobs.example:80\r\n", false},
    {"IPv4 literal", local, "Origin: https://203.0.113.5:7433\r\n", false},
    {"null", local, "Origin: null\r\n", false},
    {"other site", local, "Origin: https://evil.example\r\n", false},
    {"listed name, behind a proxy", local, "Origin: https://jobs.example\r\n", true},
    {"listed name and port", local, "Origin: https://two.example:8443\r\n", true},
    {"listed name, without its port", local, "Origin: https://two.example\r\n", false},
    {"fetch: same-origin", local, "Sec-Fetch-Site: same-origin\r\n", true},
    {"fetch: same-site", local, "Sec-Fetch-Site: same-site\r\n", false},
    {"fetch: cross-site, own Origin", local,
     "Sec-Fetch-Site: cross-site\r\nOrigin: https://localhost:7433\r\n", false},
    {"bearer token", local, "Origin: https://evil.example\r\nAuthorization: Bearer x\r\n", true},
});

TEST_F(HttpOriginsOverTls, AreCheckedOnUnsafeRequests) {
  testing::tls_wire w(port());
  for (const row& each : tls_rows) {
    const reply got = request(w, each, "POST", "/v1/queues/q/pause");
    EXPECT_EQ(got.status, each.is_allowed ? 404 : 403) << each.label << ": " << got.body;
  }
}

// A page can make a browser send a form without a preflight; no page of this server does.
TEST_F(HttpOrigins, SendNoForms) {
  const std::string form = "Content-Type: application/x-www-form-urlencoded\r\n";
  EXPECT_EQ(ask("POST", "/v1/jobs", R"({"kind":"k"})", form).status, 201);
  EXPECT_EQ(
      ask("POST", "/v1/jobs", R"({"kind":"k"})", form + "Origin: http://localhost\r\n").status,
      415);
}

}  // namespace
}  // namespace sluice::jobs::http_origins_test
