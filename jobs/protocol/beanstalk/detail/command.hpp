#pragma once

// Parses one line of a beanstalk client.
//
// A pure function. A line without a known verb is UNKNOWN_COMMAND; a known verb with invalid
// arguments is BAD_FORMAT. As in beanstalkd, numbers consist of digits, and any number of spaces
// may precede a number; several spaces before the name of a tube are allowed for pause-tube only.
// `use` and `watch` reject the server's own queues.
//
//     const command c = parse_command("release 7 100 30");
//     c.action == verb::release && c.number == 7 && c.pri == 100 && c.delay == 30

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::jobs::beanstalk {

inline constexpr std::size_t line_bytes_max = 224;  // with its end

enum class verb : std::uint8_t {
  put,
  reserve,
  delete_,
  reserve_with_timeout,
  reserve_job,
  release,
  bury,
  touch,
  use,
  watch,
  ignore,
  peek,
  peek_ready,
  peek_delayed,
  peek_buried,
  kick,
  kick_job,
  stats,
  stats_job,
  stats_tube,
  list_tubes,
  list_tube_used,
  list_tubes_watched,
  pause_tube,
  quit,
};
inline constexpr std::size_t verb_count = 25;
std::string_view to_string(verb v) noexcept;  // "reserve-with-timeout"

struct command {
  enum class fault : std::uint8_t { none, bad_format, unknown_command };

  verb action = verb::quit;
  fault problem = fault::none;  // not none: the other members are meaningless
  bool is_endless = false;      // reserve-with-timeout: a timeout below zero means no limit
  std::uint64_t number = 0;     // an id, the bound of kick, the timeout of reserve-with-timeout
  std::uint32_t pri = 0;
  std::uint32_t delay = 0;
  std::uint32_t ttr = 0;
  std::uint32_t bytes = 0;  // of a put's body
  std::string_view tube{};  // points into the line
};

command parse_command(std::string_view line) noexcept;

}  // namespace sluice::jobs::beanstalk
