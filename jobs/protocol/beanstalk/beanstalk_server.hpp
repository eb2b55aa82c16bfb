#pragma once

// Serves the engine with the protocol of beanstalkd, on a TCP port or a unix socket.
//
// docs/reference/beanstalk.md lists the commands and the differences to beanstalkd;
// docs/guides/moving-from-beanstalkd describes a migration. A tube is a queue; jobs are visible to
// all protocols, so a job put here can be leased over HTTP and vice versa.
//
// Guarantees: any thread may call any function. INSERTED, DELETED, RELEASED, BURIED and KICKED are
// sent after the commit. The commands of a connection are answered in order. The reserved jobs of a
// connection are released at once when it closes.
// When a tube is full: OUT_OF_MEMORY, or the put waits and the socket is not read, depending on the
// queue's overflow policy. While the server drains: DRAINING.
// The engine must outlive `stop`.
//
//     beanstalk_server server({.wire = {.listen = {{.port = 11300}}}});
//     auto ports = server.start(*engine);

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/protocol/wire_server.hpp"

namespace sluice::jobs {

struct beanstalk_options {
  protocol::wire_server_options wire{.listen = {{.port = 11300}}, .name = "beanstalk"};
  std::uint32_t job_bytes_max = 65'535;   // larger jobs: JOB_TOO_BIG
  std::string version = "sluice";         // for stats
  std::uint64_t binlog_max = 10'485'760;  // for stats only: the value of beanstalkd's `-s`
  milliseconds put_wait{30'000};          // for capacity in a queue that blocks
  time_source* time = nullptr;            // null: real_time()
};

class beanstalk_server {
 public:
  explicit beanstalk_server(beanstalk_options o = {});
  beanstalk_server(const beanstalk_server&) = delete;
  beanstalk_server& operator=(const beanstalk_server&) = delete;
  ~beanstalk_server();  // calls stop()

  // Called once; see wire_server::start.
  result<std::vector<std::uint16_t>> start(engine& jobs);
  // From now on puts are answered with DRAINING; other commands continue. Like SIGUSR1 of
  // beanstalkd.
  void drain();
  bool is_draining() const;
  std::uint64_t reserved_jobs() const;  // of all connections
  void stop(const wait_limits& limits = {});
  result<tls_certificate> reload_tls();

  protocol::wire_counts counts() const;
  // Appends metrics named sluice_beanstalk_*, in Prometheus' text format.
  void write_metrics(std::string& out) const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
