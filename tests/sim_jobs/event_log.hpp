#pragma once

// All that happens in a simulated life of a server, line by line, as one number: two runs with the
// same number were the same. It can be shown as well.
//
// It is made outside of the schedule that writes into it and allocates nothing. One thread runs at
// a time there, and none is interrupted in here, so it needs no lock.

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
