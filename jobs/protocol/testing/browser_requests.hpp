#pragma once

// Requests that a web page can make a browser send, with commands behind their heads.

#include <string>
#include <string_view>
#include <vector>

namespace sluice::jobs::testing {

struct browser_request {
  std::string_view label;
  std::string bytes;
};

inline std::vector<browser_request> browser_requests(std::string_view commands) {
  const std::string long_target(300, 'a');
  const std::string rest =
      "Host: localhost:11300\r\nContent-Type: text/plain\r\n\r\n" + std::string(commands);
  return {
      {"a form", "POST / HTTP/1.1\r\n" + rest},
      {"a link", "GET /?q HTTP/1.1\r\n" + rest},
      {"a question before a request", "OPTIONS / HTTP/1.1\r\n" + rest},
      {"a target that is longer than a command", "POST /" + long_target + " HTTP/1.1\r\n" + rest},
      {"a method that is a command", "quit / HTTP/1.1\r\n" + rest},
      {"a method that is another command", "HELLO / HTTP/1.1\r\n" + rest},
      {"a method of its own and a long target", "put /" + long_target + " HTTP/1.1\r\n" + rest},
      {"a host with a name of 253 bytes", "put /" + long_target +
                                              " HTTP/1.1\r\nHost: " + std::string(253, 'h') +
                                              ":11300\r\n\r\n" + std::string(commands)},
      {"a host in lower case", "host: x\n\n" + std::string(commands)},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(commands)},
      {"TLS", "\x16\x03\x01\x02\r\n" + std::string(commands)},
      {"TLS without a line end",
       "\x16\x03\x01" + std::string(300, '\0') + "\r\n" + std::string(commands)},
  };
}

}  // namespace sluice::jobs::testing
