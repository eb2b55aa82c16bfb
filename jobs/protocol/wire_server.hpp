#pragma once

// Listens for a line protocol and keeps its connections: TCP, TLS, or a socket of this machine.
//
// Guarantees: any thread may call anything. Each connection is on one loop, and has one session
// (session.hpp) from its beginning to its end. Whatever a client sends or does not read ends at
// most its own connection, and takes no more than the bounds below. Backpressure: a connection that
// has `replies_max` open, or `unsent_bytes_max` unread by its client, is not read until that is
// better; so TCP slows the sender. Who may come: beyond loopback it listens only if it is told so,
// see `open_to_all`. The engine that the sessions use must outlive `stop`. Cost: a thread for each
// loop; idle, no CPU.
//
//     wire_server server({.listen = {{.port = 11300}}, .name = "beanstalk"});
//     auto where = server.start([&](client& to) { return std::make_unique<my_session>(to); });

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
}

namespace sluice::jobs::protocol {

struct listen_place {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;   // zero: any that is free
  std::string unix_path{};  // not empty: a socket of this machine there, instead of TCP
  std::string name{};       // of its socket, in wire_server_options::sockets
};

struct wire_server_options {
  std::vector<listen_place> listen{{}};
  // A socket that is named there like a place is used for it; its address must be that of the
  // place. Null: sockets end with the server.
  net::listening_sockets* sockets = nullptr;
  std::string name = "wire";  // of its threads: sluice-NAME-1
  std::size_t threads = 1;
  std::optional<tls_files> tls{};  // for TCP; sockets of this machine need none
  // Beyond loopback. The error that refuses it says `how_to_open`.
  bool open_to_all = false;
  std::string how_to_open{};

  std::size_t connections_max = 10'000;
  std::string one_too_many{};               // said to those beyond, before they are closed
  std::size_t replies_max = 1024;           // of one connection, open at a time
  std::size_t command_bytes_max = 4 << 20;  // what a session may need to see at once
  std::size_t unsent_bytes_max = std::size_t{1} << 20;  // replies made that a client has not read
  // The memory budget of all connections; servers may share one. Null: a budget of its own.
  std::shared_ptr<net::client_memory> memory{};
  milliseconds idle_time{0};          // without a byte and with no reply open; zero: any time
  milliseconds greeting_time{2000};   // for TLS; and for a session that says so (client::wake_at)
  milliseconds command_time{60'000};  // from the first byte of a command to its last
  // Minimum bytes per second after the first second, for a connection with a reservation while
  // others wait.
  std::size_t command_rate = std::size_t{256} << 10;
  milliseconds send_time{60'000};  // for what is unsent to move at all
};

struct wire_counts {
  std::uint64_t open = 0;      // connections now
  std::uint64_t accepted = 0;  // since the start
  std::uint64_t refused = 0;   // one too many
  std::uint64_t timeouts = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

class wire_server {
 public:
  using options = wire_server_options;
  using make_session = std::function<std::unique_ptr<session>(client& to)>;

  explicit wire_server(options o);
  wire_server(const wire_server&) = delete;
  wire_server& operator=(const wire_server&) = delete;
  ~wire_server();  // as stop()

  // Once. The ports in the order of options::listen (zero: not TCP), or why it cannot listen.
  // `at_turn_end` is called on each loop's thread whenever it has run what was ready: engine::help.
  using turn_end = std::function<bool(const std::function<void()>& between)>;
  result<std::vector<std::uint16_t>> start(make_session make, turn_end at_turn_end = {});
  // Takes no connections any more, tells every session (session::finish_up), writes what is open,
  // closes; what is left at the limit is cut off.
  void stop(const wait_limits& limits = {});

  // Loads the certificate again, for connections from now on.
  result<tls_certificate> reload_tls();
  wire_counts counts() const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::protocol
