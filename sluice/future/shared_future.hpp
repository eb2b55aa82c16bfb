#pragma once

// A future for several consumers: the result stays in it, and all read the same one.
//
// Use it when several parties wait for one result (a connection, a configuration, a first load).
// Prefer a plain `future` for one consumer: it moves the value out and costs less.
//
// Guarantees: copyable; all copies are the same future, and any thread may use any copy. `get`
// does not consume it and returns a const reference that is valid while a copy exists. Functions
// attached with `then`, and waiting threads and coroutines, are served in FIFO order, each with the
// same value.
// `cancel` requests the producer's stop_token, for all consumers. Cancelling a future returned by
// `then` or `fork` does not: the others still use the result.
// Cancel safety: a wait that ended early changed nothing.
// Cost: one allocation more than a future, and one for each `then` or `fork`.
//
//     shared_future<config> ready(load_config());
//     auto size = ready.then([](const config& c) { return c.size(); });
//     use(ready.get());

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/shared_state.hpp"
#include "sluice/future/future.hpp"

namespace sluice {

template <class T>
class [[nodiscard]] shared_future {
  using state = detail::shared_state<T>;
  using view = detail::shared_view_t<T>;  // const T&; void and references as they are

 public:
  using value_type = T;
  using limited = detail::limited_result_t<view>;

  shared_future() noexcept = default;  // invalid
  shared_future(future<T>&& source, call_site at = {})
      : state_(state::make(std::move(source), at)) {}

  bool valid() const noexcept { return state_ != nullptr; }
  bool is_ready(call_site at = {}) const noexcept { return here(at).is_ready(); }

  // Blocks until the result is set; returns the value or throws the error.
  view get(call_site at = {}) const {
    here(at).wait(at);
    return (*state_).read();
  }
  // Returns timed_out or stopped if a limit ends the wait.
  limited get(const wait_limits& limits) const {
    return block_on(typename state::op(here(limits.at)), limits);
  }
  // Returns empty if the result is not set.
  limited try_get(call_site at = {}) const {
    if (!is_ready(at)) return status::empty;
    return (*state_).answer(status::ok);
  }
  // co_await returns what get(limits) does. A copy must live during the wait.
  auto async_get(wait_limits limits = {}) const {
    state& of = here(limits.at);
    return awaitable<typename state::op>(std::move(limits), of);
  }
  // co_await returns the value or throws the error. If the awaiting coroutine's stop_token is
  // requested, throws future_error::cancelled and does not cancel the producer.
  auto operator co_await() const {
    check(valid(), "sluice::shared_future", "to be valid");
    return awaitable<typename state::value_op>(wait_limits{}, state_);
  }

  // Returns a future of f(const T&) or f().
  template <class F>
  auto then(F f, call_site at = {}) const {
    return here(at).branch(executor_).then(std::move(f));
  }
  // Returns a plain future of a copy of the value.
  future<T> fork(call_site at = {}) const {
    if constexpr (std::is_object_v<T>) {
      return then([](const T& value) { return T(value); }, at);
    } else {
      return here(at).branch(executor_);
    }
  }
  // Returns a copy; functions attached to that copy run on `on`.
  shared_future via(executor& on) const {
    shared_future other(*this);
    other.executor_ = &on;
    return other;
  }

  void cancel(call_site at = {}) const noexcept { here(at).cancel(); }
  // Threads and coroutines that wait now.
  std::size_t waiting(call_site at = {}) const noexcept { return here(at).waiting(); }

 private:
  state& here(call_site at) const noexcept {
    check(valid(), "sluice::shared_future", "to be valid", at);
    return *state_;
  }

  detail::shared_ref<T> state_;
  executor* executor_ = nullptr;
};

template <class T>
shared_future(future<T>&&) -> shared_future<T>;

}  // namespace sluice
