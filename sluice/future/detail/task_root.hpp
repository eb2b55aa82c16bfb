#pragma once

// Runs an outermost task: one that no coroutine awaits. `sync_wait`, `spawn`, `scope` and the
// combinators each derive from it, and hear of the end.

#include <coroutine>
#include <exception>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/future_parts.hpp"
#include "sluice/future/detail/task_promise.hpp"
#include "sluice/future/task.hpp"

namespace sluice::detail {

// True for the exception of a task that stopped because it was asked to.
bool is_cancelled(const std::exception_ptr& error) noexcept;

template <class T>
class task_root : private task_link {
 public:
  task_root(const task_root&) = delete;
  task_root& operator=(const task_root&) = delete;

  // The task runs on `where` (null: here, and where its waits end). It and the token (null: none)
  // must live until the end.
  void set_context(work_sink* where, const std::stop_token* token) noexcept {
    sink = where;
    stop = token;
  }
  // Its first step: here and now, or posted. From then on this may be gone at any moment.
  void begin_here() noexcept { run(); }
  void begin_posted() noexcept { post_to(sink, *this); }

 protected:
  explicit task_root(task<T>&& t) noexcept : frame_(t.take()) {}
  ~task_root() {
    if (frame_) frame_.destroy();
  }

  using task_link::outermost;

  // On its executor, when the task has ended. May destroy this.
  virtual void ended() noexcept = 0;

  settled<T>& result() noexcept { return frame_.promise().result; }
  T take_result() { return std::move(result()).value(); }
  std::exception_ptr error() const noexcept { return frame_.promise().result.error(); }
  // The same when limits may have ended it (not ok): then its value is dropped, and what it threw
  // is thrown only when it threw of its own accord.
  limited_result_t<T> take_within(status how) {
    if (!how) {
      const auto thrown = error();
      if (thrown != nullptr && !is_cancelled(thrown)) std::rethrow_exception(thrown);
      return how;
    }
    if constexpr (std::is_void_v<T>) {
      take_result();
      return how;
    } else if constexpr (std::is_reference_v<T>) {
      return std::ref(take_result());
    } else {
      return take_result();
    }
  }
  // The result, when the frame is freed: what it held is gone before others hear of the end.
  settled<T> take_and_free() noexcept {
    settled<T> taken{typename settled<T>::unset_t{}};
    move_result(result(), taken);
    std::exchange(frame_, nullptr).destroy();
    return taken;
  }

 private:
  void run() noexcept final {
    if (std::exchange(begun_, true)) return ended();
    frame_.promise().begin(*this);
    frame_.resume();
  }

  std::coroutine_handle<task_promise<T>> frame_;
  bool begun_ = false;
};

}  // namespace sluice::detail
