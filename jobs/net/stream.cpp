#include "jobs/net/stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice::jobs::net {

struct wire_end_calls {
  using wire_end = stream::wire_end;

  static wire_end& of(BIO* b) { return *static_cast<wire_end*>(BIO_get_data(b)); }

  static int read(BIO* b, char* into, int size) {
    BIO_clear_retry_flags(b);
    const auto n = ::recv(of(b).socket, into, static_cast<std::size_t>(size), 0);
    if (n == 0) of(b).ended = true;
    if (n > 0 && !of(b).allows({into, static_cast<std::size_t>(n)})) return -1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(b);
    return static_cast<int>(n);
  }
  static int write(BIO* b, const char* from, int size) {
    BIO_clear_retry_flags(b);
    const auto n = ::send(of(b).socket, from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(b);
    return static_cast<int>(n);
  }
  static long control(BIO* b, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return of(b).ended ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "sluice socket");
      check(m != nullptr, "sluice::jobs::net::stream", "memory");
      BIO_meth_set_read(m, read);
      BIO_meth_set_write(m, write);
      BIO_meth_set_ctrl(m, control);
      return m;
    }();
    return made;
  }
};

namespace {

namespace asio_error = boost::asio::error;

int as_int(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

stream::stream(socket_type socket, std::shared_ptr<const tls_context> tls)
    : socket_(std::move(socket)), wire_{.socket = socket_.native_handle()} {
  if (tls == nullptr) return;
  ssl_.reset(SSL_new(tls->get()));  // holds a reference to the context
  BIO* const bio = BIO_new(wire_end_calls::method());
  check(ssl_ != nullptr && bio != nullptr, "sluice::jobs::net::stream", "memory");
  wire_.ssl = ssl_.get();
  BIO_set_data(bio, &wire_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

stream::step stream::handshake() {
  if (!saw_first_byte_) {
    char first = 0;
    const auto n = ::recv(wire_.socket, &first, 1, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return step::wants_read;
    if (n <= 0) return step::failed;
    saw_first_byte_ = true;
    // An HTTP method; TLS begins with the byte 22.
    if (first >= 'A' && first <= 'Z') return step::plain_text;
  }
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) {
    wire_.guard.end();
    return step::done;
  }
  switch (SSL_get_error(ssl_.get(), done)) {
    case SSL_ERROR_WANT_READ:
      return step::wants_read;
    case SSL_ERROR_WANT_WRITE:
      return step::wants_write;
    default:
      return step::failed;
  }
}

std::size_t stream::read_tls(char* into, std::size_t size, error_code& ec) {
  has_more_ = read_wants_write_ = false;
  std::size_t total = 0;
  while (total < size) {
    ERR_clear_error();
    const int n = SSL_read(ssl_.get(), into + total, as_int(size - total));
    if (n > 0) {
      total += static_cast<std::size_t>(n);
      continue;
    }
    switch (SSL_get_error(ssl_.get(), n)) {
      case SSL_ERROR_WANT_WRITE:
        read_wants_write_ = true;
        [[fallthrough]];
      case SSL_ERROR_WANT_READ:
        ec = asio_error::would_block;
        break;
      case SSL_ERROR_ZERO_RETURN:
        ec = asio_error::eof;
        break;
      default:
        ec = asio_error::connection_reset;
    }
    if (total == 0) return 0;
    // Return the bytes first; the next read finds the end again.
    has_more_ = ec != asio_error::would_block;
    break;
  }
  // If the buffer is full, OpenSSL may hold the rest of a record, which the socket does not show.
  if (total == size) has_more_ = SSL_pending(ssl_.get()) > 0;
  ec = {};
  return total;
}

std::size_t stream::write_tls(const char* from, std::size_t size, error_code& ec) {
  ERR_clear_error();
  const int n = SSL_write(ssl_.get(), from, as_int(size));
  if (n > 0) {
    ec = {};
    return static_cast<std::size_t>(n);
  }
  // WANT_READ is impossible: renegotiation is disabled.
  ec = SSL_get_error(ssl_.get(), n) == SSL_ERROR_WANT_WRITE
           ? error_code(asio_error::would_block)
           : error_code(asio_error::connection_reset);
  return 0;
}

bool stream::has_ended() const noexcept {
  pollfd end{wire_.socket, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) == 1;
}

void stream::detect_peer_loss() {
  const auto set = [this](int level, int option, int value) {
    // Fails on unix sockets, which do not need it.
    (void)::setsockopt(socket_.native_handle(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

std::string stream::peer_address() const {
  error_code ec;
  const auto end = socket_.remote_endpoint(ec);
  if (ec) return {};
  boost::asio::ip::tcp::endpoint as_tcp;
  if (end.protocol().family() == AF_UNIX || end.size() > as_tcp.capacity()) return "local";
  std::memcpy(as_tcp.data(), end.data(), end.size());
  return as_tcp.address().to_string();
}

void stream::shutdown_send(error_code& ec) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());  // sends close_notify if the send buffer has space
  }
  socket_.shutdown(socket_type::shutdown_send, ec);
}

void stream::close() {
  error_code ignored;
  socket_.close(ignored);
  ssl_.reset();
}

}  // namespace sluice::jobs::net
