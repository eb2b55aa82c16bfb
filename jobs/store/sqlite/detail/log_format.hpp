#pragma once

// The format of the write-ahead log, as in https://www.sqlite.org/fileformat2.html: a head, then
// frames, each a head and a page. Numbers are big-endian, except the input words of checksums.

#include <cstdint>

namespace sluice::jobs::detail {

inline constexpr int log_head_bytes = 32;
inline constexpr std::uint32_t log_magic = 0x377F0682;  // plus 1: checksums of big-endian words
inline constexpr int at_page_size = 8;                  // in the head of the log
inline constexpr int at_log_salts = 16;
inline constexpr int at_log_checksum = 24;

inline constexpr int frame_head_bytes = 24;
inline constexpr int at_frame_commit = 4;  // in the head of a frame: not zero ends a transaction
inline constexpr int at_frame_salts = 8;
inline constexpr int at_frame_checksum = 16;
inline constexpr int salts_bytes = 8;

}  // namespace sluice::jobs::detail
