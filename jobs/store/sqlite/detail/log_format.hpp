#pragma once

// The write-ahead log as https://www.sqlite.org/fileformat2.html describes it: a head, then frames,
// each a head and a page. Numbers are big-endian.

namespace sluice::jobs::detail {

inline constexpr int log_head_bytes = 32;
inline constexpr int at_page_size = 8;  // in the head of the log
inline constexpr int frame_head_bytes = 24;

}  // namespace sluice::jobs::detail
