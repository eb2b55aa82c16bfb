#pragma once

// Coroutines for tests of awaitables, without an executor.
//
// `detached` starts at once and frees itself when it ends. With a `manual_sink&` as its first
// parameter (a lambda's closure may stand before it) it is resumed there, when the test says so.

#include <coroutine>
#include <cstddef>
#include <exception>
#include <mutex>

#include "sluice/base/work.hpp"

namespace sluice::testing {

// Runs resumptions when told to, on the thread that tells.
class manual_sink final : public work_sink {
 public:
  void post(work& item) noexcept override {
    const std::lock_guard hold(mutex_);
    ready_.push_back(item);
  }
  std::size_t pending() {
    const std::lock_guard hold(mutex_);
    return ready_.size();
  }
  bool run_one() {
    std::unique_lock hold(mutex_);
    if (ready_.empty()) return false;
    work& next = ready_.pop_front();
    hold.unlock();
    next.run();
    return true;
  }
  std::size_t run_all() {
    std::size_t ran = 0;
    while (run_one()) ++ran;
    return ran;
  }

 private:
  std::mutex mutex_;
  intrusive_list<work> ready_;  // protected by mutex_
};

struct detached {
  struct promise_type {
    promise_type() = default;
    template <class... Rest>
    explicit promise_type(manual_sink& sink, Rest&&...) noexcept : sink_(&sink) {}
    template <class Closure, class... Rest>
    explicit promise_type(Closure&&, manual_sink& sink, Rest&&...) noexcept : sink_(&sink) {}
    template <class... Rest>
    explicit promise_type(Rest&&...) noexcept {}

    detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
    work_sink* resume_sink() const noexcept { return sink_; }

   private:
    work_sink* sink_ = nullptr;
  };
};

}  // namespace sluice::testing
