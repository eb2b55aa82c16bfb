#pragma once

// The job server for those who speak to beanstalkd: its protocol, on a TCP port or a unix socket.
//
// docs/reference/beanstalk.md has every command and what differs;
// docs/guides/moving-from-beanstalkd is for those who move. A tube is a queue and a job is a job:
// what is put here can be worked over HTTP, and the other way round.
//
// Guarantees: any thread may call anything. INSERTED, DELETED, RELEASED, BURIED and KICKED are said
// after the commit. Commands of a connection are answered in their order. A connection that goes
// gives back what it had reserved, at once.
// When a tube is full: OUT_OF_MEMORY, or the put waits and the socket is not read, as the queue's
// overflow policy says. While it drains: DRAINING.
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
  std::uint32_t job_bytes_max = 65'535;   // beyond it: JOB_TOO_BIG
  std::string version = "sluice";         // for stats
  std::uint64_t binlog_max = 10'485'760;  // for stats alone: what `-s` said
  milliseconds put_wait{30'000};          // for room in a queue that blocks
  time_source* time = nullptr;            // null: real_time()
};

class beanstalk_server {
 public:
  explicit beanstalk_server(beanstalk_options o = {});
  beanstalk_server(const beanstalk_server&) = delete;
  beanstalk_server& operator=(const beanstalk_server&) = delete;
  ~beanstalk_server();  // as stop()

  // Once; as wire_server::start.
  result<std::vector<std::uint16_t>> start(engine& jobs);
  // Puts are answered DRAINING from now on; all else goes on. As SIGUSR1 does to beanstalkd.
  void drain();
  bool is_draining() const;
  std::uint64_t reserved_jobs() const;  // that connections hold
  void stop(const wait_limits& limits = {});
  result<tls_certificate> reload_tls();

  protocol::wire_counts counts() const;
  // Lines for /metrics, in Prometheus' text form, beginning with sluice_beanstalk_.
  void write_metrics(std::string& out) const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
