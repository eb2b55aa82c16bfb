#pragma once

// The common parts of the contenders of ./bench engine.

#include <cstddef>
#include <string>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

inline constexpr std::size_t args_bytes = 100;
inline constexpr int bare_batch = 1024;  // rows in one transaction of a bare loop

// JSON, like the engine's args.
inline std::string job_args() {
  return R"({"x":")" + std::string(args_bytes - 8, 'x') + R"("})";
}

// Disk commits come in bursts, so a run is longer than the harness's default.
inline seconds run_time(const settings& s) {
  return s.quick ? seconds(0.1) : seconds(2);
}

inline measure per_second(tally (*run)(seconds)) {
  return [run](const settings& s) {
    const tally done = run(run_time(s));
    return static_cast<double>(done.operations) / done.took.count();
  };
}

}  // namespace sluice::bench
