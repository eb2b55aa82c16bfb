#pragma once

// The options of a server. docs/reference/configuration.md describes them; config.hpp loads them.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/http/http_server.hpp"
#include "jobs/model/cron.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "jobs/net/client_memory.hpp"
#include "jobs/server/event_log.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"

namespace sluice::jobs {

struct listen_address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 7433;  // 0: any free port

  friend bool operator==(const listen_address&, const listen_address&) = default;
};
// Parses HOST:PORT, HOST or :PORT; missing parts are taken from `defaults`. The host is an address
// of this machine, 0.0.0.0 or [::] for all addresses, or localhost.
result<listen_address> parse_listen_address(std::string_view text,
                                            const listen_address& defaults = {});
std::string to_string(const listen_address& address);  // as in a URL
bool is_loopback(const listen_address& address) noexcept;

// For clients of beanstalkd: off unless an address or a socket is set.
struct beanstalk_settings {
  std::optional<listen_address> listen{};
  std::string socket{};  // the path of a unix socket; empty: none
  std::uint64_t job_bytes_max = 65'535;
  std::uint64_t connections_max = 10'000;
  std::uint64_t threads = 1;
  bool tls = false;   // on the port, with the server's certificate; not on the socket
  bool open = false;  // permit addresses beyond loopback, without authentication
  std::uint64_t binlog_max = 10'485'760;  // shown in its stats only

  bool is_on() const noexcept { return listen || !socket.empty(); }
};

// For clients of Faktory: off unless an address is set. Uses TLS if HTTP does.
struct faktory_settings {
  std::optional<listen_address> listen{};
  std::string password{};       // empty: none required
  std::string password_file{};  // read by load_configuration
  std::uint64_t connections_max = 10'000;
  std::uint64_t threads = 1;
  bool open = false;  // permit addresses beyond loopback without a password or TLS

  bool is_on() const noexcept { return listen.has_value(); }
};

// Where jobs and their ends may be posted to.
struct delivery_options {
  std::vector<std::string> allow{};  // rules for URLs; empty: none is allowed
  std::string secret{};              // signs posts; empty: no signature
  std::string ca_file{};             // PEM; empty: the system's authorities
  milliseconds timeout{30'000};      // of a webhook; a queue has its own
  std::uint64_t concurrency = 64;    // posts at a time, of all queues
};

// A cron entry of the configuration.
struct cron_setting {
  cron_spec spec{};
  bool says_paused = false;  // has `paused`; otherwise an existing entry keeps its state
};

struct server_options {
  std::string data = "data";         // a folder; created if its parent exists
  bool memory = false;               // stores nothing: all jobs are lost at the end
  sync_mode sync = sync_mode::full;  // see docs/operating/running.md
  milliseconds sync_interval{100};   // for sync_mode::interval

  bool serves_http = true;  // if false, `listen` and `http` are ignored
  listen_address listen;
  beanstalk_settings beanstalk;
  faktory_settings faktory;
  http_server_options http;  // without address, tokens, certificate, memory and callbacks
  std::uint64_t client_memory = net::client_memory::bytes_max_usual;  // of all connections
  tls_files tls;                                                      // both empty: plain HTTP
  bool auth_required = false;  // require a token even if there are none
  std::string token_file;      // empty: tokens.json in the data folder

  engine_options engine;
  // At shutdown, for posts and for jobs held by connections of beanstalk and Faktory.
  milliseconds shutdown_grace{30'000};
  log_options log;
  std::string audit_file;             // empty: audit lines go to the log
  std::vector<std::string> warnings;  // logged once the server listens

  delivery_options delivery;
  // Applied at the start and at each reload.
  std::vector<std::pair<std::string, queue_patch>> queues;
  std::vector<cron_setting> crons;
};
// Checks the options. Fails with `invalid`, the flag and the allowed values.
void_result validate(const server_options& options);

std::string token_file_of(const server_options& options);

}  // namespace sluice::jobs
