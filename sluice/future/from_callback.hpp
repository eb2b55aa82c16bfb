#pragma once

// Adapts a callback API to return a future.
//
// `from_callback<T>(start)` calls `start(done)`; `done` is a `completion<T>`, to be passed to the
// API as its callback. The API calls it with
//   (value...)              the arguments to construct T; none for void
//   (error, value...)       error first: a std::error_code (or a type that converts to it) or a
//                           std::exception_ptr; a set error fails the future, with
//                           std::system_error or the exception itself, and the value is ignored
//   (std::exception_ptr)    fails the future
//
// Guarantees: a completion is copyable, so it fits into a std::function; all copies are the same
// callback, and any thread may call any of them. The first call counts, later ones are ignored.
// When the last copy is destroyed uncalled, the future ends with future_error::broken_promise. An
// exception of `start` is the result, if none is set yet.
// `done.stop_token()` is requested when the future is cancelled.
// Cost: two allocations.
//
//     future<reply> ask(client& c, request r) {
//       return from_callback<reply>([&](auto done) { c.async_call(r, done); });
//     }

#include <concepts>
#include <exception>
#include <memory>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"

namespace sluice {

namespace detail {

template <class E>
concept callback_error = std::convertible_to<E, std::exception_ptr> ||
                         (std::convertible_to<E, std::error_code> &&
                          !std::is_arithmetic_v<std::remove_cvref_t<E>>);

// Returns null for success.
inline std::exception_ptr to_exception(std::exception_ptr error) noexcept { return error; }
inline std::exception_ptr to_exception(std::error_code code) {
  return code ? std::make_exception_ptr(std::system_error(code)) : nullptr;
}

template <class T, class... Args>
inline constexpr bool makes_value = std::is_constructible_v<T, Args...>;
template <class T, class... Args>
  requires std::is_void_v<T>
inline constexpr bool makes_value<T, Args...> = sizeof...(Args) == 0;

}  // namespace detail

template <class T>
class completion {
 public:
  completion() : promise_(std::make_shared<promise<T>>()) {}

  // Error first.
  template <detail::callback_error E, class... Args>
    requires(detail::makes_value<T, Args...> && (std::is_void_v<T> || sizeof...(Args) > 0))
  void operator()(E&& error, Args&&... args) const {
    if (auto failure = detail::to_exception(std::forward<E>(error)); failure != nullptr) {
      fail(std::move(failure));
    } else {
      succeed(std::forward<Args>(args)...);
    }
  }
  // Only a value.
  template <class... Args>
    requires detail::makes_value<T, Args...>
  void operator()(Args&&... args) const {
    succeed(std::forward<Args>(args)...);
  }
  // Only an error.
  void operator()(std::exception_ptr error) const
    requires(!std::is_void_v<T> && !detail::makes_value<T, std::exception_ptr>)
  {
    fail(std::move(error));
  }

  void fail(std::exception_ptr error) const {
    static_cast<void>(promise_->try_set_exception(std::move(error)));
  }
  std::stop_token stop_token() const { return promise_->stop_token(); }

 private:
  template <class U, class Start>
  friend future<U> from_callback(Start&& start);

  template <class... Args>
  void succeed(Args&&... args) const {
    static_cast<void>(promise_->try_set_value(std::forward<Args>(args)...));
  }

  std::shared_ptr<promise<T>> promise_;
};

template <class T, class Start>
future<T> from_callback(Start&& start) {
  completion<T> done;
  auto result = done.promise_->get_future();
  try {
    std::forward<Start>(start)(done);
  } catch (...) {
    done.fail(std::current_exception());
  }
  return result;
}

}  // namespace sluice
