#pragma once

// Runs an outermost task: a task that no coroutine awaits. `sync_wait`, `spawn`, `scope` and the
// combinators derive from it and override `ended`.

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

// Returns true for the exception of a task that ended because it was stopped.
bool is_cancelled(const std::exception_ptr& error) noexcept;

template <class T>
class task_root : private task_link {
 public:
  task_root(const task_root&) = delete;
  task_root& operator=(const task_root&) = delete;

  // Sets the executor `where` (null: the task runs on this thread and on the threads that end its
  // waits) and the token (null: none). Both must live until the task has ended.
  void set_context(work_sink* where, const std::stop_token* token) noexcept {
    sink = where;
    stop = token;
  }
  // Run or post the first step. After the call this object may be destroyed at any moment.
  void begin_here() noexcept { run(); }
  void begin_posted() noexcept { post_to(sink, *this); }

 protected:
  explicit task_root(task<T>&& t) noexcept : frame_(t.take()) {}
  ~task_root() {
    if (frame_) frame_.destroy();
  }

  using task_link::outermost;

  // Called on its executor when the task has ended. May destroy this object.
  virtual void ended() noexcept = 0;

  settled<T>& result() noexcept { return frame_.promise().result; }
  T take_result() { return std::move(result()).value(); }
  std::exception_ptr error() const noexcept { return frame_.promise().result.error(); }
  // Returns the result if `limit` is ok. Otherwise a limit has stopped the task: drops its value,
  // rethrows its exception unless that is future_error::cancelled, and returns `limit`.
  limited_result_t<T> take_limited(status limit) {
    if (!limit) {
      const auto thrown = error();
      if (thrown != nullptr && !is_cancelled(thrown)) std::rethrow_exception(thrown);
      return limit;
    }
    if constexpr (std::is_void_v<T>) {
      take_result();
      return limit;
    } else if constexpr (std::is_reference_v<T>) {
      return std::ref(take_result());
    } else {
      return take_result();
    }
  }
  // Takes the result and frees the frame, so its variables are destroyed before the end is visible.
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
