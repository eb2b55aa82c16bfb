#pragma once

// Options of a bounded queue or channel: its capacity, by count and by weight, and its overflow
// policy.
//
//     sluice::bounded_queue<frame> frames({.capacity = 8, .overflow = overflow::drop_oldest});

#include <cstddef>
#include <functional>
#include <string>

#include "sluice/base/overflow.hpp"

namespace sluice {

namespace detail {

// Returns the first requirement that the options of a queue do not meet, or null.
inline const char* queue_problem(std::size_t capacity, overflow policy, std::size_t weight_max,
                                 bool weighs) noexcept {
  if (policy == overflow::caller_runs) {
    return "a policy other than caller_runs, which is for executors";
  }
  if (capacity == 0) return "a capacity of at least 1";
  if ((weight_max != 0) != weighs) return "weight_max and weigh to be given together";
  return nullptr;
}

}  // namespace detail

template <class T>
struct queue_options {
  std::size_t capacity = 0;  // in items; at least 1 (a channel may have 0)
  sluice::overflow overflow = sluice::overflow::block;
  std::string name{};  // in contract messages and wait reports

  // A second bound, in the unit of `weigh`, such as bytes; 0 means no bound. An item heavier
  // than weight_max is rejected with `full` at once, under every policy. With a weight, producers
  // are served strictly in order of arrival, so that light items cannot starve a heavy one.
  std::size_t weight_max = 0;
  std::function<std::size_t(const T&)> weigh{};

  // Called with every dropped item, on the thread whose push dropped it, without the lock. An
  // exception that leaves it is written to standard error (docs/concepts/errors.md).
  std::function<void(T&&)> on_drop{};

  // Returns the first requirement that these options do not meet, such as "a capacity of at least
  // 1", or null. The constructor terminates the program on such options: check options that come
  // from a configuration first.
  const char* problem() const noexcept {
    return detail::queue_problem(capacity, overflow, weight_max, static_cast<bool>(weigh));
  }
};

}  // namespace sluice
