#pragma once

// The end of a future that gives it its result: set a value or an exception, once.
//
// Use it where the result comes about in a place that cannot return it: another thread, a handler,
// a completion. Prefer `async` for a function on an executor and `from_callback` for a callback.
//
// Guarantees: `try_set_*` may be called by any number of threads at a time; exactly one succeeds.
// `set_*` a second time is a broken contract, as is `get_future` a second time. Destroyed unset, it
// gives future_error::broken_promise to whoever has the future. If T's constructor throws, the
// exception goes to the setter and the promise is still unset. Setting runs what is attached to
// the future (see future.hpp for where), and never waits. The other calls, moving and destroying
// want to be alone.
// `stop_token` is requested when the consumer cancels; what the promise is then set to, if
// anything, is up to you: future_error::cancelled is the custom.
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

  // Once.
  future<T> get_future() {
    check(future_.valid(), "sluice::promise", "its future to be taken only once");
    return std::move(future_);
  }

  // Makes the value from the arguments: none for void, an lvalue for a reference.
  template <class... Args>
  void set_value(Args&&... args) {
    must(try_set_value(std::forward<Args>(args)...));
  }
  template <class V = T>  // also for set_value({...})
    requires std::is_object_v<V>
  void set_value(V&& value) {
    must(try_set_value(std::move(value)));
  }
  void set_exception(std::exception_ptr error) { must(try_set_exception(std::move(error))); }
  template <class E>
    requires(!std::is_same_v<std::remove_cvref_t<E>, std::exception_ptr>)
  void set_exception(E&& error) {
    set_exception(std::make_exception_ptr(std::forward<E>(error)));
  }

  // False: it was set already, or is being set.
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
    must(try_set([&](settled<T>& result) { from.pass_error(result); }));
  }

  // Requested when the consumer cancels. Empty once the promise is set.
  std::stop_token stop_token() const {
    state_type* const state = state_.load(relaxed);
    return state != nullptr ? state->token() : std::stop_token();
  }
  // The same as a look at that token, which need not be made for it. False once the promise is set.
  bool is_cancelled() const noexcept {
    state_type* const state = state_.load(relaxed);
    return state != nullptr && state->is_cancelled();
  }
  // False once it is set, or moved from.
  bool is_unset() const noexcept { return state_.load(relaxed) != nullptr; }
  // Tells whoever watches (sluice::inspect) who is going to set it: then a wait for the future is a
  // wait for that party, and can be part of a deadlock.
  void made_by(watch::party who) const noexcept {
    if (state_type* const state = state_.load(relaxed)) state->made_by(who);
  }
  // For the library: the way to say so when the promise is in other hands. Empty: nobody watches.
  detail::cancel_ref watched() const noexcept {
    if (!watch::is_on()) [[likely]]
      return {};
    state_type* const state = state_.load(relaxed);
    if (state == nullptr) return {};
    state->add_reference();
    return detail::cancel_ref::adopt(state);
  }
  // How many wait in the future's get or co_await right now: 0 or 1.
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
    // Whoever takes the pointer is the producer now. acq_rel: of several threads that use the
    // promise, the one that sets sees what the one before put back.
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
  static void must(bool was_unset) noexcept {
    check(was_unset, "sluice::promise", "to be set once");
  }
  void abandon() noexcept {
    future_ = future<T>();  // never taken: nobody will ask
    if (state_.load(relaxed) == nullptr) return;
    must(try_set_exception(
        std::make_exception_ptr(future_error(future_error::broken_promise))));
  }

  atomic<state_type*> state_;
  future<T> future_;  // until it is taken
};

// A future that is complete from the start.
template <class T, class... Args>
future<T> make_ready_future(Args&&... args) {
  promise<T> p;
  p.set_value(std::forward<Args>(args)...);
  return p.get_future();
}
template <int = 0, class T>  // the number: a type that is given by hand is for the one above
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
