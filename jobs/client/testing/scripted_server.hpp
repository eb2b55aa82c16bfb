#pragma once

// An HTTP server on a free port of the loopback interface that answers as a test says: well, badly,
// late, or not at all.
//
//     scripted_server server([](const request& r) { return answer(200, R"({"id":1})"); });
//     client c = client::open({.url = server.url()}).value();

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/check.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::testing {

struct request {
  std::string method;
  std::string target;
  std::string head;
  std::string body;
  int connection = 0;  // which one, from 1
  int number = 0;      // on that connection, from 1
};

inline std::string answer(int status, std::string_view body, std::string_view more_head = {}) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " Status\r\n";
  text += more_head;
  if (status != 204) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string(body);
}

// Not inside the class: clang does not take a nested one for default-constructible there.
struct server_state {
  bool closing = false;
  int connections = 0;
  int closed = 0;
  std::vector<int> open;
  std::vector<request> requests;
  std::vector<std::jthread> threads;
};

class scripted_server {
 public:
  // What is to be sent back, as it is; none: the connection is closed.
  using script = std::function<std::optional<std::string>(const request&)>;

  explicit scripted_server(script s) : script_(std::move(s)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    check(bind(listener_, address, size) == 0 && listen(listener_, 64) == 0 &&
              getsockname(listener_, address, &size) == 0,
          "test", "a port to listen on");
    port_ = ntohs(here.sin_port);
    accepting_ = std::jthread([this] { accept_all(); });
  }
  ~scripted_server() {
    state_.with([](server_state& s) {
      s.closing = true;
      for (const int fd : s.open) shutdown(fd, SHUT_RDWR);
    });
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    auto threads = state_.with([](server_state& s) { return std::move(s.threads); });
    threads.clear();  // joins
    close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return state_.lock()->connections; }
  std::vector<request> requests() const { return state_.lock()->requests; }
  // Connections that the client has closed, or the server.
  int closed() const { return state_.lock()->closed; }

 private:
  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      state_.with([&](server_state& s) {
        if (s.closing) {
          close(fd);
          return;
        }
        s.open.push_back(fd);
        const int which = ++s.connections;
        s.threads.emplace_back([this, fd, which] { serve(fd, which); });
      });
    }
  }

  void serve(int fd, int which) {
    std::string buffer;
    for (int number = 1;; ++number) {
      auto got = read_request(fd, buffer);
      if (!got) break;
      got->connection = which;
      got->number = number;
      state_.lock()->requests.push_back(*got);
      const auto reply = script_(*got);
      if (!reply || !send_all(fd, *reply)) break;
    }
    state_.with([&](server_state& s) {
      std::erase(s.open, fd);
      ++s.closed;
      close(fd);
    });
  }

  static std::optional<request> read_request(int fd, std::string& buffer) {
    for (;;) {
      if (const auto end = buffer.find("\r\n\r\n"); end != std::string::npos) {
        request r;
        r.head = buffer.substr(0, end + 2);
        std::size_t length = 0;
        if (const auto at = r.head.find("Content-Length: "); at != std::string::npos) {
          length = std::stoul(r.head.substr(at + 16));
        }
        if (buffer.size() >= end + 4 + length) {
          r.body = buffer.substr(end + 4, length);
          buffer.erase(0, end + 4 + length);
          r.method = r.head.substr(0, r.head.find(' '));
          r.target = r.head.substr(r.method.size() + 1);
          r.target = r.target.substr(0, r.target.find(' '));
          return r;
        }
      }
      char more[4096];
      const auto got = recv(fd, more, sizeof more, 0);
      if (got <= 0) return std::nullopt;
      buffer.append(more, static_cast<std::size_t>(got));
    }
  }

  static bool send_all(int fd, std::string_view text) {
    while (!text.empty()) {
      const auto sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  const script script_;
  int listener_ = -1;
  int port_ = 0;
  mutable guarded<server_state> state_;
  std::jthread accepting_;
};

}  // namespace sluice::jobs::testing
