#pragma once

// Replies of the protocol without arguments, and conversions of its numbers to the engine's.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "jobs/model/job.hpp"

namespace sluice::jobs::beanstalk {

namespace words {
inline constexpr std::string_view out_of_memory = "OUT_OF_MEMORY\r\n";
inline constexpr std::string_view internal_error = "INTERNAL_ERROR\r\n";
inline constexpr std::string_view bad_format = "BAD_FORMAT\r\n";
inline constexpr std::string_view unknown_command = "UNKNOWN_COMMAND\r\n";
inline constexpr std::string_view expected_crlf = "EXPECTED_CRLF\r\n";
inline constexpr std::string_view job_too_big = "JOB_TOO_BIG\r\n";
inline constexpr std::string_view draining = "DRAINING\r\n";
inline constexpr std::string_view not_found = "NOT_FOUND\r\n";
inline constexpr std::string_view not_ignored = "NOT_IGNORED\r\n";
inline constexpr std::string_view timed_out = "TIMED_OUT\r\n";
inline constexpr std::string_view deadline_soon = "DEADLINE_SOON\r\n";
inline constexpr std::string_view deleted = "DELETED\r\n";
inline constexpr std::string_view released = "RELEASED\r\n";
inline constexpr std::string_view buried = "BURIED\r\n";
inline constexpr std::string_view touched = "TOUCHED\r\n";
inline constexpr std::string_view kicked = "KICKED\r\n";
inline constexpr std::string_view paused = "PAUSED\r\n";
}  // namespace words

// In beanstalk smaller is more urgent, in the engine larger.
constexpr std::int64_t priority_of(std::uint32_t pri) noexcept {
  return -static_cast<std::int64_t>(pri);
}

// Converts seconds, up to the longest duration of the engine.
constexpr milliseconds duration_of(std::uint64_t seconds) noexcept {
  constexpr auto most = static_cast<std::uint64_t>(limits::duration_max.count() / 1000);
  return std::chrono::seconds(static_cast<std::int64_t>(std::min(seconds, most)));
}

}  // namespace sluice::jobs::beanstalk
