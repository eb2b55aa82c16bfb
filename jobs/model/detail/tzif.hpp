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
// Larger offsets from UTC are treated as damage (RFC 8536 recommends 25 and 26 h).
inline constexpr seconds utc_offset_max = std::chrono::hours(26);
// Outside of these times, some 10,000 years around 1970, the offset is constant.
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
    std::uint8_t type = 0;  // index into `types`
  };
  std::vector<local_type> types{};  // at least one; the first applies before the first change
  std::vector<change> changes{};    // ascending, from time_min to time_max
  std::optional<posix_tz> after{};  // the rule after the last change; none: its offset stays

  // Parses any bytes. The error describes the damage, without the name of the file.
  static result<tzif> parse(std::string_view bytes);
};

}  // namespace sluice::jobs::detail
