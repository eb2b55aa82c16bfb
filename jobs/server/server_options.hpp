#pragma once

// What a server is told when it is started. docs/reference/configuration.md has where each of these
// can be set; config.hpp reads it.

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
  std::uint16_t port = 7433;  // zero: any that is free

  friend bool operator==(const listen_address&, const listen_address&) = default;
};
// HOST:PORT, HOST or :PORT; what is left out is as `usual` has it. The host is an address of this
// machine, 0.0.0.0 or [::] for all of them, or localhost.
result<listen_address> parse_listen_address(std::string_view text,
                                            const listen_address& usual = {});
std::string to_string(const listen_address& address);  // as in a URL
bool is_loopback(const listen_address& address) noexcept;

// For clients of beanstalkd: off while it has nowhere to listen.
struct beanstalk_settings {
  std::optional<listen_address> listen{};
  std::string socket{};  // the path of a unix socket; empty: none
  std::uint64_t job_bytes_max = 65'535;
  std::uint64_t connections_max = 10'000;
  std::uint64_t threads = 1;
  bool tls = false;   // on the port, with the server's certificate; a socket needs none
  bool open = false;  // also beyond this machine, where anybody may then do anything
  std::uint64_t binlog_max = 10'485'760;  // for its stats alone

  bool is_on() const noexcept { return listen || !socket.empty(); }
};

// For clients of Faktory: off while it has nowhere to listen. TLS where HTTP has it.
struct faktory_settings {
  std::optional<listen_address> listen{};
  std::string password{};       // empty: none is asked for
  std::string password_file{};  // where load_configuration reads it from
  std::uint64_t connections_max = 10'000;
  std::uint64_t threads = 1;
  bool open = false;  // also beyond this machine without a password, or without TLS

  bool is_on() const noexcept { return listen.has_value(); }
};

// Where jobs and their ends may be posted to.
struct delivery_options {
  std::vector<std::string> allow{};  // beginnings of URLs; empty: nowhere
  std::string secret{};              // signs what is posted; empty: it is not signed
  std::string ca_file{};             // PEM; empty: the authorities of the system
  milliseconds timeout{30'000};      // for the answer to a webhook; a queue has its own
  std::uint64_t concurrency = 64;    // posts at a time, of all queues
};

// A cron entry of the configuration.
struct cron_setting {
  cron_spec spec{};
  bool says_paused = false;  // else an entry that is there stays paused, or stays not
};

struct server_options {
  std::string data = "data";         // a folder; made if its parent is there
  bool memory = false;               // nothing is stored, and everything gone at the end
  sync_mode sync = sync_mode::full;  // docs/operating/running.md: what each can lose
  milliseconds sync_interval{100};   // for sync_mode::interval

  bool serves_http = true;  // without it `listen` and `http` are not looked at
  listen_address listen;
  beanstalk_settings beanstalk;
  faktory_settings faktory;
  http_server_options http;  // but for its address, tokens, certificate, memory and callbacks
  std::uint64_t client_memory = net::client_memory::bytes_max_usual;  // of all connections
  tls_files tls;                                                      // both empty: plain HTTP
  bool auth_required = false;  // tokens are asked for even if there are none
  std::string token_file;      // empty: tokens.json in the data folder

  engine_options engine;
  // At a stop, for posts and for jobs that connections of beanstalk and Faktory hold.
  milliseconds shutdown_grace{30'000};
  log_options log;
  std::string audit_file;             // empty: audit lines go where the log goes
  std::vector<std::string> warnings;  // of whoever made these; logged once it listens

  delivery_options delivery;
  // Applied when it starts, and when it is told to load its configuration again.
  std::vector<std::pair<std::string, queue_patch>> queues;
  std::vector<cron_setting> crons;
};
// Whether a server could do anything with these; else invalid, with the flag and what is allowed.
void_result validate(const server_options& options);

std::string token_file_of(const server_options& options);

}  // namespace sluice::jobs
