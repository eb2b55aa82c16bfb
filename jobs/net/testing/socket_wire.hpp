#pragma once

// A client that is nothing but a socket: tests say which bytes go out, and what must come back.
//
//     socket_wire w(port);
//     w.send("put 0 0 10 1\r\nx\r\n");
//     EXPECT_EQ(w.line(), "INSERTED 1");

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::jobs::testing {

class socket_wire {
 public:
  static constexpr int patience_seconds = 20;  // of a test that fails; none waits for it

  explicit socket_wire(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect_to(where);
  }
  // A socket of this machine.
  explicit socket_wire(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    path.copy(where.sun_path, sizeof where.sun_path - 1);
    connect_to(where);
  }
  socket_wire(socket_wire&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        held_(std::move(other.held_)) {}
  socket_wire& operator=(socket_wire&&) = delete;
  virtual ~socket_wire() { close(); }

  bool connected() const { return connected_; }

  // False: the other end has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = uninterrupted([&] { return give(bytes); });
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

  // The next line, without its end. "(the end)": there is none.
  std::string line() {
    std::size_t end = 0;
    while ((end = held_.find("\r\n")) == std::string::npos) {
      if (!fill()) return "(the end)";
    }
    std::string text = held_.substr(0, end);
    held_.erase(0, end + 2);
    return text;
  }
  // So many bytes, or fewer if the other end has closed before.
  std::string bytes(std::size_t count) {
    while (held_.size() < count && fill()) {
    }
    std::string some = held_.substr(0, count);
    held_.erase(0, some.size());
    return some;
  }
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

  // A wait with a timeout ends early when the thread was stopped and goes on (signal(7)).
  template <class Call>
  static ssize_t uninterrupted(Call&& call) {
    for (;;) {
      errno = 0;  // what is not a call of the system leaves it alone
      const ssize_t n = call();
      if (n >= 0 || errno != EINTR) return n;
    }
  }

  // False: there is no more.
  bool fill() {
    char bytes[65536];
    const auto n = uninterrupted([&] { return take(bytes, sizeof bytes); });
    if (n <= 0) {
      EXPECT_TRUE(n == 0 || errno == ECONNRESET || errno == EPIPE)
          << "no answer within " << patience_seconds << " s";
      return false;
    }
    held_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  std::string& held() { return held_; }  // that came and was not taken

 private:
  template <class Address>
  void connect_to(const Address& where) {
    const timeval patience{patience_seconds, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }

  int socket_;
  bool connected_ = false;
  std::string held_;
};

}  // namespace sluice::jobs::testing
