#include "jobs/net/listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>
#include <utility>

#include "jobs/net/listening_sockets.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::net {
namespace {

using boost::asio::ip::tcp;
using boost_error = boost::system::error_code;
using local = boost::asio::local::stream_protocol;

// Pause after an accept error that may last, such as too many open files.
constexpr auto accept_pause = std::chrono::milliseconds(100);
constexpr std::size_t path_bytes_max = 107;  // sun_path of unix(7), without its terminator

// Returns whether a process accepts connections at a socket file.
bool is_served(boost::asio::io_context& context, const local::endpoint& endpoint) {
  boost_error ec;
  local::socket probe(context);
  probe.connect(endpoint, ec);
  return !ec;
}

}  // namespace

result<boost::asio::ip::address> parse_address(const std::string& text) {
  boost_error ec;
  const auto address = boost::asio::ip::make_address(text == "localhost" ? "127.0.0.1" : text, ec);
  if (!ec) return address;
  return error{error_code::invalid,
               "cannot listen on '" + text + "': expected an address such as 127.0.0.1 or ::1"};
}

listener::listener(std::vector<loop*> loops, accept_handler on_accept, kept_socket kept)
    : loops_(std::move(loops)),
      on_accept_(std::move(on_accept)),
      kept_(std::move(kept)),
      acceptor_(loops_.front()->context()),
      retry_timer_(loops_.front()->context()) {}

listener::~listener() {
  const bool is_kept = kept_.sockets != nullptr && kept_.sockets->keeps_file(kept_.name);
  if (!path_.empty() && !is_kept) ::unlink(path_.c_str());
}

result<std::uint16_t> listener::listen(const tcp::endpoint& endpoint) {
  const std::string place =
      endpoint.address().to_string() + " port " + std::to_string(endpoint.port());
  if (auto opened = open(endpoint, place); !opened) return opened.error();
  boost_error ec;
  const auto bound = acceptor_.local_endpoint(ec);
  tcp::endpoint as_tcp;
  check(!ec && bound.size() <= as_tcp.capacity(), "sluice::jobs::net::listener", "a bound socket");
  std::memcpy(as_tcp.data(), bound.data(), bound.size());
  return as_tcp.port();
}

void_result listener::listen_local(const std::string& path) {
  if (path.empty() || path.size() > path_bytes_max) {
    return error{error_code::invalid, "cannot listen on '" + path +
                                          "': the path of a socket has 1 to " +
                                          std::to_string(path_bytes_max) + " bytes"};
  }
  const local::endpoint endpoint(path);
  struct stat file {};
  const bool is_inherited = kept_.sockets != nullptr && kept_.sockets->has(kept_.name);
  if (!is_inherited && ::lstat(path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) {
      return error{error_code::invalid,
                   "cannot listen on " + path + ": the file exists and is not a socket"};
    }
    if (is_served(loops_.front()->context(), endpoint)) {
      return error{error_code::unavailable,
                   "cannot listen on " + path + ": another program listens on it"};
    }
    ::unlink(path.c_str());
  }
  const mode_t before = ::umask(0177);
  auto opened = open(endpoint, path);
  ::umask(before);
  if (!opened) return opened.error();
  path_ = path;
  return done{};
}

void_result listener::open(const protocol::endpoint& endpoint, const std::string& place) {
  const int inherited = kept_.sockets != nullptr ? kept_.sockets->duplicate(kept_.name) : -1;
  if (inherited < 0) {
    auto opened = open_new(endpoint, place);
    if (opened && kept_.sockets != nullptr) {
      kept_.sockets->add(kept_.name, acceptor_.native_handle());
    }
    return opened;
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(inherited, reinterpret_cast<sockaddr*>(&bound), &size);
  const bool is_local = endpoint.protocol().family() == AF_UNIX;
  boost_error ec = boost::asio::error::address_family_not_supported;
  if (is_local == (bound.ss_family == AF_UNIX)) {
    acceptor_.assign(protocol(bound.ss_family, is_local ? 0 : IPPROTO_TCP), inherited, ec);
  }
  if (!ec) return done{};
  ::close(inherited);
  return error{error_code::invalid, "cannot listen on the socket '" + kept_.name +
                                        "' in place of " + place + ": " + ec.message()};
}

void_result listener::open_new(const protocol::endpoint& endpoint, const std::string& place) {
  boost_error ec;
  acceptor_.open(endpoint.protocol(), ec);
  if (!ec) acceptor_.set_option(boost::asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor_.bind(endpoint, ec);
  if (!ec) acceptor_.listen(boost::asio::socket_base::max_listen_connections, ec);
  if (!ec) return done{};
  if (ec == boost::asio::error::address_in_use) {
    return error{error_code::unavailable, "cannot listen on " + place +
                                              ": another program listens on it; stop it, or choose "
                                              "another port"};
  }
  return error{error_code::unavailable, "cannot listen on " + place + ": " + ec.message()};
}

void listener::accept() {
  const std::size_t loop_index = next_loop_++ % loops_.size();
  is_accepting_ = true;
  acceptor_.async_accept(loops_[loop_index]->context(),
                         [this, loop_index](const boost_error& ec, stream::socket_type socket) {
                           is_accepting_ = false;
                           if (!ec) on_accept_(std::move(socket), loop_index);
                           if (!acceptor_.is_open()) return end_if_closed();
                           if (!ec) return accept();
                           retry_timer_.expires_after(accept_pause);
                           retry_timer_.async_wait([this](const boost_error& stopped) {
                             if (!stopped && acceptor_.is_open()) accept();
                           });
                         });
}

// The handler of a pending accept call runs after this, and may receive a connection that the
// system had accepted already.
void listener::close() {
  event closed;
  loops_.front()->run_soon([&] {
    boost_error ignored;
    acceptor_.close(ignored);
    retry_timer_.cancel();
    closed_ = &closed;
    end_if_closed();
  });
  closed.wait();
}

void listener::end_if_closed() {
  if (closed_ != nullptr && !is_accepting_) std::exchange(closed_, nullptr)->set();
}

}  // namespace sluice::jobs::net
