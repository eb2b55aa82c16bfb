#pragma once

// Looks for a damaged frame in a write-ahead log that nobody has open. SQLite takes the first frame
// that is not valid for the end of the log and drops what follows, without a word.
//
// The checksums of frames are a chain: each begins with the one before. The seed of a frame behind
// a damaged one is therefore read from the head of the frame before it.
// A commit that is only partly on the disk (after a power cut, a failed sync, or a kill during the
// write) looks the same as a damaged last commit: it was not acknowledged, but cannot be told
// apart.

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::jobs::detail {

struct log_damage {
  std::uint64_t frame = 0;           // the first that is not valid, from 1; zero: the log's head
  std::uint64_t frames_behind = 0;   // that are valid
  std::uint64_t commits_behind = 0;  // ends of transactions among them

  // False: only the last commit can be damaged, which may be one that was not acknowledged.
  bool is_certain() const noexcept { return commits_behind > 0; }
  // A sentence, but for the name of the file.
  std::string describe() const;
};

// None: all frames of the log are valid, or it was written to meanwhile.
// `page_bytes` is used if the log's head is damaged.
std::optional<log_damage> find_log_damage(const std::string& log, std::uint32_t page_bytes = 4096);

}  // namespace sluice::jobs::detail
