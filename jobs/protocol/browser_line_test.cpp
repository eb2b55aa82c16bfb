#include "jobs/protocol/browser_line.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::jobs::protocol::browser_line_test {
namespace {

TEST(BrowserLine, IsARequestLineAHostHeaderOrTheBeginningOfTls) {
  for (const std::string& line : {
           std::string("GET / HTTP/1.1"),
           std::string("POST /x?y HTTP/1.1"),
           std::string("PRI * HTTP/2.0"),
           std::string("put /0 HTTP/1.1"),
           std::string("quit / HTTP/1.1"),
           std::string("HELLO / HTTP/1.1"),
           "POST /" + std::string(10'000, 'a'),
           std::string("GET /"),
           std::string("OPTIONS * HTTP/1.1"),
           std::string("BREW /pot HTTP/1.1\r\n"),
           std::string("Host: localhost:11300"),
           std::string("host:x"),
           "HOST: " + std::string(253, 'h'),
           std::string("\x16\x03\x01\x02"),
       }) {
    EXPECT_TRUE(is_browser_line(line)) << line;
  }
}

TEST(BrowserLine, IsNoCommand) {
  for (const std::string_view line : {"",
                                      "GET",
                                      "GET ",
                                      "POST",
                                      "PUT 0 0 10 5",
                                      "put /x 0 HTTP",
                                      "put 0 0 10 5",
                                      "use HTTP/1.1",
                                      "watch a/HTTP/1.1",
                                      "ignore HTTP/1.1",
                                      "stats-tube HTTP/1.1",
                                      "pause-tube HTTP/1.1 5",
                                      "release 1 0 0",
                                      "use host:",
                                      "hos",
                                      "host",
                                      "PUSH {\"args\":[\"GET / HTTP/1.1\"]}",
                                      "PUSHB []",
                                      "FETCH default",
                                      "HELLO {\"v\":2}",
                                      "QUEUE PAUSE *",
                                      "Hosts: x",
                                      "reserve",
                                      "quit",
                                      "END",
                                      "\x16"}) {
    EXPECT_FALSE(is_browser_line(line)) << line;
  }
}

}  // namespace
}  // namespace sluice::jobs::protocol::browser_line_test
