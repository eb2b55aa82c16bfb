#pragma once

// The current distance between cores. On a virtual machine it changes: its cores may be neighbours
// for some seconds and on different sides of the chip for others, and communication between them is
// then several times slower.

namespace sluice::bench {

// Returns the round trip of a cache line to another core in nanoseconds: the median of a few
// measurements of some milliseconds. 0 if there is only one core.
double line_round_trip_ns();

}  // namespace sluice::bench
