#pragma once

// A client that is only a socket: tests choose the bytes to send and check the bytes received.
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
  static constexpr int patience_seconds = 20;  // only a test that fails waits so long

  explicit socket_wire(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect_to(address);
  }
  // Connects to a unix socket.
  explicit socket_wire(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    connect_to(address);
  }
  socket_wire(socket_wire&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}
  socket_wire& operator=(socket_wire&&) = delete;
  virtual ~socket_wire() { close(); }

  bool connected() const { return connected_; }

  // Returns false if the peer has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = uninterrupted([&] { return send_some(bytes); });
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // Sends as many bytes as fit into the send buffer, and returns their number.
  std::size_t send_without_waiting(std::string_view bytes) {
    const auto n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : static_cast<std::size_t>(n);
  }

  // Returns the next line without its end, or "(the end)" if the peer has closed.
  std::string line() {
    std::size_t end = 0;
    while ((end = received_.find("\r\n")) == std::string::npos) {
      if (!fill()) return "(the end)";
    }
    std::string text = received_.substr(0, end);
    received_.erase(0, end + 2);
    return text;
  }
  // Returns `count` bytes, or fewer if the peer closes before.
  std::string bytes(std::size_t count) {
    while (received_.size() < count && fill()) {
    }
    std::string some = received_.substr(0, count);
    received_.erase(0, some.size());
    return some;
  }
  // Returns whether the peer closes without sending more bytes.
  bool ends() {
    while (received_.empty()) {
      if (!fill()) return true;
    }
    return false;
  }

  void half_close() { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // Closes as a killed client does, with a reset: bytes in flight are dropped.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  void receive_buffer(int bytes) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }

 protected:
  // Overridden for TLS.
  virtual ssize_t send_some(std::string_view bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  virtual ssize_t receive_some(char* into, std::size_t size) {
    return ::recv(socket_, into, size, 0);
  }
  int socket() const { return socket_; }

  // Repeats a call that failed with EINTR: a wait with a timeout ends early when the process was
  // stopped and resumed (signal(7)).
  template <class Call>
  static ssize_t uninterrupted(Call&& call) {
    for (;;) {
      errno = 0;  // `call` may not be a system call, and then leaves errno as it was
      const ssize_t n = call();
      if (n >= 0 || errno != EINTR) return n;
    }
  }

  // Returns false if the peer has closed.
  bool fill() {
    char bytes[65536];
    const auto n = uninterrupted([&] { return receive_some(bytes, sizeof bytes); });
    if (n <= 0) {
      EXPECT_TRUE(n == 0 || errno == ECONNRESET || errno == EPIPE)
          << "no answer within " << patience_seconds << " s";
      return false;
    }
    received_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  std::string& received() { return received_; }  // bytes that no call has returned yet

 private:
  template <class Address>
  void connect_to(const Address& address) {
    const timeval patience{patience_seconds, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  int socket_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace sluice::jobs::testing
