#pragma once

// Runs a pipeline of four stages, one of them slow, and samples it meanwhile.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeline_memory {

struct settings {
  std::chrono::milliseconds duration{2'000};
  std::chrono::milliseconds every{20};  // a sample
  std::int64_t in_flight_least = 0;     // runs until this many were seen, for up to a minute
  std::size_t item_bytes = 16 * 1024;
  std::int64_t source_per_second = 10'000;   // the rate of an unblocked source
  std::chrono::milliseconds slow_stage{10};  // for one item: a hundredth of that rate
};

struct sample {
  double seconds = 0;
  std::int64_t in_flight = 0;  // items produced and not yet finished
  double resident_mb = 0;      // of the whole process
};

struct measured {
  std::string name;
  std::vector<sample> samples{};
  std::uint64_t made = 0;  // by the source
  std::uint64_t done = 0;  // finished by the last stage
  std::int64_t in_flight_most = 0;
  double grown_mb = 0;  // resident memory, from the first sample to the largest
};

// `capacity` is that of the queue in front of each stage.
measured run(std::string name, std::size_t capacity, const settings& s);

}  // namespace pipeline_memory
