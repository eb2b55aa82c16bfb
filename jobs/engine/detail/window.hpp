#pragma once

// The next ready jobs of one queue, in memory; the rest of them are on disk.
//
// The window holds every job that can be taken up to its horizon, in order. Beyond the horizon the
// store knows better: `is_cut()`. A job that arrives beyond a horizon is left on disk; one that
// arrives before it goes in, and may push the last one out. So a backlog of any length costs the
// memory of one window, and the jobs of a short queue are never read back.
//
// Not thread-safe; the engine's lock guards it.

#include <cstdint>
#include <map>
#include <optional>

#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

inline position position_of(const job& j) noexcept {
  return {j.spec.priority, j.turn};
}

// What a job takes in memory: its texts, and about as much again for itself and its place.
inline std::uint64_t memory_of(const job& j) noexcept {
  return weight_of(j.spec) + sizeof(job) + 128;
}

class window {
 public:
  struct bounds {
    std::size_t jobs = 4096;
    std::uint64_t bytes = 0;  // that this window may have now; it always may have one job
  };

  bool empty() const noexcept { return jobs_.empty(); }
  std::size_t size() const noexcept { return jobs_.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  bool is_cut() const noexcept { return cut_; }
  position horizon() const noexcept { return horizon_; }
  const job_ptr& front() const { return jobs_.begin()->second; }
  // How many ready jobs are before that; none: some of them are in the store alone.
  std::optional<std::size_t> count_before(const position& where) const;

  // A job that is in the store, and can be taken.
  void publish(job_ptr it, const bounds& b);
  job_ptr take_front();
  bool erase(const position& where);
  // Leaves what is at `where`, and all after it, to be read from the store again.
  void forget_from(const position& where);
  // What the store has after the horizon (without those that are leased). `was_all`: there is
  // nothing after these.
  void extend(std::vector<job_ptr> next, std::optional<position> last_read, bool was_all);

 private:
  void cut_last();

  std::map<position, job_ptr> jobs_;
  std::uint64_t bytes_ = 0;
  bool cut_ = false;  // the store has, or may have, ready jobs after the horizon
  position horizon_;  // while cut_
};

}  // namespace sluice::jobs::detail
