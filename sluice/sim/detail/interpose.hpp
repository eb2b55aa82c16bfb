#pragma once

// In a simulated program the functions of the C library through which threads are started, wait
// and learn the time are the simulator's. Outside of a schedule they do what they always do.

#include <chrono>

namespace sluice::sim::detail {

// The real time, also within a schedule.
std::chrono::nanoseconds real_now() noexcept;

// While it lives, a bad address or an abort within a schedule is a failure of that schedule.
class catch_faults {
 public:
  catch_faults();
  catch_faults(const catch_faults&) = delete;
  catch_faults& operator=(const catch_faults&) = delete;
  ~catch_faults();
};

}  // namespace sluice::sim::detail
