#pragma once

// The jobs that one client has reserved, by their number.
//
// Every delete looks here, so it is one flat table with open addressing: no allocation for a job,
// one cache line for a look-up. It grows to twice what it holds and never shrinks while it holds
// something. Not thread-safe: a session has its own.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/protocol/beanstalk/detail/tubes.hpp"

namespace sluice::jobs::beanstalk {

struct reserved_job {
  lease_ref lease{};  // of job zero: none
  unix_time until{};
  tube_ptr from{};
};

class reserved_jobs {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  reserved_job* find(job_id id) noexcept;  // until the next change
  bool insert(reserved_job it);            // false: in place of one of the same number
  void erase(reserved_job* it) noexcept;
  // All of them, and none is left.
  std::vector<reserved_job> take_all();

  // Forgets those whose time was over at `now`; the earliest end among the rest.
  unix_time forget_ended(unix_time now);

 private:
  std::size_t place_of(job_id id) const noexcept { return id * 0x9E3779B97F4A7C15ULL >> shift_; }
  void grow();

  std::vector<reserved_job> slots_;  // a power of two of them
  unsigned shift_ = 64;
  std::size_t size_ = 0;
};

}  // namespace sluice::jobs::beanstalk
