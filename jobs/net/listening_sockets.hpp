#pragma once

// Listening sockets that outlive a server, so that a restart refuses no connection: a client that
// connects between two servers waits in the socket's backlog until the next one accepts it.
//
// They are inherited from systemd (socket activation) or from the program that this one replaced
// (`pass_on`, then exec). Both use the same protocol: descriptors from 3 on, counted and named by
// LISTEN_FDS, LISTEN_FDNAMES and LISTEN_PID. A listener asks for its socket by name, or opens one
// and adds it here.
//
// Guarantees: a given socket is closed by the destructor alone, an opened one also by `close_own`.
// No descriptor is inherited by another program, except through `pass_on`. Not thread-safe.
// Limits: 64 sockets.
//
//     auto sockets = net::listening_sockets::inherit("http");
//     if (!sockets) return complain(sockets.error());
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

  // Those of LISTEN_FDS, if LISTEN_PID is this process, and unsets the three variables. A single
  // socket without a name of its own (systemd names it after its unit) gets `unnamed`. invalid: a
  // descriptor does not listen, or two have the same name.
  static result<listening_sockets> inherit(std::string_view unnamed);

  // A duplicate of the socket of that name, for the caller to accept on and to close; -1: none.
  int duplicate(std::string_view name);
  // Adds a duplicate of a socket that the caller has opened.
  void add(std::string_view name, int socket);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Returns whether this program or a predecessor opened the socket of that name.
  bool is_own(std::string_view name) const;
  // The address of the TCP socket of that name; none: no such socket.
  std::optional<boost::asio::ip::tcp::endpoint> tcp_address(std::string_view name) const;
  // Whether the file of a unix socket of that name is still needed when its listener has ended.
  bool keeps_file(std::string_view name) const;
  // Closes inherited sockets that no listener uses. Returns their names.
  std::vector<std::string> close_unused();

  // For the end of a server. `stay_open`: a successor inherits all sockets. `close_own`: no
  // successor; closes the sockets that were opened here, so that clients are refused at once, and
  // not those of systemd.
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
