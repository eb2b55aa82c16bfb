#pragma once

// A million actors that live and have nothing to do: how fast they are created, how much memory
// each takes, and what they cost while they wait.
//
// Memory that a process had before hides what something new takes, so each measurement starts this
// program anew and creates the population there.
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

  // Called once. What is created stays until the process ends.
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

// When this program was started anew for a measurement, takes it, prints it, and does not return.
void run_if_child(int argc, char** argv);

}  // namespace sluice::bench
