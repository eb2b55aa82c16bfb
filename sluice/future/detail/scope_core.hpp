#pragma once

// The core of a scope: the count of its children, its first failure, its token, and the bound on
// the number of children. Children are `scope_child`; the public calls are in scope.hpp.

#include <cstddef>
#include <exception>
#include <memory>
#include <source_location>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/launch.hpp"
#include "sluice/future/detail/linked_stop.hpp"
#include "sluice/future/detail/task_root.hpp"
#include "sluice/future/start_on.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/detail/wait_calls.hpp"

namespace sluice::detail {

// The number of children. A wait ends when it is zero.
class child_count : public detail::wait_calls<child_count> {
 public:
  void add() noexcept { count_.fetch_add(1, relaxed); }  // by a caller that keeps the scope alive
  void remove() {
    // acq_rel: the effects of every child are visible after the wait.
    open_gate([this] { return count_.fetch_sub(1, acq_rel) == 1; });
  }
  std::size_t get() const noexcept { return count_.load(relaxed); }

 private:
  friend class detail::wait_calls<child_count>;
  static constexpr const char* type_name = "sluice::scope";
  bool is_open() const noexcept { return count_.load(acquire) == 0; }

  atomic<std::size_t> count_{0};
};

class scope_core {
 public:
  scope_core(start_on where, std::size_t max_children, const std::stop_token& asked, named as);
  scope_core(const scope_core&) = delete;
  scope_core& operator=(const scope_core&) = delete;
  ~scope_core();

  // Takes a place for one more child, which must then be submitted. Returns stopped if the limits'
  // token or the scope's is requested.
  status take_place(const wait_limits& limits);
  status try_take_place();
  task<status> async_take_place(wait_limits limits);
  // Returns the place of a child that could not be created.
  void give_place_back() noexcept;
  void submit(launched& child) { (void)launch(where_, child, token()); }

  void cancel() noexcept { stop_.request_stop(); }
  const std::stop_token& token() const noexcept { return stop_.token(); }
  void fail(std::exception_ptr why) noexcept;
  // The same for the error, if any, of a child with this token: a future_error::cancelled is no
  // failure if the token is requested.
  void failed(const std::exception_ptr& error, const std::stop_token& token) noexcept;
  // For wait reports: a join waits for the end of this child.
  void child_begins(wait_report::party child) const noexcept {
    if (!wait_report::is_on()) [[likely]]
      return;
    wait_report::took({.object = &children_,
                 .type = "sluice::scope",
                 .mode = wait_report::held_as::running,
                 .by = child,
                 .at = std::source_location()});
  }
  void child_ends(wait_report::party child) const noexcept { wait_report::gave(&children_, child); }
  // Called last by a child.
  void child_ended() noexcept;

  status join(const wait_limits& limits);
  task<status> async_join(wait_limits limits);
  // Ignores the awaiting task's token too.
  task<> async_join_unstopped();

  std::size_t children() const noexcept { return children_.get(); }
  std::size_t waiting_to_start() const noexcept { return places_.waiting(); }
  executor& runs_on() const noexcept { return where_.on; }

 private:
  status placed(status acquired) noexcept;
  void finish();  // ends every join: throws the failure

  const start_on where_;
  linked_stop stop_;
  semaphore places_;
  child_count children_;
  spin_lock guard_;
  std::exception_ptr failure_;  // protected by guard_
  uncontrolled_atomic<bool> started_{false};  // has had a child
  atomic<bool> joined_{false};
};

// A child without a future: its token is the scope's.
class scope_child final : public task_root<void>, public launched {
 public:
  // Creates a child for a place that was taken.
  static scope_child& make(scope_core& scope, task<>& t);

 private:
  scope_child(scope_core& scope, task<>& t) noexcept
      : task_root<void>(std::move(t)), scope_(scope) {}

  void begin() noexcept override;
  void drop() noexcept override { leave(was_stopped() ? nullptr : why_dropped()); }
  void ended() noexcept override { leave(error()); }
  void leave(const std::exception_ptr& failure) noexcept;

  scope_core& scope_;
};

}  // namespace sluice::detail
