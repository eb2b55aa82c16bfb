#pragma once

// An HTTP client that is only a socket: tests choose the bytes to send and check the replies.
//
//     wire w(port);
//     w.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
//     EXPECT_EQ(w.receive().status, 200);

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "jobs/net/testing/socket_wire.hpp"

namespace sluice::jobs::testing {

struct reply {
  int status = 0;                                // zero: the connection ended instead
  std::map<std::string, std::string> headers{};  // names in lower case
  std::string body{};

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

class wire : public socket_wire {
 public:
  explicit wire(std::uint16_t port) : socket_wire(port) {}

  void request(std::string_view method, std::string_view target, std::string_view body = {},
               std::string_view headers = {}) {
    std::string text = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n";
    text.replace(text.find("Host: x"), 7, "Host: localhost");
    text += headers;
    if (!body.empty() || method == "POST" || method == "PATCH") {
      if (headers.find("Content-Type") == std::string_view::npos) {
        text += "Content-Type: application/json\r\n";
      }
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    text += "\r\n";
    text += body;
    send(text);
  }

  // Reads the next response. `to_head`: it has no body, despite its Content-Length.
  reply receive(bool to_head = false) {
    reply r;
    std::size_t end = 0;
    while ((end = received().find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return r;
    }
    read_head(r, received().substr(0, end + 2));
    received().erase(0, end + 4);
    if (to_head || r.status == 204 || r.status < 200) return r;
    const std::size_t length = std::strtoul(r.header("content-length").c_str(), nullptr, 10);
    while (received().size() < length) {
      if (!fill()) {
        r.status = 0;
        return r;
      }
    }
    r.body = received().substr(0, length);
    received().erase(0, length);
    return r;
  }
  // Reads the head of a chunked response.
  reply receive_head() {
    reply r;
    std::size_t end = 0;
    while ((end = received().find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return r;
    }
    read_head(r, received().substr(0, end + 2));
    received().erase(0, end + 4);
    return r;
  }
  // Reads the next chunk. Empty: the end; `clean_end` then returns whether the last chunk arrived.
  std::string next_chunk() {
    std::size_t line = 0;
    while ((line = received().find("\r\n")) == std::string::npos) {
      if (!fill()) return {};
    }
    const std::size_t length = std::strtoul(received().c_str(), nullptr, 16);
    while (received().size() < line + 2 + length + 2) {
      if (!fill()) return {};
    }
    std::string chunk = received().substr(line + 2, length);
    received().erase(0, line + 2 + length + 2);
    clean_end_ = length == 0;
    return chunk;
  }
  bool clean_end() const { return clean_end_; }

 private:
  static void read_head(reply& r, std::string_view head) {
    EXPECT_TRUE(head.starts_with("HTTP/1.1 ")) << head;
    r.status = std::atoi(std::string(head.substr(9, 3)).c_str());
    head.remove_prefix(head.find("\r\n") + 2);
    while (!head.empty()) {
      const std::size_t colon = head.find(": ");
      const std::size_t end = head.find("\r\n");
      std::string name(head.substr(0, colon));
      std::ranges::transform(name, name.begin(),
                             [](char c) { return static_cast<char>(std::tolower(c)); });
      EXPECT_TRUE(r.headers.emplace(name, head.substr(colon + 2, end - colon - 2)).second)
          << name << " is repeated";
      head.remove_prefix(end + 2);
    }
  }

  bool clean_end_ = false;
};

}  // namespace sluice::jobs::testing
