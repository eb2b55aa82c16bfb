#pragma once

// Serves the engine with the work protocol of Faktory, on a TCP port, plain or with TLS.
//
// docs/reference/faktory.md lists the commands and the differences to Faktory;
// docs/guides/moving-from-faktory describes a migration. Jobs are visible to all protocols: a job
// pushed here can be leased over HTTP and vice versa.
//
// Guarantees: any thread may call any function. PUSH, PUSHB, ACK and FAIL are answered after the
// commit. The commands of a connection are answered in order. The fetched jobs of a worker are
// released at once when its last connection closes or its BEATs stop; without an END, each of them
// counts as a failed attempt. When a queue is full: -ERR with the reason, or the push waits and the
// socket is not read, depending on the queue's overflow policy. Passwords are stored as given,
// compared in constant time and never logged; even without TLS, only their salted hash is sent. The
// engine must outlive `stop`.
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
  std::string password{};                // empty: no password is required
  std::uint32_t hash_iterations = 3000;  // of the password hash, announced to clients
  std::string version = "sluice";
  milliseconds hello_time{2000};      // for HELLO to arrive
  milliseconds fetch_wait{2000};      // maximum wait of a FETCH
  milliseconds beat_lost{60'000};     // without a BEAT, after which a worker that sent one is lost
  milliseconds push_wait{30'000};     // for capacity in a queue that blocks
  std::size_t tracked_max = 100'000;  // newest jids and batches that TRACK and BATCH STATUS know
  time_source* time = nullptr;        // null: real_time()
};

class faktory_server {
 public:
  explicit faktory_server(faktory_options o = {});
  faktory_server(const faktory_server&) = delete;
  faktory_server& operator=(const faktory_server&) = delete;
  ~faktory_server();  // calls stop()

  // Called once; see wire_server::start.
  result<std::vector<std::uint16_t>> start(engine& jobs);
  // From now on FETCH returns no job, and BEAT returns `terminate`; ACK and FAIL still work.
  void close_intake();
  void stop(const wait_limits& limits = {});
  result<tls_certificate> reload_tls();
  void use_password(std::string password);  // for new connections

  // Returns at most `limit` workers with a wid, in the order of wids, from the first behind
  // `after`.
  faktory_worker_page workers(const std::string& after = {}, std::size_t limit = 1000) const;
  // Sets the state that the worker receives at its next BEAT; from now on it gets no jobs. Returns
  // the worker. None: no such worker.
  std::optional<faktory_worker> set_state(const std::string& wid, worker_state state);

  std::uint64_t fetched_jobs() const;  // of all workers
  protocol::wire_counts counts() const;
  // Appends metrics named sluice_faktory_*, in Prometheus' text format.
  void write_metrics(std::string& out) const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
