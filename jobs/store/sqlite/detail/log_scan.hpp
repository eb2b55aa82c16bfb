#pragma once

// Finds a damaged frame in a write-ahead log. SQLite treats the first invalid frame as the end of
// the log, and drops all later frames without an error.
//
// The checksums of frames are a chain: each starts with the previous one. The seed of a frame after
// a damaged one is therefore read from the head of the frame before it.
// A commit that is only partly on the disk (after a power cut, a failed sync, or a kill during the
// write) looks like a damaged last commit: it was not acknowledged, but cannot be distinguished.
// Its end may be on the disk while an earlier frame of it is not. A log that a server is writing to
// is read twice: a frame that was not yet written the first time is valid the second time.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace sluice::jobs::detail {

struct log_damage {
  std::uint64_t frame = 0;             // the first invalid frame, from 1; zero: the log's head
  std::uint64_t frames_behind = 0;     // valid frames after it
  std::uint64_t commits_behind = 0;    // ends of transactions among them
  std::uint64_t commits_in_a_row = 0;  // the longest run of them without an invalid frame

  // True if an acknowledged commit is certainly lost. The first commit after the damaged frame may
  // be the commit of that frame, or a failed one, whose sync failed. The second one in a row
  // started only after the first was acknowledged (sync mode full).
  bool is_certain() const noexcept { return commits_in_a_row > 1; }
  // A sentence without its period and the name of the file.
  std::string describe() const;

  friend bool operator==(const log_damage&, const log_damage&) = default;
};

// Fills all of `into` with the bytes of the log from `at`. Returns false if there are fewer, or
// they cannot be read.
using log_source = std::function<bool(std::span<unsigned char> into, std::uint64_t at)>;

// Returns none if all frames of the log are valid, or if it was restarted meanwhile.
// `page_bytes` is used if the log's head is damaged.
std::optional<log_damage> find_log_damage(const log_source& log, std::uint32_t page_bytes = 4096);
// Checks a file, through the VFS of this name; empty: the system's.
std::optional<log_damage> find_log_damage(const std::string& path, const std::string& vfs = {});

}  // namespace sluice::jobs::detail
