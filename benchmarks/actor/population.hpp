#pragma once

// A million idle actors: the rate of their creation, the memory of each, and their CPU time while
// they wait.
//
// A process reuses memory that it allocated before, so each measurement starts this program again
// and creates the population in the new process.
//
//     const population_registration added{"caf", [] -> std::unique_ptr<population> { ... }};

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sluice::bench {

class population {
 public:
  virtual ~population() = default;

  // Called once. The actors stay until the process ends.
  virtual void create(std::uint64_t size) = 0;

  // Sends every actor a message, and returns how many have handled it.
  virtual std::uint64_t count() = 0;

 protected:
  population() = default;
  population(const population&) = default;
  population& operator=(const population&) = default;
};

// Adds `who` to the workloads `create`, `bytes` and `idle_cpu_ms`. Define one at namespace scope.
class population_registration {
 public:
  using maker = std::unique_ptr<population> (*)();
  population_registration(std::string who, maker make);
};

// If this process was started for a measurement, runs it, prints the result, and does not return.
void run_if_child(int argc, char** argv);

}  // namespace sluice::bench
