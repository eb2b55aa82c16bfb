#pragma once

// An HTTP server on a free port of the loopback interface with scripted replies: valid, invalid,
// in part, late, or not at all. With TLS if it is given a certificate.
//
//     scripted_server server([](const received& r) { return answer(200, R"({"id":1})"); });
//     client c = client::open({.url = server.url()}).value();
//     server.await(1); EXPECT_EQ(server.requests()[0].header("user-agent"), "mine");

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/check.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::testing {

struct received {
  std::string method{};
  std::string target{};
  std::map<std::string, std::string> headers{};  // names in lower case
  std::string body{};
  int connection = 0;  // which one, from 1
  int number = 0;      // on that connection, from 1

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct reply_bytes {
  enum class then : std::uint8_t {
    go_on,  // the next request may come
    close,
    reset  // as a program that crashes
  };
  std::string text{};
  then after = then::go_on;
};

inline reply_bytes answer(int status, std::string_view body = {}, std::string_view more_head = {}) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " Status\r\n";
  text += more_head;
  if (status != 204) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return {text + "\r\n" + std::string(body)};
}
inline reply_bytes no_answer() {
  return {"", reply_bytes::then::close};
}
inline reply_bytes json_answer(int status, std::string_view body) {
  return answer(status, body, "Content-Type: application/json\r\n");
}

// Outside the class: clang does not treat a nested struct as default-constructible there.
struct scripted_server_state {
  bool closing = false;
  int connections = 0;
  int closed = 0;
  int under_way = 0;
  int most_under_way = 0;
  std::vector<int> open{};
  std::vector<received> requests{};
  std::vector<std::jthread> threads{};
};

class scripted_server {
 public:
  using script = std::function<reply_bytes(const received&)>;

  explicit scripted_server(script s, SSL_CTX* tls = nullptr) : script_(std::move(s)), tls_(tls) {
    if (tls != nullptr) std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    check(bind(listener_, address, size) == 0 && listen(listener_, 256) == 0 &&
              getsockname(listener_, address, &size) == 0,
          "test", "a port to listen on");
    port_ = ntohs(here.sin_port);
    accepting_ = std::jthread([this] { accept_all(); });
  }
  ~scripted_server() {
    state_.with([](scripted_server_state& s) {
      s.closing = true;
      for (const int fd : s.open) shutdown(fd, SHUT_RDWR);
    });
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    auto threads = state_.with([](scripted_server_state& s) { return std::move(s.threads); });
    threads.clear();  // joins
    close(listener_);
  }

  std::string url(std::string_view target = "", std::string_view host = "127.0.0.1") const {
    return (tls_ != nullptr ? "https://" : "http://") + std::string(host) + ":" +
           std::to_string(port_) + std::string(target);
  }
  int port() const { return port_; }

  std::vector<received> requests() const { return state_.lock()->requests; }
  int connections() const { return state_.lock()->connections; }
  // Returns the number of closed connections.
  int closed() const { return state_.lock()->closed; }
  int most_under_way() const { return state_.lock()->most_under_way; }

  // Block until this many requests were received, or connections were closed.
  void await(std::size_t count) {
    await_that([=](const scripted_server_state& s) { return s.requests.size() >= count; });
  }
  void await_closed(int count) {
    await_that([=](const scripted_server_state& s) { return s.closed >= count; });
  }

 private:
  template <class Holds>
  void await_that(Holds holds) {
    const auto held = state_.lock_when(holds, std::chrono::minutes(1));
    check(static_cast<bool>(held), "test", "the awaited condition within a minute");
  }

  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      state_.with([&](scripted_server_state& s) {
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
    {
      std::unique_ptr<SSL, decltype(&SSL_free)> tls(nullptr, SSL_free);
      if (tls_ != nullptr) {
        tls.reset(SSL_new(tls_));
        SSL_set_fd(tls.get(), fd);
      }
      if (tls == nullptr || SSL_accept(tls.get()) == 1) talk(fd, tls.get(), which);
    }
    state_.with([&](scripted_server_state& s) {
      std::erase(s.open, fd);
      ++s.closed;
      close(fd);
    });
  }

  void talk(int fd, SSL* tls, int which) {
    std::string buffer;
    for (int number = 1;; ++number) {
      auto got = read_request(fd, tls, buffer);
      if (!got) return;
      got->connection = which;
      got->number = number;
      state_.with([&](scripted_server_state& s) {
        s.requests.push_back(*got);
        s.most_under_way = std::max(s.most_under_way, ++s.under_way);
      });
      const reply_bytes reply = script_(*got);
      state_.with([&](scripted_server_state& s) { --s.under_way; });
      const bool sent = send_all(fd, tls, reply.text);
      if (reply.after == reply_bytes::then::reset) {
        const linger at_once{1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      }
      if (!sent || reply.after != reply_bytes::then::go_on) {
        if (tls != nullptr) SSL_shutdown(tls);
        return;
      }
    }
  }

  static std::optional<received> read_request(int fd, SSL* tls, std::string& buffer) {
    for (;;) {
      if (const auto end = buffer.find("\r\n\r\n"); end != std::string::npos) {
        received r = read_head(std::string_view(buffer).substr(0, end + 2));
        const std::string length = r.header("content-length");
        const std::size_t bytes = length.empty() ? 0 : std::stoul(length);
        if (buffer.size() >= end + 4 + bytes) {
          r.body = buffer.substr(end + 4, bytes);
          buffer.erase(0, end + 4 + bytes);
          return r;
        }
      }
      char more[16384];
      const auto got = tls != nullptr ? SSL_read(tls, more, sizeof more)
                                      : static_cast<int>(recv(fd, more, sizeof more, 0));
      if (got <= 0) return std::nullopt;
      buffer.append(more, static_cast<std::size_t>(got));
    }
  }

  static received read_head(std::string_view head) {
    received r;
    const std::string_view first = head.substr(0, head.find("\r\n"));
    r.method = first.substr(0, first.find(' '));
    r.target = first.substr(r.method.size() + 1);
    r.target = r.target.substr(0, r.target.find(' '));
    head.remove_prefix(first.size() + 2);
    while (!head.empty()) {
      const std::string_view line = head.substr(0, head.find("\r\n"));
      head.remove_prefix(line.size() + 2);
      std::string name(line.substr(0, line.find(':')));
      std::ranges::transform(name, name.begin(),
                             [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
      r.headers[name] = line.substr(line.find(':') + 2);
    }
    return r;
  }

  static bool send_all(int fd, SSL* tls, std::string_view text) {
    while (!text.empty()) {
      const auto sent = tls != nullptr
                            ? SSL_write(tls, text.data(), static_cast<int>(text.size()))
                            : static_cast<int>(send(fd, text.data(), text.size(), MSG_NOSIGNAL));
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  const script script_;
  SSL_CTX* const tls_;
  int listener_ = -1;
  int port_ = 0;
  mutable guarded<scripted_server_state> state_;
  std::jthread accepting_;
};

}  // namespace sluice::jobs::testing
