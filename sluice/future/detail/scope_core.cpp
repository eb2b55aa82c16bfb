#include "sluice/future/detail/scope_core.hpp"

#include <mutex>
#include <optional>
#include <string>

#include "sluice/future/this_task.hpp"
#include "sluice/sync/detail/task_step.hpp"

namespace sluice::detail {

scope_core::scope_core(start_on where, std::size_t max_children, const std::stop_token& stop,
                       named as)
    : where_(where), stop_(stop), places_(static_cast<semaphore::count_type>(max_children), as) {
  check_named(max_children > 0, "sluice::scope", std::string(as.name()).c_str(),
              "max_children > 0");
  if (!as.name().empty()) wait_report::set_name(&children_, as.name());
}

// Without a join the failure would be lost. The scope must also be joined when an exception
// destroys it: sync_scope and with_scope do that.
scope_core::~scope_core() {
  if (!started_.load(relaxed) || joined_.load(relaxed)) [[likely]] return;
  check_named(false, "sluice::scope", wait_report::name_of(&children_).c_str(),
              children() > 0 ? "no children inside at its destruction: join it first"
                             : "to be joined before its destruction, since it has started children "
                               "(sync_scope and with_scope join, also after an exception)");
}

// Called with the result of acquiring a place.
status scope_core::placed(status acquired) noexcept {
  if (acquired && stop_.stop_requested()) {
    places_.release();
    acquired = status::stopped;
  }
  if (acquired) {
    check(!joined_.load(relaxed), "sluice::scope", "no child to be started after join has ended");
    wait_report::gave(&places_);  // the child holds the place now; any thread may release it
    children_.add();
    runs_on().begin_use(executor_user::scope_child);
    if (!started_.load(relaxed)) started_.store(true, relaxed);  // the destructor runs after this
  }
  return acquired;
}

status scope_core::try_take_place() {
  if (stop_.stop_requested()) return status::stopped;
  return placed(places_.try_acquire() ? status::ok : status::full);
}

status scope_core::take_place(const wait_limits& limits) {
  if (!limits.stop.stop_possible()) {
    return placed(places_.acquire(1, {limits.deadline, token()}));
  }
  const linked_stop either(limits.stop, token());
  return placed(places_.acquire(1, {limits.deadline, either.token()}));
}

task<status> scope_core::async_take_place(wait_limits limits) {
  if (!limits.stop.stop_possible()) limits.stop = co_await this_task::stop_token();
  const linked_stop either(limits.stop, token());
  auto place = places_.async_acquire(1, {limits.deadline, either.token()});
  co_return placed(co_await place);
}

void scope_core::give_place_back() noexcept {
  child_ended();
}

void scope_core::fail(std::exception_ptr why) noexcept {
  {
    const std::lock_guard hold(guard_);
    if (failure_ != nullptr) return;
    failure_ = std::move(why);
  }
  cancel();
}

void scope_core::failed(const std::exception_ptr& error, const std::stop_token& token) noexcept {
  if (error == nullptr || (token.stop_requested() && is_cancelled(error))) return;
  fail(error);
}

void scope_core::child_ended() noexcept {
  runs_on().end_use(executor_user::scope_child);  // before its end is visible
  places_.release();
  children_.remove();  // after this the scope may be destroyed
}

void scope_core::finish() {
  joined_.store(true, relaxed);
  std::exception_ptr failure;
  {
    const std::lock_guard hold(guard_);
    failure = failure_;
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

status scope_core::join(const wait_limits& limits) {
  const status ended = children_.wait(limits);
  if (!ended) {
    cancel();
    children_.wait();
  }
  finish();
  return ended;
}

task<status> scope_core::async_join(wait_limits limits) {
  const status ended = co_await children_.async_wait(std::move(limits));
  if (!ended) cancel();
  auto all = children_.async_wait();
  all.keep_own_limits();
  (void)co_await all;
  finish();
  co_return ended;
}

task<> scope_core::async_join_unstopped() {
  auto all = children_.async_wait();
  all.keep_own_limits();
  (void)co_await all;
  finish();
}

scope_child& scope_child::make(scope_core& scope, task<>& t) {
  try {
    return *new scope_child(scope, t);
  } catch (...) {
    scope.give_place_back();
    throw;
  }
}

void scope_child::begin() noexcept {
  if (scope_.token().stop_requested()) return leave(nullptr);  // freed unrun
  set_context(&scope_.runs_on(), &scope_.token());
  if (!wait_report::is_on()) [[likely]]
    return begin_here();
  const auto me = wait_report::party::coroutine(outermost());
  scope_.child_begins(me);
  const wait_report::task_step here(me);  // waits are reported as waits of this task
  begin_here();
}

void scope_child::leave(const std::exception_ptr& failure) noexcept {
  scope_core& scope = scope_;
  scope.failed(failure, scope.token());
  scope.child_ends(wait_report::party::coroutine(outermost()));
  const wait_report::task_step ended({});  // its end may resume other tasks on this thread
  delete this;
  scope.child_ended();
}

}  // namespace sluice::detail
