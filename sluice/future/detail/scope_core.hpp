#pragma once

// What a scope is made of: the count of its children, its first failure, the token they listen to,
// and the bound on how many there are. Children are `scope_child`; the words are in scope.hpp.

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
#include "sluice/sync/wait_calls.hpp"

namespace sluice::detail {

// How many children there are: lets through whoever waits for none.
class child_count : public wait_calls<child_count> {
 public:
  void add() noexcept { count_.fetch_add(1, relaxed); }  // by someone who keeps it from ending
  void remove() {
    // acq_rel: what every child did is seen by whoever is let through.
    open_gate([this] { return count_.fetch_sub(1, acq_rel) == 1; });
  }
  std::size_t get() const noexcept { return count_.load(relaxed); }

 private:
  friend class wait_calls<child_count>;
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

  // Room for one more child, which must then be submitted. stopped: by the limits, or because the
  // scope has been asked to stop.
  status take_place(const wait_limits& limits);
  status try_take_place();
  task<status> async_take_place(wait_limits limits);
  // The place of a child that could not be made.
  void give_place_back() noexcept;
  void submit(launched& child) { (void)launch(where_, child, token()); }

  void cancel() noexcept { stop_.request_stop(); }
  const std::stop_token& token() const noexcept { return stop_.token(); }
  void fail(std::exception_ptr why) noexcept;
  // The same for what was thrown by someone who listens to this token: a future_error::cancelled
  // after it has asked is no failure.
  void failed(const std::exception_ptr& error, const std::stop_token& heard) noexcept;
  // For whoever watches: whose end a join waits for.
  void child_begins(watch::party who) const noexcept {
    if (!watch::is_on()) [[likely]]
      return;
    watch::took({.object = &children_,
                 .type = "sluice::scope",
                 .how = watch::held_as::running,
                 .by = who,
                 .at = std::source_location()});
  }
  void child_ends(watch::party who) const noexcept { watch::gave(&children_, who); }
  // The last thing a child does.
  void child_ended() noexcept;

  status join_within(const wait_limits& limits);
  task<status> async_join(wait_limits limits);
  // Not even by the awaiting task's token.
  task<> async_join_unstopped();

  std::size_t children() const noexcept { return children_.get(); }
  std::size_t waiting_to_start() const noexcept { return room_.waiting(); }
  executor& runs_on() const noexcept { return where_.on; }

 private:
  status placed(status got) noexcept;
  void finish();  // the end of every join: throws the failure

  const start_on where_;
  linked_stop stop_;
  semaphore room_;
  child_count children_;
  spin_lock guard_;
  std::exception_ptr failure_;  // protected by guard_
  uncontrolled_atomic<bool> started_{false};  // has had a child
  atomic<bool> joined_{false};
};

// A child nobody has a future of: it listens to the scope's token itself.
class scope_child final : public task_root<void>, public launched {
 public:
  // For a place that was taken.
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
