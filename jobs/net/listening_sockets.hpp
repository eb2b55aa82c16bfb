#pragma once

// Listening sockets that outlive a server, so that a restart refuses no connection: a client that
// connects between two servers waits in the socket's backlog until the next one accepts it.
//
// They are inherited from systemd (socket activation) or from the program that this one replaced
// (`pass_on`, then exec). Both use the same protocol: descriptors from 3 on, counted and named by
// LISTEN_FDS, LISTEN_FDNAMES and LISTEN_PID. A listener takes its socket by name, or opens one and
// adds it here.
//
// Guarantees: only the destructor closes a socket of systemd; `close_own` closes the others, too.
// No descriptor is inherited by another program, except through `pass_on`. Not thread-safe.
// Limits: 64 sockets.
//
//     auto sockets = net::listening_sockets::inherit("http");
//     if (!sockets) return report(sockets.error());
//     server.listen(&*sockets);

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/model/result.hpp"

namespace sluice::jobs::net {

class listening_sockets {
 public:
  listening_sockets() = default;
  ~listening_sockets();
  listening_sockets(listening_sockets&& other) noexcept
      : sockets_(std::exchange(other.sockets_, {})), stays_open_(other.stays_open_) {}
  listening_sockets& operator=(listening_sockets&&) = delete;

  // Returns the sockets of LISTEN_FDS, if LISTEN_PID is this process, and unsets the three
  // variables. A single socket without FileDescriptorName= gets the name `unnamed`. Fails with
  // `invalid` if a descriptor does not listen, or two have the same name.
  static result<listening_sockets> inherit(std::string_view unnamed);

  // Returns a duplicate of the socket of that name, which the caller owns; -1: no such socket.
  int duplicate(std::string_view name);
  // Adds a duplicate of a socket that the caller has opened.
  void add(std::string_view name, int socket);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Returns whether this program or a predecessor opened the socket of that name.
  bool is_own(std::string_view name) const;
  // Returns the address of the TCP socket of that name; none: no such socket.
  std::optional<boost::asio::ip::tcp::endpoint> tcp_address(std::string_view name) const;
  // Returns whether the file of that unix socket is still needed after its listener was destroyed.
  bool keeps_file(std::string_view name) const;
  // Closes inherited sockets that no listener uses. Returns their names.
  std::vector<std::string> close_unused();

  // One of the two is called when a server stops. `stay_open`: a successor inherits all sockets.
  // `close_own`: there is no successor; closes the sockets that this program or a predecessor
  // opened, so that clients are refused at once, and keeps those of systemd.
  void stay_open() { stays_open_ = true; }
  void close_own();
  // Prepares this process for exec: the next program inherits these sockets, and no other
  // descriptor but 0, 1 and 2.
  void pass_on();

 private:
  struct entry {
    std::string name;
    int socket = -1;
    bool is_own = false;  // opened by this program or a predecessor, not by systemd
    bool is_used = false;
  };
  const entry* find(std::string_view name) const;
  void_result add_inherited(int socket, std::string name);

  std::vector<entry> sockets_;
  bool stays_open_ = false;
};

}  // namespace sluice::jobs::net
