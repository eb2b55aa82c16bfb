#pragma once

// The job server for those who speak to Faktory: its work protocol, on a TCP port, plain or TLS.
//
// docs/reference/faktory.md has every command and what differs; docs/guides/moving-from-faktory is
// for those who move. A Faktory job is a job: what is pushed here can be worked over HTTP, and the
// other way round.
//
// Guarantees: any thread may call anything. PUSH, PUSHB, ACK and FAIL are answered after the
// commit. Commands of a connection are answered in their order. A worker whose last connection
// goes, or that stops beating, gives back what it had fetched, at once; unless it said END, that is
// a failure of each of its jobs. When a queue is full: -ERR with the reason, or the push waits and
// the socket is not read, as the queue's overflow policy says. Passwords: kept as given, compared
// in constant time, never logged; without TLS only their salted hash crosses the wire. The engine
// must outlive `stop`.
//
//     faktory_server server({.password = "secret"});
//     auto ports = server.start(*engine);

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/model/faktory_worker.hpp"
#include "jobs/protocol/wire_server.hpp"

namespace sluice::jobs {

struct faktory_options {
  protocol::wire_server_options wire{.listen = {{.port = 7419}}, .name = "faktory"};
  std::string password{};                // empty: none is asked for
  std::uint32_t hash_iterations = 3000;  // of the password, asked of clients
  std::string version = "sluice";
  milliseconds hello_time{2000};      // for HELLO
  milliseconds fetch_wait{2000};      // how long a FETCH waits
  milliseconds beat_lost{60'000};     // a worker that has beaten before is gone after that
  milliseconds push_wait{30'000};     // for room in a queue that blocks
  std::size_t tracked_max = 100'000;  // jids that TRACK and unique answers find, the newest
  time_source* time = nullptr;        // null: real_time()
};

class faktory_server {
 public:
  explicit faktory_server(faktory_options o = {});
  faktory_server(const faktory_server&) = delete;
  faktory_server& operator=(const faktory_server&) = delete;
  ~faktory_server();  // as stop()

  // Once; as wire_server::start.
  result<std::vector<std::uint16_t>> start(engine& jobs);
  // Fetches get nothing from now on, workers get `terminate` at their next beat, and may still ACK
  // and FAIL.
  void close_intake();
  void stop(const wait_limits& limits = {});
  result<tls_certificate> reload_tls();
  void use_password(std::string password);  // for connections from now on

  // Workers that have said who they are, behind this wid, so many at most.
  faktory_worker_page workers(const std::string& after = {}, std::size_t limit = 1000) const;
  // Tells a worker at its next beat, and gives what is known of it then. From now on it gets no
  // jobs. None: there is none.
  std::optional<faktory_worker> tell(const std::string& wid, worker_state what);

  std::uint64_t fetched_jobs() const;  // that workers hold
  protocol::wire_counts counts() const;
  // Lines for /metrics, in Prometheus' text form, beginning with sluice_faktory_.
  void write_metrics(std::string& out) const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
