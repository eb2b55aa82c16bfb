#pragma once

// The queues of the typed tests, with a common way to open each, to make an item and to inspect it.
//
// Items cannot be copied, contain a number, and show whether they have been moved from. A kind
// opens its queue so that it is first in, first out: equal priorities, times in the past.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"

namespace sluice::testing {

using box = std::unique_ptr<int>;

struct bounded_kind {
  using queue = bounded_queue<box>;
  using item = box;
  static constexpr bool is_shared = true;    // any number of producers and consumers
  static constexpr bool knows_depth = true;  // an exact high-water mark
  static constexpr const char* name = "bounded_queue";

  static std::unique_ptr<queue> open(std::size_t capacity, overflow full = overflow::block,
                                     std::string called = {}) {
    return std::make_unique<queue>(
        queue::options{.capacity = capacity, .overflow = full, .name = std::move(called)});
  }
  static item make(int value) { return std::make_unique<int>(value); }
  static bool is_whole(const item& i) { return i != nullptr; }
  static int value_of(const item& i) { return *i; }
};

struct spsc_kind {
  using queue = spsc_ring<box>;
  using item = box;
  static constexpr bool is_shared = false;
  static constexpr bool knows_depth = false;
  static constexpr const char* name = "spsc_ring";

  static std::unique_ptr<queue> open(std::size_t capacity, overflow full = overflow::block,
                                     std::string called = {}) {
    return std::make_unique<queue>(
        queue::options{.capacity = capacity, .overflow = full, .name = std::move(called)});
  }
  static item make(int value) { return std::make_unique<int>(value); }
  static bool is_whole(const item& i) { return i != nullptr; }
  static int value_of(const item& i) { return *i; }
};

struct ranked {
  box value;
  int priority = 0;
};

struct priority_kind {
  using queue = priority_queue<ranked>;
  using item = ranked;
  static constexpr bool is_shared = true;
  static constexpr bool knows_depth = true;
  static constexpr const char* name = "priority_queue";

  static std::unique_ptr<queue> open(std::size_t capacity, overflow full = overflow::block,
                                     std::string called = {}) {
    return std::make_unique<queue>(
        queue::options{.capacity = capacity, .overflow = full, .name = std::move(called)});
  }
  static item make(int value) { return {std::make_unique<int>(value), 5}; }
  static bool is_whole(const item& i) { return i.value != nullptr; }
  static int value_of(const item& i) { return *i.value; }
};

struct delay_kind {
  using queue = delay_queue<box>;
  using item = delayed<box>;
  static constexpr bool is_shared = true;
  static constexpr bool knows_depth = true;
  static constexpr const char* name = "delay_queue";

  static std::unique_ptr<queue> open(std::size_t capacity, overflow full = overflow::block,
                                     std::string called = {}) {
    return std::make_unique<queue>(
        queue::options{.capacity = capacity, .overflow = full, .name = std::move(called)});
  }
  static item make(int value) { return {std::make_unique<int>(value), time_point{}}; }
  static bool is_whole(const item& i) { return i.item != nullptr; }
  static int value_of(const item& i) { return *i.item; }
};

using queue_kinds = ::testing::Types<bounded_kind, spsc_kind, priority_kind, delay_kind>;

struct kind_name {
  template <class Kind>
  static std::string GetName(int) { return Kind::name; }
};

}  // namespace sluice::testing
