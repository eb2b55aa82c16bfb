#pragma once

// Serves the engine over HTTP: parses requests, calls the engine, replies when it is done.
//
// docs/reference/http.md has the routes, the JSON and the errors. All decisions are the engine's.
//
// Guarantees: any thread may call any function. The requests of a connection are answered in order,
// independent of the order in which the engine finishes them. A success is reported after the
// commit. Invalid input (bad bytes, slow or huge requests, half-closed sockets) is answered with a
// problem document if the client can still receive one, and ends at most its own connection. A
// waiting lease whose client has gone is cancelled; jobs leased for a reply that was not written
// are released at once.
// Backpressure: a connection has at most `pipelined_max` requests in progress, at most one of them
// with jobs in its reply; a body of many jobs is read as it is pushed; unread replies are bounded,
// and so is the memory of all connections together. Beyond that the socket is not read, so TCP
// slows the sender.
// Access: with `tokens`, every route except /healthz and /readyz requires a token with the role and
// the queues of the route. Beyond loopback, the server listens only with a valid token, and with
// TLS unless `insecure_http` is set (a proxy has TLS, or the network is trusted).
// TLS: a reloaded certificate applies to new connections; open connections continue.
// The engine must outlive the server's `stop` (or destruction), and must not be stopped before it.
// Cost: one thread for each loop; no CPU while idle. See benchmarks/server.
// Limits: all in the options.
//
//     http_server server({.port = 7433});
//     auto port = server.start(*engine);
//     if (!port) return report(port.error());
//     ...
//     server.close_intake(); engine->close(); engine->drained(limits).get(); server.stop(limits);

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/auth/token_set.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/http/faktory_port.hpp"
#include "jobs/http/http_security.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs::net {
class client_memory;
class listening_sockets;
}  // namespace sluice::jobs::net

namespace sluice::jobs {

struct http_server_options {
  std::string address = "127.0.0.1";  // an IP address of this machine, or "localhost"
  std::uint16_t port = 7433;          // zero: any free port
  // The server accepts on the socket "http" in here, or opens and adds it; an inherited socket must
  // have the address and port above. Null: the socket ends with the server.
  net::listening_sockets* sockets = nullptr;
  std::size_t threads = 1;
  time_source* time = nullptr;  // for `delay` and dates; null: real_time()
  std::string version{};        // for /metrics; empty: none

  std::optional<token_set> tokens{};  // none: requests need no token
  std::optional<tls_files> tls{};     // none: plain HTTP
  bool insecure_http = false;         // plain HTTP also beyond loopback
  std::vector<std::string> hosts{};   // names of this server that a Host header may have
  // A request with an unknown token is answered after this delay, and its connection ends.
  milliseconds wrong_token_delay{200};
  // Called on the server's threads; must return quickly.
  std::function<void(const audit_entry&)> on_audit{};
  std::function<void(const intrusion_notice&)> on_intrusion{};
  // Appends further metrics to /metrics, in the same format.
  std::function<void(std::string& out)> more_metrics{};
  std::optional<faktory_port> faktory{};  // none: the server has no Faktory port

  // Limits of one client.
  std::size_t connections_max = 10'000;
  std::size_t pipelined_max = 16;                         // requests in progress per connection
  std::size_t head_bytes_max = std::size_t{16} << 10;     // request line and headers
  std::size_t body_bytes_max = std::size_t{16} << 20;     // body of a request that is read whole
  std::size_t stream_bytes_max = std::size_t{256} << 20;  // body of a push as NDJSON
  std::size_t stream_jobs_max = 100'000;                  // jobs of a push as NDJSON
  std::size_t bulk_jobs_max = 10'000;  // the same, all or nothing; at most the engine's bulk_max
  std::size_t unsent_bytes_max = std::size_t{1} << 20;  // replies that a client has not read
  // The memory budget of all connections; servers may share one. Null: a budget of its own.
  std::shared_ptr<net::client_memory> memory{};

  milliseconds idle_time{75'000};  // between requests
  milliseconds head_time{10'000};  // from the first byte of a request to the end of its headers;
                                   // also for the TLS handshake
  // For a body to arrive, and for a reply to be read. A body gets it again whenever it has grown by
  // body_time at body_bytes_per_second.
  milliseconds body_time{60'000};
  std::size_t body_bytes_per_second = 1024;
  // While other connections wait for memory, a body with a reservation must arrive at this rate,
  // after its first second.
  std::size_t wanted_bytes_per_second = std::size_t{256} << 10;
  milliseconds last_request_time{500};  // for one more request on an idle connection during `stop`
  milliseconds linger_time{2000};       // for a client to read the last reply before the close
  milliseconds push_wait{30'000};  // for capacity in a queue that blocks, unless the client sets it
  milliseconds wait_max{600'000};  // longest wait that a client may set
};

class http_server {
 public:
  using options = http_server_options;

  explicit http_server(options o = {});
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  ~http_server();  // calls stop()

  // Listens, and returns the port. Called once. Fails with `invalid` (address, certificate, no
  // valid token) or `unavailable` (the port is in use, or a system call failed).
  result<std::uint16_t> start(engine& jobs);

  // From now on /readyz returns 503. Other requests are answered as before, and then the connection
  // ends, except after a request about a lease. New connections are accepted.
  void close_intake();
  // Calls close_intake, closes the listener, answers the requests that were received, and closes
  // their connections; at the limit, closes all that are left. An idle connection gets
  // `last_request_time` for another request, so that a request in transit is answered too.
  void stop(const wait_limits& limits = {});

  // Replaces the tokens. Requests in progress are checked again before they take effect; waiting
  // calls that are no longer allowed end with 401 at once.
  void use_tokens(std::optional<token_set> tokens);
  // Reads the certificate and the key again, for new connections. On an error, which names the file
  // and the reason, the present certificate stays in use.
  result<tls_certificate> reload_tls();
  // Returns the certificate in use; none: plain HTTP.
  std::optional<tls_certificate> certificate() const;

  // Returns the number of open connections.
  std::size_t connections() const;
  // Returns the number of waiting calls that would end if their token were revoked.
  std::size_t open_grants() const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
