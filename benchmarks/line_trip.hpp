#pragma once

// How far apart the cores are right now. On a virtual machine that changes: its cores may be
// neighbours for some seconds and on different sides of the chip for others, and whatever hands
// work from one to the other is then several times slower.

namespace sluice::bench {

// A cache line that one core writes goes to another and back: nanoseconds, the median of a few
// trips of some milliseconds. 0: there is one core only.
double line_round_trip_ns();

}  // namespace sluice::bench
