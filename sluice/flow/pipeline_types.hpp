#pragma once

// The options, counters and errors of a pipeline. See pipeline.hpp.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

#include "sluice/base/clock.hpp"

namespace sluice {

// Reports an exception that left a stage's function; it is nested: std::rethrow_if_nested, or
// `rethrow_nested()`.
class pipeline_error : public std::runtime_error, public std::nested_exception {
 public:
  // Must be constructed inside the handler of the exception.
  explicit pipeline_error(std::string_view stage);
  const std::string& stage() const noexcept { return stage_; }

 private:
  std::string stage_;
};

// The effect of an exception that leaves the stage's function.
enum class stage_errors : std::uint8_t {
  stop,  // stops the pipeline; `join` throws the pipeline_error
  skip,  // the item is dropped, counted, and reported to on_error
};

struct stage_options {
  std::size_t parallelism = 1;  // concurrent calls of the function; at least 1
  std::size_t capacity = 16;    // items that wait in front of the stage; at least 1
  bool ordered = false;         // results leave in the order of arrival of their items
  std::size_t window = 0;       // ordered: how far results may run ahead; 0: 4 * parallelism
  stage_errors errors = stage_errors::stop;
  // skip: called for each; by several threads at once if parallelism > 1. An exception that leaves
  // it is written to standard error, with the error.
  std::function<void(const pipeline_error&)> on_error{};
};

struct pipeline_options {
  std::stop_token stop{};          // stops the pipeline, as `stop()` does
  sluice::clock* clock = nullptr;  // of the counters' times; null: the real clock
};

struct stage_stats {
  std::string name;
  std::uint64_t in = 0;           // items taken from its queue
  std::uint64_t out = 0;          // results passed on
  std::uint64_t skipped = 0;      // items whose function threw, with stage_errors::skip
  std::uint64_t undelivered = 0;  // items taken whose results were lost at the end
  std::size_t active = 0;         // running calls
  std::size_t queued = 0;         // items that wait in front of it
  std::size_t capacity = 0;
  // Summed over its parallel calls.
  std::chrono::nanoseconds busy{};     // in the function; for a task, until it has ended
  std::chrono::nanoseconds blocked{};  // with a result that waits for capacity of the next stage
  std::chrono::nanoseconds idle{};     // without an item
};

}  // namespace sluice
