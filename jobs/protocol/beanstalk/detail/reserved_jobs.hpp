#pragma once

// The reserved jobs of one client, by id.
//
// Every delete searches it, so it is a flat hash table with open addressing: no allocation per job,
// one cache line per look-up. It grows to twice the number of jobs and never shrinks until it is
// empty. Not thread-safe: each session has its own.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/protocol/beanstalk/detail/tubes.hpp"

namespace sluice::jobs::beanstalk {

struct reserved_job {
  lease_ref lease{};  // job zero: no lease
  unix_time until{};
  tube_ptr from{};
};

class reserved_jobs {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  reserved_job* find(job_id id) noexcept;  // until the next change
  bool insert(reserved_job job);           // false: in place of one of the same number
  void erase(reserved_job* entry) noexcept;
  // Removes and returns all jobs.
  std::vector<reserved_job> take_all();

  // Removes jobs whose leases ended at `now`; returns the earliest end of the rest.
  unix_time forget_ended(unix_time now);

 private:
  std::size_t place_of(job_id id) const noexcept { return id * 0x9E3779B97F4A7C15ULL >> shift_; }
  void grow();

  std::vector<reserved_job> slots_;  // a power of two of them
  unsigned shift_ = 64;
  std::size_t size_ = 0;
};

}  // namespace sluice::jobs::beanstalk
