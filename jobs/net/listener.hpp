#pragma once

// Accepts connections for a server, on a TCP port or a unix socket, and distributes them to its
// loops round-robin.
//
// With `kept` the listener accepts on the socket of that name in listening_sockets, which outlives
// the listener. If there is no such socket, the listener opens it and adds it there.
//
// A socket file that a killed server left behind is replaced, unless another process listens on it.
// Threads: the first loop's, except `listen`, which must be called before that loop runs, and
// `close`.

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/net/loop.hpp"
#include "jobs/net/stream.hpp"

namespace sluice::jobs::net {

// Parses an IP address; "localhost" is 127.0.0.1. Fails with `invalid` if `text` is not an address.
result<boost::asio::ip::address> parse_address(const std::string& text);

class listening_sockets;

struct kept_socket {
  listening_sockets* sockets = nullptr;  // null: the socket ends with its listener
  std::string name{};
};

class listener {
 public:
  // Called on the first loop's thread.
  using accept_handler = std::function<void(stream::socket_type socket, std::size_t loop_index)>;

  listener(std::vector<loop*> loops, accept_handler on_accept, kept_socket kept = {});
  ~listener();

  // Returns the port. Fails with `unavailable` if it is in use or the system call fails.
  result<std::uint16_t> listen(const boost::asio::ip::tcp::endpoint& endpoint);
  // Creates the socket file, which only this user can open.
  void_result listen_local(const std::string& path);
  // Starts to accept. Called once, after `listen`.
  void accept();
  // Any thread, while the loops run. Stops accepting and waits for the accept call that is pending,
  // which may still deliver a connection; others wait in the backlog of a kept socket.
  void close();

 private:
  using protocol = boost::asio::generic::stream_protocol;
  void_result open(const protocol::endpoint& endpoint, const std::string& place);
  void_result open_new(const protocol::endpoint& endpoint, const std::string& place);
  void end_if_closed();

  std::vector<loop*> loops_;
  accept_handler on_accept_;
  kept_socket kept_;
  std::size_t next_loop_ = 0;
  boost::asio::basic_socket_acceptor<protocol> acceptor_;
  boost::asio::steady_timer retry_timer_;
  std::string path_;  // of the socket file; empty: none
  bool is_accepting_ = false;
  event* closed_ = nullptr;  // set when no accept call is pending; null: not closing
};

}  // namespace sluice::jobs::net
