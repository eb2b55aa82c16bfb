#pragma once

// Replaces the functions of the C library that start threads, wait, and read clocks. Outside of a
// schedule, the replacements call the originals.

#include <chrono>

namespace sluice::sim::detail {

// Returns the real time, also inside a schedule.
std::chrono::nanoseconds real_now() noexcept;

// During its life, a bad address or an abort inside a schedule is a failure of that schedule.
class catch_faults {
 public:
  catch_faults();
  catch_faults(const catch_faults&) = delete;
  catch_faults& operator=(const catch_faults&) = delete;
  ~catch_faults();
};

}  // namespace sluice::sim::detail
