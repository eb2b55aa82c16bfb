#pragma once

// The state that the sessions of one server share: the engine, settings, and counters.
// Counts are relaxed throughout: they order nothing.

#include <array>
#include <cstdint>
#include <string>

#include "jobs/engine/engine.hpp"
#include "jobs/protocol/beanstalk/beanstalk_server.hpp"
#include "jobs/protocol/beanstalk/detail/command.hpp"
#include "jobs/protocol/beanstalk/detail/tubes.hpp"
#include "sluice/base/atomic.hpp"

namespace sluice::jobs::beanstalk {

struct server_state {
  server_state(engine& e, const beanstalk_options& o);

  engine& jobs;
  const std::uint32_t job_bytes_max;
  const std::string version;
  const std::uint64_t binlog_max;
  const milliseconds put_wait;
  time_source& time;
  const std::string id;  // a random word for this process
  const unix_time started;
  // The retry policy of jobs that were put: at once, with the maximum of attempts.
  const retry_policy retry;

  tube_table tubes;
  job_notes notes;
  atomic<bool> is_draining{false};

  std::array<atomic<std::uint64_t>, verb_count> commands{};
  atomic<std::uint64_t> connections{0}, connections_total{0};
  atomic<std::uint64_t> producers{0}, workers{0}, waiting{0}, reserved{0};
  atomic<std::uint64_t> timed_out{0}, deadline_soon{0}, refused{0}, bad_commands{0};

  void count(verb v) noexcept { commands[static_cast<std::size_t>(v)].fetch_add(1, relaxed); }
  std::uint64_t count_of(verb v) const noexcept {
    return commands[static_cast<std::size_t>(v)].load(relaxed);
  }
};

}  // namespace sluice::jobs::beanstalk
