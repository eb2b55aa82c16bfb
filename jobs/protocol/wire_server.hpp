#pragma once

// A server for a line protocol, over TCP, TLS or a unix socket.
//
// Guarantees: any thread may call any function. Each connection belongs to one loop, and has one
// session (session.hpp) for its lifetime. A client can end at most its own connection, and uses no
// more than the limits below.
// Backpressure: a connection with `replies_max` open replies, or with `unsent_bytes_max` unread
// bytes, is not read until there is capacity, so TCP slows the sender.
// Access: listens beyond loopback only with `open_to_all`.
// The engine that the sessions use must outlive `stop`.
// Cost: a thread for each loop; no CPU while idle.
//
//     wire_server server({.listen = {{.port = 11300}}, .name = "beanstalk"});
//     auto ports = server.start([&](client& c) { return std::make_unique<my_session>(c); });

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "jobs/net/tls_files.hpp"
#include "jobs/protocol/session.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs::net {
class client_memory;
class listening_sockets;
}  // namespace sluice::jobs::net

namespace sluice::jobs::protocol {

struct listen_place {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;   // zero: any free port
  std::string unix_path{};  // not empty: a unix socket at this path instead of TCP
  std::string name{};       // name of its socket in wire_server_options::sockets
};

struct wire_server_options {
  std::vector<listen_place> listen{{}};
  // A place uses the socket of its name in here; the addresses must be equal. Null: sockets end
  // with the server.
  net::listening_sockets* sockets = nullptr;
  std::string name = "wire";  // of its threads: sluice-NAME-1
  std::size_t threads = 1;
  std::optional<tls_files> tls{};  // for TCP; not used for unix sockets
  // Allows addresses beyond loopback. The error without it ends with `how_to_open`.
  bool open_to_all = false;
  std::string how_to_open{};

  std::size_t connections_max = 10'000;
  std::string refusal{};                    // sent to connections beyond the limit before the close
  std::size_t replies_max = 1024;           // open at a time, per connection
  std::size_t command_bytes_max = 4 << 20;  // limit of session::needs
  std::size_t unsent_bytes_max = std::size_t{1} << 20;  // replies that a client has not read
  // The memory budget of all connections; servers may share one. Null: a budget of its own.
  std::shared_ptr<net::client_memory> memory{};
  milliseconds idle_time{0};          // without input and open replies; zero: no limit
  milliseconds greeting_time{2000};   // for the TLS handshake
  milliseconds command_time{60'000};  // from the first byte of a command to its last
  // Minimum bytes per second after the first second, for a connection with a reservation while
  // other connections wait.
  std::size_t command_rate = std::size_t{256} << 10;
  milliseconds send_time{60'000};  // without progress in writing
};

struct wire_counts {
  std::uint64_t open = 0;      // connections now
  std::uint64_t accepted = 0;  // since the start
  std::uint64_t refused = 0;   // beyond the limit
  std::uint64_t timeouts = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

class wire_server {
 public:
  using options = wire_server_options;
  using make_session = std::function<std::unique_ptr<session>(client& peer)>;

  explicit wire_server(options o);
  wire_server(const wire_server&) = delete;
  wire_server& operator=(const wire_server&) = delete;
  ~wire_server();  // calls stop()

  // Listens, and returns the ports in the order of options::listen (zero: not TCP). Called once.
  // `at_turn_end` is called on each loop's thread after it ran the ready handlers:
  // engine::commit_here.
  using turn_end = std::function<bool(const std::function<void()>& run_posted)>;
  result<std::vector<std::uint16_t>> start(make_session make, turn_end at_turn_end = {});
  // Stops accepting, calls session::finish_up of every session, writes the open replies, and
  // closes; at the limit, closes all that are left.
  void stop(const wait_limits& limits = {});

  // Loads the certificate again, for new connections.
  result<tls_certificate> reload_tls();
  wire_counts counts() const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::protocol
