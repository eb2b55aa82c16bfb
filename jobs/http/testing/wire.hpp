#pragma once

// A client that is nothing but a socket: tests say which bytes go out, and what must come back.
//
//     wire w(port);
//     w.send("GET /healthz HTTP/1.1\r\n\r\n");
//     EXPECT_EQ(w.receive().status, 200);

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

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

class wire {
 public:
  static constexpr int patience_seconds = 20;  // of a test that fails; none waits for it

  explicit wire(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{patience_seconds, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }
  wire(wire&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        held_(std::move(other.held_)) {}
  wire& operator=(wire&&) = delete;
  virtual ~wire() { close(); }

  bool connected() const { return connected_; }

  // False: the other end has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = give(bytes);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // As many as fit without waiting.
  std::size_t send_without_waiting(std::string_view bytes) {
    const auto n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : static_cast<std::size_t>(n);
  }
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

  // The next answer, whole. `to_head`: that of a HEAD has no body whatever its length says.
  reply receive(bool to_head = false) {
    reply r;
    std::size_t end = 0;
    while ((end = held_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return r;
    }
    read_head(r, held_.substr(0, end + 2));
    held_.erase(0, end + 4);
    if (to_head || r.status == 204 || r.status < 200) return r;
    const std::size_t length = std::strtoul(r.header("content-length").c_str(), nullptr, 10);
    while (held_.size() < length) {
      if (!fill()) {
        r.status = 0;
        return r;
      }
    }
    r.body = held_.substr(0, length);
    held_.erase(0, length);
    return r;
  }
  // The head of an answer whose body comes in parts.
  reply receive_head() {
    reply r;
    std::size_t end = 0;
    while ((end = held_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return r;
    }
    read_head(r, held_.substr(0, end + 2));
    held_.erase(0, end + 4);
    return r;
  }
  // The next chunk of it. Empty: that was its end, a clean one if `clean_end` says so.
  std::string next_chunk() {
    std::size_t line = 0;
    while ((line = held_.find("\r\n")) == std::string::npos) {
      if (!fill()) return {};
    }
    const std::size_t length = std::strtoul(held_.c_str(), nullptr, 16);
    while (held_.size() < line + 2 + length + 2) {
      if (!fill()) return {};
    }
    std::string chunk = held_.substr(line + 2, length);
    held_.erase(0, line + 2 + length + 2);
    clean_end_ = length == 0;
    return chunk;
  }
  bool clean_end() const { return clean_end_; }
  // Whether the other end has closed and sent nothing more.
  bool ends() {
    while (held_.empty()) {
      if (!fill()) return true;
    }
    return false;
  }

  void half_close() { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // As a client that is killed: what is under way is thrown away.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  void receive_buffer(int bytes) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }

 protected:
  // For one that does not speak plainly.
  virtual ssize_t give(std::string_view bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  virtual ssize_t take(char* into, std::size_t size) { return ::recv(socket_, into, size, 0); }
  int socket() const { return socket_; }

 private:
  bool fill() {
    char bytes[65536];
    const auto n = take(bytes, sizeof bytes);
    if (n <= 0) {
      EXPECT_TRUE(n == 0 || errno == ECONNRESET || errno == EPIPE)
          << "no answer within " << patience_seconds << " s";
      return false;
    }
    held_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
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
          << name << " is there twice";
      head.remove_prefix(end + 2);
    }
  }

  int socket_;
  bool connected_ = false;
  std::string held_;
  bool clean_end_ = false;
};

}  // namespace sluice::jobs::testing
