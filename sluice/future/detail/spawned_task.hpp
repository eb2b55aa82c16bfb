#pragma once

// A spawned task with a future of its result, alone or as a child of a scope.

#include <exception>
#include <optional>
#include <stop_token>
#include <utility>

#include "sluice/future/detail/launch.hpp"
#include "sluice/future/detail/linked_stop.hpp"
#include "sluice/future/detail/scope_core.hpp"
#include "sluice/future/detail/task_root.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/sync/detail/task_step.hpp"

namespace sluice::detail {

template <class T>
void set_result(promise<T>& target, settled<T>& result) noexcept {
  if (result.is_error()) return target.pass_error(result);
  try {
    if constexpr (std::is_void_v<T>) {
      target.set_value();
    } else {
      target.set_value(std::move(result).value());
    }
  } catch (...) {
    target.set_exception(std::current_exception());
  }
}

template <class T>
class spawned_task final : public task_root<T>, public launched {
 public:
  // Deletes itself once launched.
  spawned_task(executor& on, task<T>&& t, executor_user as)
      : spawned_task(on, std::move(t), nullptr, as) {
    on.begin_use(as);
  }
  // For a place that was taken in the scope.
  spawned_task(scope_core& scope, task<T>&& t)
      : spawned_task(scope.runs_on(), std::move(t), &scope, executor_user::scope_child) {}

  future<T> get_future() { return promise_.get_future().via(on_); }

 private:
  spawned_task(executor& on, task<T>&& t, scope_core* scope, executor_user as)
      : task_root<T>(std::move(t)),
        on_(on),
        scope_(scope),
        as_(as),
        token_(promise_.stop_token()) {
    if (scope != nullptr) token_ = both_.emplace(token_, scope->token()).token();
    if (wait_report::is_on()) [[unlikely]]
      promise_.made_by(wait_report::party::executor(&on_));
  }

  void begin() noexcept override {
    if (token_.stop_requested()) {
      return leave(settled<T>(std::make_exception_ptr(
          future_error(future_error::cancelled, "before it began"))));
    }
    this->set_context(&on_, &token_);
    if (wait_report::is_on()) [[unlikely]] return begin_watched();
    this->begin_here();
  }
  void begin_watched() noexcept {
    const auto me = wait_report::party::coroutine(this->outermost());
    promise_.made_by(me);
    if (scope_ != nullptr) scope_->child_begins(me);
    const wait_report::task_step here(me);  // waits are reported as waits of this task
    this->begin_here();
  }
  void drop() noexcept override { leave(settled<T>(why_dropped())); }
  void ended() noexcept override { leave(this->take_and_free()); }

  void leave(settled<T> result) noexcept {
    promise<T> target = std::move(promise_);
    scope_core* const scope = scope_;
    if (scope == nullptr) {
      result.report_unread(&on_);
      on_.end_use(as_);  // before its end is visible: after that, the executor may end
    } else {
      if (!was_stopped()) scope->failed(result.error(), token_);
      scope->child_ends(wait_report::party::coroutine(this->outermost()));
    }
    const wait_report::task_step ended({});  // its end may resume other tasks on this thread
    delete this;
    set_result(target, result);
    if (scope != nullptr) scope->child_ended();
  }

  executor& on_;
  scope_core* const scope_;
  const executor_user as_;  // the scope counts its own children
  promise<T> promise_;
  std::optional<linked_stop> both_;
  std::stop_token token_;
};

}  // namespace sluice::detail
