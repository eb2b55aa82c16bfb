#pragma once

// The next ready jobs of one queue, in memory; the others are only in the store.
//
// Invariant: the window holds every job up to its horizon that can be leased, in order. Jobs beyond
// the horizon have to be read from the store: `is_cut()`. A job that arrives beyond the horizon
// stays in the store; a job that arrives before it is inserted and may evict the last one. So a
// backlog of any length costs the memory of one window, and the jobs of a short queue are never
// read back.
//
// Not thread-safe: protected by the engine's lock.

#include <cstdint>
#include <map>
#include <optional>

#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

inline position position_of(const job& j) noexcept {
  return {j.spec.priority, j.turn};
}

// Estimates a job's memory: its texts, and about as much again for the object and its map node.
inline std::uint64_t memory_of(const job& j) noexcept {
  return weight_of(j.spec) + sizeof(job) + 128;
}

class window {
 public:
  struct bounds {
    std::size_t jobs = 4096;
    std::uint64_t bytes = 0;  // current limit of this window; one job is always allowed
  };

  bool empty() const noexcept { return jobs_.empty(); }
  std::size_t size() const noexcept { return jobs_.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  bool is_cut() const noexcept { return cut_; }
  position horizon() const noexcept { return horizon_; }
  const job_ptr& front() const { return jobs_.begin()->second; }
  // Returns the number of ready jobs before `where`; nullopt: some of them are only in the store.
  std::optional<std::size_t> count_before(const position& where) const;

  // Inserts a job that is in the store and can be leased.
  void publish(job_ptr job, const bounds& b);
  job_ptr take_front();
  bool erase(const position& where);
  // Removes the jobs from `where` on; they will be read from the store again.
  void drop_from(const position& where);
  // Appends the store's jobs after the horizon (without leased ones). `was_all`: these are the last
  // ready jobs of the store.
  void extend(std::vector<job_ptr> next, std::optional<position> last_read, bool was_all);

 private:
  void cut_last();

  std::map<position, job_ptr> jobs_;
  std::uint64_t bytes_ = 0;
  bool cut_ = false;  // the store has, or may have, ready jobs after the horizon
  position horizon_;  // valid while cut_
};

}  // namespace sluice::jobs::detail
