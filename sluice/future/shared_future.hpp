#pragma once

// A future that many may ask: the one result stays in it, and everybody sees the same one.
//
// Use it when several parties wait for one thing (a connection, a configuration, a first load).
// Prefer a plain `future` for one consumer: it moves the value out and costs less.
//
// Guarantees: copyable; all copies are the same future, and any thread may use any copy. `get`
// does not use it up and gives a const reference that lives as long as a copy does. Functions
// attached with `then`, and threads and coroutines that wait, are served in the order of their
// coming, each with the same value.
// `cancel` asks the producer to stop, for everybody. Cancelling a future that `then` or `fork`
// gave does not: the others still want the result.
// Cancel safety: a wait that ended early changed nothing.
// Cost: one allocation more than a future, and one for each `then` or `fork`.
//
//     shared_future<config> ready(load_config());
//     auto size = ready.then([](const config& c) { return c.size(); });
//     use(ready.get());

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
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

  view get(call_site at = {}) const {
    here(at).wait(at);
    return (*state_).read();
  }
  limited get(std::stop_token stop, call_site at = {}) const {
    return get_within({std::move(stop), at});
  }
  limited try_get(call_site at = {}) const {
    if (!is_ready(at)) return status::empty;
    return (*state_).answer(status::ok);
  }
  template <class Rep, class Period>
  limited try_get_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop = {},
                      call_site at = {}) const {
    return get_within({deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  limited try_get_until(std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}, call_site at = {}) const {
    return get_within({deadline::at(when), std::move(stop), at});
  }
  limited get_within(const wait_limits& limits) const {
    return block_on(typename state::op(here(limits.at)), limits);
  }
  // co_await gives what get_within does. A copy must live meanwhile.
  auto async_get(wait_limits limits = {}) const {
    state& of = here(limits.at);
    return awaitable<typename state::op>(std::move(limits), of);
  }
  // co_await gives the value or throws. When the awaiting coroutine is asked to stop: throws
  // future_error::cancelled, and cancels nothing.
  auto operator co_await() const {
    check(valid(), "sluice::shared_future", "to be valid");
    return awaitable<typename state::value_op>(wait_limits{}, state_);
  }

  // f(const T&) -> U, or f() -> U.
  template <class F>
  auto then(F f, call_site at = {}) const {
    return here(at).branch(executor_).then(std::move(f));
  }
  // A future of a copy of the value, with all that a future can do.
  future<T> fork(call_site at = {}) const {
    if constexpr (std::is_object_v<T>) {
      return then([](const T& value) { return T(value); }, at);
    } else {
      return here(at).branch(executor_);
    }
  }
  // This future, but functions attached to the copy that is returned run on `on`.
  shared_future via(executor& on) const {
    shared_future other(*this);
    other.executor_ = &on;
    return other;
  }

  void cancel(call_site at = {}) const noexcept { here(at).cancel(); }
  // How many threads and coroutines wait right now.
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
