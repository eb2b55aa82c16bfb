#pragma once

// One run of queues with inspect switched on and off every few milliseconds, and the rate of each.
//
// Two separate runs differ by a third only because of the placement of their threads. Within a run
// the placement stays, and short turns have the same conditions, so the difference is the cost of
// inspect.
//
// A run uses queues of type `seen_queue`, whose items another thread can count.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

// A count that another thread may read while this object lives.
class seen_count {
 public:
  explicit seen_count(std::function<std::uint64_t()> count);
  seen_count(const seen_count&) = delete;
  seen_count& operator=(const seen_count&) = delete;
  ~seen_count();

  // The sum of all live counts.
  static std::uint64_t total();

 private:
  std::function<std::uint64_t()> count_;
};

template <class Queue>
class seen_queue {
 public:
  explicit seen_queue(std::size_t capacity) : queue_(capacity) {}

  void push(std::uint64_t item) {
    if (!queue_.push(item)) fail("the queue was closed unexpectedly");
  }
  std::uint64_t pop() { return *queue_.pop(); }
  bool try_pop(std::uint64_t& item) {
    auto taken = queue_.try_pop();
    if (taken) item = *taken;
    return static_cast<bool>(taken);
  }

 private:
  Queue queue_;
  seen_count pushed_{[this] { return queue_.stats().pushed; }};  // destroyed before the queue
};

// Measures a run in turns. The first call of one of its two measures runs; the call of the other
// returns its result of the same run.
class in_turns {
 public:
  explicit in_turns(timed_run run) : state_(std::make_shared<state>(std::move(run))) {}

  measure with_inspect() const { return half(0); }
  measure without() const { return half(1); }

 private:
  struct state {
    explicit state(timed_run r) : run(std::move(r)) {}
    timed_run run;
    std::array<std::optional<double>, 2> known;  // items a second, not yet returned
  };
  measure half(std::size_t which) const;

  std::shared_ptr<state> state_;
};

}  // namespace sluice::bench
