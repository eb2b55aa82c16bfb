#pragma once

// A client's non-blocking socket, plain or with TLS.
//
// Without TLS, a call is the socket's own plus one comparison. With TLS, a read takes as many
// records as fit into the buffer. Errors are would_block, eof, or any other of the socket.

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
  using socket_type = boost::asio::generic::stream_protocol::socket;  // TCP or unix
  enum class step : std::uint8_t { done, wants_read, wants_write, plain_text, failed };

  // `tls` null: plain.
  stream(socket_type socket, std::shared_ptr<const tls_context> tls);
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  socket_type& socket() noexcept { return socket_; }
  bool is_secure() const noexcept { return ssl_ != nullptr; }

  // Continues the TLS handshake. Returns plain_text if the client does not use TLS; its bytes are
  // still unread.
  step handshake();
  // Continues without TLS.
  void become_plain() noexcept { ssl_.reset(); }

  std::size_t read_some(char* into, std::size_t size, error_code& ec) {
    if (ssl_ != nullptr) return read_tls(into, size, ec);
    return socket_.read_some(boost::asio::buffer(into, size), ec);
  }
  std::size_t write_some(const char* from, std::size_t size, error_code& ec) {
    if (ssl_ != nullptr) return write_tls(from, size, ec);
    return socket_.write_some(boost::asio::buffer(from, size), ec);
  }
  // Returns whether a read would return bytes or an end even if the socket is not readable: TLS has
  // buffered them.
  bool has_more() const noexcept { return has_more_; }
  // Returns whether the last read must be repeated when the socket is writable.
  bool read_wants_write() const noexcept { return read_wants_write_; }

  // Returns whether the client has closed its direction, even if unread bytes are left. Costs a
  // system call.
  bool has_ended() const noexcept;

  // Enables keepalive: the connection fails within about a minute if the other machine is lost,
  // even if nothing is sent.
  void detect_peer_loss();

  // Returns the client's IP address, or "local" for a unix socket; empty: no longer connected.
  std::string peer_address() const;

  // Closes the direction to the client.
  void shutdown_send(error_code& ec);
  void close();

 private:
  struct freer {
    void operator()(SSL* s) const noexcept { SSL_free(s); }
  };
  // The state of the BIO below OpenSSL. OpenSSL's own socket BIO would raise SIGPIPE.
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
  bool saw_first_byte_ = false;
  bool has_more_ = false;
  bool read_wants_write_ = false;
};

}  // namespace sluice::jobs::net
