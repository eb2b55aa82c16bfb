#pragma once

// Values that count themselves, and a fixture that fails a test which leaves any behind: in a
// state or a coroutine's frame that was not freed, or captured by a function that was not
// destroyed.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <utility>

namespace sluice::testing {

// A value whose instances are counted, including moved-from ones.
class tracked {
 public:
  tracked() : tracked(0) {}
  explicit tracked(int n) : value(n) { ++alive_; }
  tracked(const tracked& other) : value(other.value) { ++alive_; }
  tracked(tracked&& other) noexcept : value(std::exchange(other.value, moved_from)) { ++alive_; }
  tracked& operator=(const tracked&) = default;
  tracked& operator=(tracked&& other) noexcept {
    value = std::exchange(other.value, moved_from);
    return *this;
  }
  ~tracked() { --alive_; }

  static constexpr int moved_from = -1;
  static int alive() { return alive_.load(); }

  int value;

 private:
  inline static std::atomic<int> alive_{0};
};

// Its moves throw while `armed` is set.
class throwing_move {
 public:
  explicit throwing_move(int n) : value(n) {}
  throwing_move(throwing_move&& other) : value(other.value) {
    if (armed) throw std::runtime_error("move");
  }
  throwing_move& operator=(throwing_move&&) = delete;
  int value;
  tracked counted;
  inline static bool armed = false;
};

class leak_checked : public ::testing::Test {
 protected:
  ~leak_checked() override {
    EXPECT_EQ(tracked::alive(), 0) << "values or functions that were not destroyed";
  }
};

}  // namespace sluice::testing
