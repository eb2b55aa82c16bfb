#pragma once

// Hashes all events of a simulated life of a server, line by line: two runs with the
// same hash were the same. Can also print them.
//
// Constructed outside of the schedule that writes into it; allocates nothing. One thread runs at
// a time in a schedule, and none is interrupted in here, so it needs no lock.

#include <cstdint>
#include <cstdio>

namespace sluice::sim_jobs {

class event_log {
 public:
  explicit event_log(std::FILE* shown = nullptr) : shown_(shown) {}

  // Adds the line, with the time and the thread before it.
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...);
  void clear() noexcept {
    hash_ = first_hash;
    lines_ = 0;
  }

  std::uint64_t hash() const noexcept { return hash_; }
  std::uint64_t lines() const noexcept { return lines_; }

 private:
  static constexpr std::uint64_t first_hash = 0xcbf29ce484222325ULL;  // FNV-1a

  std::FILE* shown_;
  std::uint64_t hash_ = first_hash;
  std::uint64_t lines_ = 0;
};

}  // namespace sluice::sim_jobs
