#pragma once

// A task that runs by itself, with a future of its result; alone, or as a child of a scope.

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
#include "sluice/sync/task_step.hpp"

namespace sluice::detail {

template <class T>
void set_result(promise<T>& to, settled<T>& result) noexcept {
  if (result.is_error()) return to.pass_error(result);
  try {
    if constexpr (std::is_void_v<T>) {
      to.set_value();
    } else {
      to.set_value(std::move(result).value());
    }
  } catch (...) {
    to.set_exception(std::current_exception());
  }
}

template <class T>
class spawned_task final : public task_root<T>, public launched {
 public:
  // Deleted by itself, once launched.
  spawned_task(executor& on, task<T>&& t, executor_user as)
      : spawned_task(on, std::move(t), nullptr, as) {
    on.begin_use(as);
  }
  // For a place in the scope that was taken.
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
    if (watch::is_on()) [[unlikely]]
      promise_.made_by(watch::party::executor(&on_));
  }

  void begin() noexcept override {
    if (token_.stop_requested()) {
      return leave(settled<T>(std::make_exception_ptr(
          future_error(future_error::cancelled, "before it began"))));
    }
    this->set_context(&on_, &token_);
    if (watch::is_on()) [[unlikely]] return begin_watched();
    this->begin_here();
  }
  void begin_watched() noexcept {
    const auto me = watch::party::coroutine(this->outermost());
    promise_.made_by(me);
    if (scope_ != nullptr) scope_->child_begins(me);
    const watch::task_step here(me);  // if it blocks, it is it that waits
    this->begin_here();
  }
  void drop() noexcept override { leave(settled<T>(why_dropped())); }
  void ended() noexcept override { leave(this->take_and_free()); }

  void leave(settled<T> result) noexcept {
    promise<T> to = std::move(promise_);
    scope_core* const scope = scope_;
    if (scope == nullptr) {
      result.report_unread(&on_);
      on_.end_use(as_);  // before its end is visible: then the executor may end
    } else {
      if (!was_stopped()) scope->failed(result.error(), token_);
      scope->child_ends(watch::party::coroutine(this->outermost()));
    }
    const watch::task_step over({});  // others may go on here when they hear of it
    delete this;
    set_result(to, result);
    if (scope != nullptr) scope->child_ended();
  }

  executor& on_;
  scope_core* const scope_;
  const executor_user as_;  // of a scope: counted there
  promise<T> promise_;
  std::optional<linked_stop> both_;
  std::stop_token token_;
};

}  // namespace sluice::detail
