#pragma once

// One run of queues with inspect on and off in turns of a few milliseconds, and what it came to in
// either.
//
// Two runs, one with inspect and one without, differ by a third for no other reason than where the
// scheduler puts their threads. Within a run the threads stay, and turns that are so short meet the
// same machine: what is left is the difference that is looked for.
//
// A run uses queues that are made of `seen_queue`, whose items can be counted from outside.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

// A count that another thread may ask for, as long as this lives.
class seen_count {
 public:
  explicit seen_count(std::function<std::uint64_t()> count);
  seen_count(const seen_count&) = delete;
  seen_count& operator=(const seen_count&) = delete;
  ~seen_count();

  // Of all that live now.
  static std::uint64_t total();

 private:
  std::function<std::uint64_t()> count_;
};

template <class Queue>
class seen_queue {
 public:
  explicit seen_queue(std::size_t capacity) : queue_(capacity) {}

  void push(std::uint64_t item) {
    if (!queue_.push(item)) fail("the queue was closed, by nobody");
  }
  std::uint64_t pop() { return *queue_.pop(); }
  bool try_pop(std::uint64_t& item) {
    auto taken = queue_.try_pop();
    if (taken) item = *taken;
    return static_cast<bool>(taken);
  }

 private:
  Queue queue_;
  seen_count pushed_{[this] { return queue_.stats().pushed; }};  // gone before the queue is
};

// Measures a run in turns. Its two measures belong together: the first of them that is asked for
// runs, the second tells what that came to.
class in_turns {
 public:
  explicit in_turns(timed_run run) : state_(std::make_shared<state>(std::move(run))) {}

  measure with_inspect() const { return half(0); }
  measure without() const { return half(1); }

 private:
  struct state {
    explicit state(timed_run r) : run(std::move(r)) {}
    timed_run run;
    std::array<std::optional<double>, 2> known;  // items a second, not told yet
  };
  measure half(std::size_t which) const;

  std::shared_ptr<state> state_;
};

}  // namespace sluice::bench
