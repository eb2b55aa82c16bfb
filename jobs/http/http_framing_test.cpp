// Heads that two programs could parse differently (request smuggling): 400, and the connection
// ends.
#include <gtest/gtest.h>

#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_framing_test {
namespace {

using testing::reply;
using testing::wire;

class HttpFraming : public testing::HttpTest {
 protected:
  // The bytes of one request, and behind it the push that a second reading would find in its body.
  void expect_refused(const std::string& head, std::string_view why) {
    SCOPED_TRACE(head);
    const std::string hidden =
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 12\r\n\r\n{\"kind\":\"k\"}";
    wire w = connect();
    w.send(head + "\r\n" + hidden);
    const reply got = w.receive();
    EXPECT_NE(problem_of(got, 400, error_code::invalid).find(why), std::string::npos) << got.body;
    EXPECT_EQ(got.header("connection"), "close");
    EXPECT_TRUE(w.ends());
    EXPECT_EQ(jobs().stats().pushed, 0U);
  }
};

const std::string request = "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\n";

TEST_F(HttpFraming, AcceptsOnlyTheTransferEncodingChunked) {
  start();
  for (const std::string_view coding : {"gzip", "chunked, gzip", "gzip, chunked", "identity",
                                        "xchunked", "chunked;q=1", "chunked, chunked", ""}) {
    expect_refused(request + "Transfer-Encoding: " + std::string(coding) + "\r\n", "chunked");
  }
  expect_refused(request + "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "chunked");
  expect_refused(request + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                 "Transfer-Encoding");
  expect_refused("POST /v1/leases HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.0");
}

TEST_F(HttpFraming, AcceptsOneLengthOnly) {
  start();
  for (const std::string_view second :
       {"Content-Length: 5\r\n", "Content-Length: 6\r\n", "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n"}) {
    expect_refused(request + "Content-Length: 5\r\n" + std::string(second), "");
    expect_refused(request + std::string(second) + "Content-Length: 5\r\n", "");
  }
  for (const std::string_view length : {"5, 5", "5,6", "5,", "+5", "-1", "0x5", "5 5", ""}) {
    expect_refused(request + "Content-Length: " + std::string(length) + "\r\n", "");
  }
}

TEST_F(HttpFraming, AcceptsOneHostAndOneOriginOnly) {
  start();
  const std::string line = "POST /v1/leases HTTP/1.1\r\n";
  expect_refused(line, "Host");
  expect_refused(line + "Host: localhost\r\nHost: localhost\r\n", "two Host");
  expect_refused(line + "Host: localhost\r\nX: y\r\nhost: evil.example\r\n", "two Host");
  expect_refused("POST /v1/leases HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n", "two Host");
  expect_refused(request + "Origin: http://localhost\r\nOrigin: http://localhost\r\n",
                 "two Origin");
  expect_refused(request + "Origin: http://localhost\r\norigin: null\r\n", "two Origin");
}

TEST_F(HttpFraming, OfOldClientsNeedsNoHost) {
  start();
  EXPECT_EQ(send("GET /healthz HTTP/1.0\r\n\r\n").status, 200);
}

// Trailers arrive after the head was processed, and are ignored.
TEST_F(HttpFraming, IgnoresTrailers) {
  start();
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\nc\r\n{\"kind\":\"k\"}\r\n0\r\nHost: evil.example\r\n"
      "Origin: null\r\nContent-Type: text/plain\r\nPrefer: wait=1\r\n\r\n");
  EXPECT_EQ(w.receive().status, 201);
  w.request("GET", "/healthz");
  EXPECT_EQ(w.receive().status, 200);
}

}  // namespace
}  // namespace sluice::jobs::http_framing_test
