#pragma once

// What a server is told when it is started.

#include <cstdint>
#include <string>

#include "jobs/engine/engine.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "jobs/server/event_log.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"

namespace sluice::jobs {

struct listen_address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 7433;  // zero: any that is free

  friend bool operator==(const listen_address&, const listen_address&) = default;
};
// HOST:PORT, HOST or :PORT. Loopback only, as there is no authentication: 127.x.y.z, [::1] or
// localhost; anything else is invalid.
result<listen_address> parse_listen_address(std::string_view text);
std::string to_string(const listen_address& address);  // as in a URL

struct server_options {
  std::string data = "data";         // a folder; made if its parent is there
  bool memory = false;               // nothing is stored, and everything gone at the end
  sync_mode sync = sync_mode::full;  // docs/operating/running.md: what each can lose
  milliseconds sync_interval{100};   // for sync_mode::interval

  listen_address listen;
  std::size_t connections_max = 10'000;
  std::size_t body_bytes_max = std::size_t{16} << 20;

  engine_options engine;
  milliseconds shutdown_grace{30'000};  // for leases to finish, after SIGTERM
  log_options log;
};
// Whether a server could do anything with these; else invalid, with the flag and what is allowed.
void_result validate(const server_options& options);

}  // namespace sluice::jobs
