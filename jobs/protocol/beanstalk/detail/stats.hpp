#pragma once

// The replies of the stats and list commands: YAML with the fields of the protocol, in its order.
//
// Each function appends the text; the session adds `OK <bytes>`. Functions that read all queues
// return their number.

#include <optional>
#include <string>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/protocol/beanstalk/detail/server_state.hpp"

namespace sluice::jobs::beanstalk {

// Returns the beanstalk state of a job; empty: it has ended and is not visible.
std::string_view state_word(const job& j, unix_time now) noexcept;
// Smaller is more urgent, from 0 to 2^32-1: reversed from the engine's priority.
std::uint32_t pri_of(const job& j) noexcept;

std::size_t write_stats(std::string& out, const server_state& s);
// Returns false if there is no such tube. A tube exists while it holds jobs, or a client uses or
// watches it.
bool write_stats_tube(std::string& out, const server_state& s, std::string_view queue);
// `lease`: of a reserved job.
void write_stats_job(std::string& out, const server_state& s, const job& j,
                     const std::optional<lease_info>& lease);
std::size_t write_tubes(std::string& out, const server_state& s);
bool has_tube(const server_state& s, std::string_view queue);

// Appends the metrics.
void write_metrics(std::string& out, const server_state& s, const protocol::wire_counts& wire);

}  // namespace sluice::jobs::beanstalk
