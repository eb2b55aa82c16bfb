#pragma once

// Takes connections for a server, from a TCP port or a unix socket, and deals them out to its loops
// in turn.
//
// With `kept` the listener accepts on the socket of that name in listening_sockets, which outlives
// the listener. If there is no such socket, the listener opens it and adds it there.
//
// A socket file that a killed server left behind is replaced, unless another process listens on it.
// Belongs to the thread of the first loop, but for `listen` before that runs, and `close`.

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

// invalid: it is no address of a machine. "localhost" is one.
result<boost::asio::ip::address> parse_address(const std::string& text);

class listening_sockets;

struct kept_socket {
  listening_sockets* in = nullptr;  // null: the socket ends with its listener
  std::string name{};
};

class listener {
 public:
  // On the first loop's thread.
  using taken = std::function<void(stream::socket_type socket, std::size_t which_loop)>;

  listener(std::vector<loop*> loops, taken then, kept_socket kept = {});
  ~listener();

  // The port, or unavailable: in use, or what the system says.
  result<std::uint16_t> listen(const boost::asio::ip::tcp::endpoint& where);
  // A file that is made for it, for this user alone.
  void_result listen_local(const std::string& path);
  void accept();  // once, after it listens
  // Any thread, while the loops run. After it, no connection is accepted, except those that the
  // kernel has completed an accept call for; others wait in the backlog of a kept socket.
  void close();

 private:
  using protocol = boost::asio::generic::stream_protocol;
  void_result open(const protocol::endpoint& where, const std::string& place);
  void_result open_new(const protocol::endpoint& where, const std::string& place);
  void end_if_closed();

  std::vector<loop*> loops_;
  taken then_;
  kept_socket kept_;
  std::size_t next_loop_ = 0;
  boost::asio::basic_socket_acceptor<protocol> acceptor_;
  boost::asio::steady_timer again_;
  std::string path_;  // of the socket file; empty: none
  bool is_accepting_ = false;
  event* closed_ = nullptr;  // to be set when no accept is under way; null: not closing
};

}  // namespace sluice::jobs::net
