#pragma once

// A time zone file (TZif, RFC 8536) as plain values: its table of changes, and the rule after it.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/detail/posix_tz.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

inline constexpr std::size_t tzif_bytes_max = 256 * 1024;
// What is told from UTC by more than this is no clock on a wall (RFC 8536 recommends 25 and 26 h).
inline constexpr seconds utc_offset_max = std::chrono::hours(26);
// Beyond, nothing changes any more: some 10,000 years around 1970.
inline constexpr sys_seconds time_min{seconds(-377'705'116'800)};  // the first of year -9999
inline constexpr sys_seconds time_max{seconds(253'402'300'800)};   // the first of year 10000

struct tzif {
  struct local_type {
    seconds from_utc{};
    bool is_dst = false;
    std::string abbreviation{};
  };
  struct change {
    sys_seconds when{};
    std::uint8_t to = 0;  // a type
  };
  std::vector<local_type> types{};  // at least one; the first is that before the first change
  std::vector<change> changes{};    // ascending, from time_min to time_max
  std::optional<posix_tz> after{};  // the last change; none: it stays as the last change left it

  // Any bytes at all. An error says what is wrong with them, and nothing of where they came from.
  static result<tzif> parse(std::string_view bytes);
};

}  // namespace sluice::jobs::detail
