#pragma once

// The job server's HTTP API: requests come in, go to the engine, and are answered when it has.
//
// docs/reference/http.md has the routes, the JSON and the errors; this adds nothing to what the
// engine does but the wire.
//
// Guarantees: any thread may call anything. Requests of a connection are answered in their order,
// however the engine finishes them. A success is answered after the engine said so, which is after
// the commit. Whatever comes (bad bytes, slow or huge requests, sockets that close half way) is
// answered with a problem document where there is somebody to answer, and ends at most its own
// connection. A lease whose client has gone is called off, and jobs that were leased for an answer
// that was not written are given back at once.
// Backpressure: a connection has at most `pipelined_max` requests under way, at most one of them
// with jobs in its answer; a body of many jobs is read as it is pushed; unread answers are bounded,
// and so is the memory of all connections together. Beyond that the socket is not read, so TCP
// slows the sender.
// Who may ask: with `tokens` every route but /healthz and /readyz wants one with the role and the
// queues that it takes. Beyond loopback it listens only with a token that can be used, and with TLS
// unless it is told that plain HTTP will do (a proxy has TLS, or the network is trusted).
// TLS: a certificate that is loaded anew is for new connections; those that are open go on.
// The engine must outlive the server's `stop` (or destruction), and must not be stopped before it.
// Cost: one thread for each loop; idle, no CPU. See benchmarks/server.
// Limits: all in the options.
//
//     http_server server({.port = 7433});
//     auto port = server.start(*engine);
//     if (!port) return complain(port.error());
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
}

namespace sluice::jobs {

struct http_server_options {
  std::string address = "127.0.0.1";  // or any other of this machine, or "localhost"
  std::uint16_t port = 7433;          // zero: any that is free
  // Has the socket "http" to accept on, or gets it; an inherited socket must have the address and
  // port above. Null: the socket ends with the server.
  net::listening_sockets* sockets = nullptr;
  std::size_t threads = 1;
  time_source* time = nullptr;  // of `delay` and of dates; null: real_time()
  std::string version{};        // for /metrics; empty: none

  std::optional<token_set> tokens{};  // none: nobody is asked for one
  std::optional<tls_files> tls{};     // none: plain HTTP
  bool insecure_http = false;         // plain HTTP also beyond loopback
  std::vector<std::string> hosts{};   // names that requests may call this server by
  // A token that is not known is answered after this time, and its connection ends.
  milliseconds wrong_token_delay{200};
  // Called on the server's threads; must be short.
  std::function<void(const audit_entry&)> on_audit{};
  std::function<void(const intrusion_notice&)> on_intrusion{};
  // Appends to what /metrics shows, in the same form.
  std::function<void(std::string& out)> more_metrics{};
  std::optional<faktory_port> faktory{};  // none: Faktory's protocol is not spoken

  // Bounds on what one client can take.
  std::size_t connections_max = 10'000;
  std::size_t pipelined_max = 16;                         // requests of a connection under way
  std::size_t head_bytes_max = std::size_t{16} << 10;     // request line and headers
  std::size_t body_bytes_max = std::size_t{16} << 20;     // of a request that is read whole
  std::size_t stream_bytes_max = std::size_t{256} << 20;  // of many jobs as NDJSON
  std::size_t stream_jobs_max = 100'000;                  // ... and how many
  std::size_t bulk_jobs_max = 10'000;  // ... all or nothing; not above the engine's bulk_max
  std::size_t unsent_bytes_max = std::size_t{1} << 20;  // answers made that a client has not read
  // The memory budget of all connections; servers may share one. Null: a budget of its own.
  std::shared_ptr<net::client_memory> memory{};

  milliseconds idle_time{75'000};  // between requests
  milliseconds head_time{10'000};  // from the first byte of a request to the end of its headers;
                                   // and for the beginning of TLS
  milliseconds body_time{60'000};  // for a body, and for an answer to be taken; and again whenever
                                   // as much has come as this rate brings in that time
  std::size_t body_bytes_per_second = 1024;
  // While others wait for the memory of long bodies, one that has some of it must bring so much,
  // after its first second.
  std::size_t wanted_bytes_per_second = std::size_t{256} << 10;
  milliseconds last_request_time{500};  // for a request on an idle connection, when it stops
  milliseconds linger_time{2000};       // for a client to read the last answer before the end
  milliseconds push_wait{30'000};  // for room in a queue that blocks, if the client does not say
  milliseconds wait_max{600'000};  // the longest that a client may ask to wait
};

class http_server {
 public:
  using options = http_server_options;

  explicit http_server(options o = {});
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  ~http_server();  // as stop()

  // Once. The port it listens on, or why it cannot: invalid (the address, the certificate, no token
  // that can be used), unavailable (in use, or what the system says).
  result<std::uint16_t> start(engine& jobs);

  // /readyz answers 503. Other requests are answered as before, and then the connection ends,
  // except after a request about a lease. New connections are accepted.
  void close_intake();
  // close_intake, then closes the listener, answers the requests that have been received, and
  // closes their connections; cuts off what is left at the limit. An idle connection gets
  // `last_request_time` for another request, so that a request that is under way is answered too.
  void stop(const wait_limits& limits = {});

  // From the next request on. Requests that are open are checked again before they take effect;
  // calls that wait, and are no longer allowed, end with 401 at once.
  void use_tokens(std::optional<token_set> tokens);
  // Reads the certificate and the key again, for connections from now on. An error says what is
  // wrong with them, and those that were there stay.
  result<tls_certificate> reload_tls();
  // What is shown now; none: plain HTTP.
  std::optional<tls_certificate> certificate() const;

  // Connections that are open now.
  std::size_t connections() const;
  // Calls that wait now and would end if their token was revoked.
  std::size_t open_grants() const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
