#pragma once

// What the stats and list commands answer: YAML with the fields of the protocol, in their order.
//
// Each function appends the text itself; the session puts `OK <bytes>` before it. Those that look
// at every queue say how many those were.

#include <optional>
#include <string>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/protocol/beanstalk/detail/server_state.hpp"

namespace sluice::jobs::beanstalk {

// How a beanstalk client sees a job of the engine; empty: not at all, it has ended.
std::string_view state_word(const job& j, unix_time now) noexcept;
// Smaller is more urgent, from 0 to 2^32-1: the other way round than the engine's.
std::uint32_t pri_of(const job& j) noexcept;

std::size_t write_stats(std::string& out, const server_state& s);
// False: there is no such tube. One is there while it holds jobs, or somebody uses or watches it.
bool write_stats_tube(std::string& out, const server_state& s, std::string_view queue);
// `lease`: who has it, if somebody has.
void write_stats_job(std::string& out, const server_state& s, const job& j,
                     const std::optional<lease_info>& lease);
std::size_t write_tubes(std::string& out, const server_state& s);
bool has_tube(const server_state& s, std::string_view queue);

// Lines for /metrics.
void write_metrics(std::string& out, const server_state& s, const protocol::wire_counts& wire);

}  // namespace sluice::jobs::beanstalk
