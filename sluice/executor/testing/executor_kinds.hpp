#pragma once

// The description of an executor for tests of all executors, and the test fixture.
//
// A kind describes an executor to the suites of executor_suite.hpp:
//
//   static constexpr const char* name
//   static constexpr std::size_t workers    functions it runs at once; 0: it is stepped
//   static constexpr bool is_serial         never two at once
//   static constexpr bool keeps_order       submissions of one submitter run in their order
//   static constexpr bool is_bounded        it has a queue: capacity, policy, close, on_error
//   explicit Kind(executor_setup&&)         constructs it; ignores options that it lacks
//   auto& get()                             the executor
//   bool step()                             only if stepped: runs one; returns false if none
//   void finish()                           only if it can end: closes it and drains
//   refuses_caller_runs                     a member of that name: that policy is a broken contract
//
// For example, for a pool:
//
//   struct pool_kind {
//     static constexpr const char* name = "pool";
//     static constexpr std::size_t workers = 2;
//     static constexpr bool is_serial = false, keeps_order = false, is_bounded = true;
//     explicit pool_kind(executor_setup&& s) : pool({.threads = workers, .capacity = s.capacity,
//         .overflow = s.overflow, .on_drop = s.on_drop, .on_error = s.on_error}) {}
//     auto& get() { return pool; }
//     void finish() { pool.drain(); }
//     thread_pool pool;
//   };

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/overflow.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/executor.hpp"

namespace sluice::testing {

struct executor_setup {
  std::size_t capacity = 64;
  sluice::overflow overflow = sluice::overflow::block;
  std::string name = "under test";
  std::function<void(submission&&)> on_drop{};
  std::function<void(std::exception_ptr)> on_error{};
};

// Counts its instances, to detect a function that was lost without being destroyed.
class live_token {
 public:
  explicit live_token(std::atomic<int>& count) : count_(&count) { ++*count_; }
  live_token(live_token&& from) noexcept : count_(std::exchange(from.count_, nullptr)) {}
  live_token& operator=(live_token&&) = delete;
  ~live_token() {
    if (count_ != nullptr) --*count_;
  }

 private:
  std::atomic<int>* count_;
};

// Work that calls a function, and may be posted again after it has run.
class posted final : public work {
 public:
  explicit posted(std::function<void()> function) : function_(std::move(function)) {}
  void run() noexcept override { function_(); }

 private:
  std::function<void()> function_;
};

// The fixture of the tests.
template <class Kind>
class executor_words : public ::testing::Test {
 public:
  void open(executor_setup with = {}) {
    if (!with.on_error) with.on_error = [this](const std::exception_ptr&) { ++errors; };
    kind = std::make_unique<Kind>(std::move(with));
  }
  void open_full(std::size_t capacity, overflow when_full) {
    open({.capacity = capacity, .overflow = when_full, .on_drop = [this](submission&& f) {
            submission(std::move(f)).run.reset();
            ++drops;
          }});
    occupy();
    for (std::size_t i = 0; i < capacity; ++i) ASSERT_EQ(ex().try_submit(job()), status::ok);
    ASSERT_EQ(ex().queued(), capacity);
  }
  void TearDown() override {
    release();
    kind.reset();
    EXPECT_EQ(live.load(), 0) << "a function was neither run nor destroyed";
  }

  auto& ex() { return kind->get(); }

  // Returns a function that calls `body`, counts its calls in `ran` and its instances in `live`.
  template <class Body>
  auto job(Body body) {
    return [this, token = live_token(live), body = std::move(body)]() mutable {
      body();
      ++ran;
    };
  }
  auto job() {
    return job([] {});
  }

  // Waits for a condition. Steps the executor if it does not run by itself.
  template <class Condition>
  void until(Condition&& holds, const char* expected = "the awaited condition to become true") {
    eventually(
        [&] {
          if (holds()) return true;
          if constexpr (Kind::workers == 0) kind->step();
          return false;
        },
        expected);
  }
  void until_ran(int count) {
    until([&] { return ran >= count; }, "that number of functions to have run");
  }

  // Blocks every worker until `release`, so no submission begins. Not in a wait of the library, for
  // which a pool could start a spare thread.
  void occupy() {
    for (std::size_t i = 0; i < Kind::workers; ++i) {
      holders.emplace_back([this] {
        ASSERT_EQ(ex().submit([this] {
          ++held;
          released.wait(false);
          --held;
        }),
                  status::ok);
      });
      eventually([&] { return held == i + 1; }, "a worker to be blocked");
    }
  }
  void release() {
    released = true;
    released.notify_all();
    holders.clear();
    eventually([&] { return held == 0; }, "the workers to continue");
    released = false;
  }

  std::atomic<int> ran{0};
  std::atomic<int> live{0};
  std::atomic<int> errors{0};
  std::atomic<int> drops{0};
  std::atomic<std::size_t> held{0};
  std::atomic<bool> released{false};
  std::vector<std::jthread> holders;
  std::unique_ptr<Kind> kind;
};

}  // namespace sluice::testing
