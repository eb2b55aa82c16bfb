#pragma once

// Runs a line of four stages, of which one is slow, and looks at it as it runs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeline_memory {

struct settings {
  std::chrono::milliseconds duration{2'000};
  std::chrono::milliseconds every{20};  // a sample
  std::int64_t in_flight_least = 0;     // goes on until there were so many, if it takes a minute
  std::size_t item_bytes = 16 * 1024;
  std::int64_t source_per_second = 10'000;   // what the source would make if nothing held it up
  std::chrono::milliseconds slow_stage{10};  // for one item: a hundredth of that
};

struct sample {
  double seconds = 0;
  std::int64_t in_flight = 0;  // items made and not yet through
  double resident_mb = 0;      // of the whole process
};

struct measured {
  std::string name;
  std::vector<sample> samples{};
  std::uint64_t made = 0;  // by the source
  std::uint64_t done = 0;  // through the last stage
  std::int64_t in_flight_most = 0;
  double grown_mb = 0;  // resident memory, from the first sample to the largest
};

// `capacity` is that of the queue in front of each stage.
measured run(std::string name, std::size_t capacity, const settings& s);

}  // namespace pipeline_memory
