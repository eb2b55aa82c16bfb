#pragma once

// A client's socket, plain or with TLS on it, for one that reads and writes without waiting.
//
// The plain path is the socket's own calls behind one comparison. With TLS, reads take as many
// records as fit the buffer. Errors are the socket's: would_block, eof, anything else.

#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "jobs/net/hello_guard.hpp"
#include "jobs/net/tls_context.hpp"

namespace sluice::jobs::net {

class stream {
 public:
  using error_code = boost::system::error_code;
  using socket_type = boost::asio::generic::stream_protocol::socket;  // TCP, or of this machine
  enum class step : std::uint8_t { done, wants_read, wants_write, plain_text, failed };

  // `tls` null: plain.
  stream(socket_type socket, std::shared_ptr<const tls_context> tls);
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  socket_type& socket() noexcept { return socket_; }
  bool is_secure() const noexcept { return ssl_ != nullptr; }

  // The next step of the beginning of TLS. plain_text: the client speaks without it; nothing
  // of what it said was taken.
  step handshake();
  // From here on without TLS.
  void become_plain() noexcept { ssl_.reset(); }

  std::size_t read_some(char* into, std::size_t size, error_code& ec) {
    if (ssl_ != nullptr) return read_tls(into, size, ec);
    return socket_.read_some(boost::asio::buffer(into, size), ec);
  }
  std::size_t write_some(const char* from, std::size_t size, error_code& ec) {
    if (ssl_ != nullptr) return write_tls(from, size, ec);
    return socket_.write_some(boost::asio::buffer(from, size), ec);
  }
  // There is something to read, whatever the socket says.
  bool has_more() const noexcept { return has_more_; }
  // The last read has to wait until the socket can be written to.
  bool read_wants_write() const noexcept { return read_wants_write_; }

  // The client has sent its last byte, also if there are bytes before it to read. A system call.
  bool has_ended() const noexcept;

  // Finds out within about a minute that the other machine is gone, although nothing is sent.
  void notice_loss();

  // Who is at the other end: an address, or "local"; empty: it has gone.
  std::string peer_address() const;

  // Nothing more is sent.
  void shutdown_send(error_code& ec);
  void close();

 private:
  struct freer {
    void operator()(SSL* s) const noexcept { SSL_free(s); }
  };
  // What OpenSSL reads and writes through. Not its own kind for sockets: that one raises SIGPIPE.
  struct wire_end {
    int socket = -1;
    bool ended = false;
    SSL* ssl = nullptr;
    hello_guard guard{};

    bool allows(std::string_view bytes) noexcept {
      return guard.allows(bytes, SSL_version(ssl) == TLS1_2_VERSION);
    }
  };
  friend struct wire_end_calls;

  std::size_t read_tls(char* into, std::size_t size, error_code& ec);
  std::size_t write_tls(const char* from, std::size_t size, error_code& ec);

  socket_type socket_;
  wire_end wire_;
  std::unique_ptr<SSL, freer> ssl_;
  bool began_ = false;  // the first byte was looked at
  bool has_more_ = false;
  bool read_wants_write_ = false;
};

}  // namespace sluice::jobs::net
