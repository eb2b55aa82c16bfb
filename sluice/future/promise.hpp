#pragma once

// The producer's end of a future: sets a value or an exception, once.
//
// Use it where the result is known in a place that cannot return it: another thread, a handler, a
// completion. Prefer `async` for a function on an executor and `from_callback` for a callback.
//
// Guarantees: any number of threads may call `try_set_*` at once; exactly one succeeds. A second
// `set_*` or a second `get_future` is a broken contract. A promise that is destroyed unset sets
// future_error::broken_promise. If T's constructor throws, the exception goes to the setter and the
// promise is still unset. Setting runs the functions attached to the future (see future.hpp for
// where) and never waits. All other calls, moving and destroying must not run concurrently.
// `stop_token` is requested when the consumer cancels; the producer then decides how to set the
// promise: by convention with future_error::cancelled.
// Cost: one allocation, with the future's state; setting is one exchange if the continuation was
// attached before, else two.
//
//     promise<int> p;
//     future<int> f = p.get_future();
//     std::jthread worker([p = std::move(p)]() mutable { p.set_value(42); });
//     use(f.get());

#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/future/detail/future_state.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/future_error.hpp"

namespace sluice {

template <class T>
class promise {
  using state_type = detail::source_state<T>;

 public:
  using value_type = T;

  promise() : promise(detail::make_state<state_type>()) {}
  promise(promise&& other) noexcept
      : state_(other.state_.exchange(nullptr, relaxed)), future_(std::move(other.future_)) {}
  promise& operator=(promise&& other) noexcept {
    if (this != &other) {
      abandon();
      future_ = std::move(other.future_);
      state_.store(other.state_.exchange(nullptr, relaxed), relaxed);
    }
    return *this;
  }
  ~promise() { abandon(); }

  // Must be called at most once.
  future<T> get_future(call_site at = {}) {
    check(future_.valid(), "sluice::promise", "its future to be taken only once", at);
    return std::move(future_);
  }

  // Constructs the value from the arguments: none for void, an lvalue for a reference.
  template <class... Args>
  void set_value(Args&&... args) {
    check(try_set_value(std::forward<Args>(args)...), "sluice::promise", once_);
  }
  template <class V = T>  // also for set_value({...})
    requires std::is_object_v<V>
  void set_value(V&& value) {
    check(try_set_value(std::move(value)), "sluice::promise", once_);
  }
  void set_exception(std::exception_ptr error, call_site at = {}) {
    check(try_set_exception(std::move(error)), "sluice::promise", once_, at);
  }
  template <class E>
    requires(!std::is_same_v<std::remove_cvref_t<E>, std::exception_ptr>)
  void set_exception(E&& error, call_site at = {}) {
    set_exception(std::make_exception_ptr(std::forward<E>(error)), at);
  }

  // Returns false if the promise is set already, or another thread is setting it.
  template <class... Args>
  [[nodiscard]] bool try_set_value(Args&&... args) {
    return try_set([&](settled<T>& result) {
      result.construct([&]() -> T {
        if constexpr (std::is_reference_v<T>) {
          return (static_cast<T>(args), ...);
        } else if constexpr (!std::is_void_v<T>) {
          return T(std::forward<Args>(args)...);
        }
      });
    });
  }
  [[nodiscard]] bool try_set_exception(std::exception_ptr error) {
    return try_set([&](settled<T>& result) { result.fail(std::move(error)); });
  }

  // For the library: sets the error of `from`, without reading it.
  void pass_error(settled<T>& from) noexcept {
    const bool is_set = try_set([&](settled<T>& result) { from.pass_error(result); });
    check(is_set, "sluice::promise", once_);
  }

  // Requested when the consumer cancels. Empty once the promise is set.
  std::stop_token stop_token() const {
    state_type* const state = state_.load(relaxed);
    return state != nullptr ? state->token() : std::stop_token();
  }
  // Returns whether that token is requested, without creating it. False once the promise is set.
  bool is_cancelled() const noexcept {
    state_type* const state = state_.load(relaxed);
    return state != nullptr && state->is_cancelled();
  }
  // Returns false once it is set or moved from.
  bool is_unset() const noexcept { return state_.load(relaxed) != nullptr; }
  // For sluice::inspect: names the party that will set the promise. A wait for the future is then a
  // wait for that party, and can be part of a deadlock.
  void made_by(wait_report::party maker) const noexcept {
    if (state_type* const state = state_.load(relaxed)) state->made_by(maker);
  }
  // For the library: calls `made_by` after the promise was moved away. Empty unless inspected.
  detail::cancel_ref watched() const noexcept {
    if (!wait_report::is_on()) [[likely]]
      return {};
    state_type* const state = state_.load(relaxed);
    if (state == nullptr) return {};
    state->add_reference();
    return detail::cancel_ref::adopt(state);
  }
  // Consumers that wait in the future's get or co_await now: 0 or 1.
  std::size_t waiting() const noexcept {
    state_type* const state = state_.load(relaxed);
    return state != nullptr && state->is_awaited() ? 1 : 0;
  }

 private:
  explicit promise(state_type* made) noexcept
      : state_(made), future_(detail::future_access::make(detail::future_parts<T>(
                          made, detail::cancel_ref::adopt(made), nullptr))) {}

  template <class Set>
  bool try_set(Set&& set) {
    // The thread that gets the pointer sets the promise. acq_rel: it sees the state that a thread
    // whose constructor threw has stored back.
    state_type* const state = state_.exchange(nullptr, acq_rel);
    if (state == nullptr) return false;
    try {
      set(state->result);
    } catch (...) {
      state_.store(state, release);  // release: pairs with the exchange above
      throw;
    }
    state->made();
    detail::finish(*state);
    return true;
  }
  static constexpr const char* once_ = "to be set once";

  void abandon() noexcept {
    future_ = future<T>();  // if get_future was not called
    if (state_.load(relaxed) == nullptr) return;
    auto broken = std::make_exception_ptr(future_error(future_error::broken_promise));
    check(try_set_exception(std::move(broken)), "sluice::promise", once_);
  }

  atomic<state_type*> state_;
  future<T> future_;  // until it is taken
};

// Returns a complete future.
template <class T, class... Args>
future<T> make_ready_future(Args&&... args) {
  promise<T> p;
  p.set_value(std::forward<Args>(args)...);
  return p.get_future();
}
template <int = 0, class T>  // the int: an explicit template argument selects the overload above
future<std::decay_t<T>> make_ready_future(T&& value) {
  promise<std::decay_t<T>> p;
  p.set_value(std::forward<T>(value));
  return p.get_future();
}
inline future<void> make_ready_future() { return make_ready_future<void>(); }

template <class T>
future<T> make_failed_future(std::exception_ptr error) {
  promise<T> p;
  p.set_exception(std::move(error));
  return p.get_future();
}
template <class T, class E>
  requires(!std::is_same_v<std::remove_cvref_t<E>, std::exception_ptr>)
future<T> make_failed_future(E&& error) {
  return make_failed_future<T>(std::make_exception_ptr(std::forward<E>(error)));
}

}  // namespace sluice
