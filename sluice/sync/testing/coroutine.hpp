#pragma once

// Coroutines for tests of awaitables, without an executor.
//
// `detached` starts at once and frees itself when it ends. With a `work_sink&` (an executor, or a
// `manual_sink`, which the test runs) as its first parameter, it is resumed there; a lambda's
// closure may precede it.

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>

#include "sluice/base/outcome.hpp"
#include "sluice/base/work.hpp"

namespace sluice::testing {

// Queues resumptions; `run_all` runs them on the calling thread.
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

// The status and thread of the end of a coroutine's wait.
class ending {
 public:
  void set(status result) {
    thread_ = std::this_thread::get_id();
    code_.store(static_cast<int>(static_cast<status::code>(result)), std::memory_order_release);
  }
  bool is_set() const { return code_.load(std::memory_order_acquire) >= 0; }
  status result() const { return static_cast<status::code>(code_.load(std::memory_order_acquire)); }
  std::thread::id thread() const { return thread_; }

 private:
  std::atomic<int> code_{-1};
  std::thread::id thread_;
};

// Takes a pointer, because a closure is an incomplete type while its own body is compiled.
template <class T>
concept a_sink = std::convertible_to<std::remove_reference_t<T>*, work_sink*>;

struct detached {
  struct promise_type {
    promise_type() = default;
    template <class... Rest>
    explicit promise_type(a_sink auto& sink, Rest&&...) noexcept : sink_(&sink) {}
    template <class Closure, class... Rest>
      requires(!a_sink<Closure>)
    explicit promise_type(Closure&&, a_sink auto& sink, Rest&&...) noexcept : sink_(&sink) {}
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
