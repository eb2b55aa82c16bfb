#pragma once

// The parts of a future, for code that builds on it: the state, the link to the producer for
// cancelling, and the executor for functions attached next.

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/future_state.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

template <class T>
class future;

namespace detail {

template <class T>
struct future_parts {
  future_state<T>* state = nullptr;  // owned: exactly one future_parts leaves it
  cancel_ref way_back{};
  executor* on = nullptr;

  future_parts() = default;
  future_parts(future_state<T>* s, cancel_ref back, executor* ex) noexcept
      : state(s), way_back(std::move(back)), on(ex) {}
  future_parts(future_parts&& other) noexcept
      : state(std::exchange(other.state, nullptr)), way_back(std::move(other.way_back)),
        on(other.on) {}
  future_parts& operator=(future_parts&& other) noexcept {
    if (this != &other) {
      drop();
      state = std::exchange(other.state, nullptr);
      way_back = std::move(other.way_back);
      on = other.on;
    }
    return *this;
  }
  ~future_parts() { drop(); }

  void drop() noexcept {
    if (state != nullptr) std::exchange(state, nullptr)->drop();
    way_back.reset();
  }
  future_state<T>& take_state() noexcept { return *std::exchange(state, nullptr); }
};

// Takes the result of a ready future and consumes it, also if T's move throws.
template <class T>
T take_result(future_parts<T>& from) {
  struct consumed_parts {
    future_state<T>& state;
    cancel_ref way_back;
    ~consumed_parts() {
      state.result.reset();
      state.leave(std::move(way_back));
    }
  } taken{from.take_state(), std::move(from.way_back)};
  return std::move(taken.state.result).value();
}

// Moves the result of one state to another. An exception of T's move becomes the result.
template <class T>
void move_result(settled<T>& from, settled<T>& target) noexcept {
  if (from.is_error()) {
    from.pass_error(target);
    return;
  }
  try {
    target.construct([&]() -> decltype(auto) { return std::move(from).value(); });
  } catch (...) {
    target.fail(std::current_exception());
  }
}

// The result of a wait with limits.
template <class T>
struct limited_result {
  using type = outcome<T>;
};
template <>
struct limited_result<void> {
  using type = status;
};
template <class T>
struct limited_result<T&> {
  using type = outcome<std::reference_wrapper<T>>;
};
template <class T>
using limited_result_t = typename limited_result<T>::type;

// The spin budget of `get`, per thread: a state is too short-lived to learn one.
SLUICE_PER_THREAD inline spin_budget& get_spin() noexcept {
  constinit static thread_local spin_budget budget;
  return budget;
}

// A wait for a future, for block_on and awaitable.
template <class T>
class get_op {
 public:
  explicit get_op(future_parts<T>& of) noexcept : of_(of) {}
  bool ready() const noexcept { return of_.state->is_ready(); }
  bool attempt() const noexcept { return ready(); }
  enlisted enlist(waiter& waiting) noexcept { return of_.state->link(node_, waiting); }
  bool woken() const noexcept { return true; }
  void retract() noexcept { of_.state->unlink(node_); }
  // For wait reports: the parties that may set the result.
  std::size_t wait_subject(wait_report::subject* out, std::size_t capacity) const noexcept {
    const wait_report::subject made{of_.state->identity(), "sluice::future", "get"};
    if (of_.way_back) return of_.way_back->makers(made, out, capacity);
    if (capacity > 0) *out = made;
    return 1;
  }
  spin_budget& spin() noexcept { return get_spin(); }
  limited_result_t<T> result(status ended) {
    if (!ended) return ended;
    if constexpr (std::is_void_v<T>) {
      take_result(of_);
      return ended;
    } else if constexpr (std::is_reference_v<T>) {
      return std::ref(take_result(of_));
    } else {
      return take_result(of_);
    }
  }

 protected:
  future_parts<T>& of_;
  wait_node node_;
};

// The same for `co_await std::move(f)`, which owns the future and cannot end early without an
// exception.
template <class T>
class consume_op : private future_parts<T>, public get_op<T> {
 public:
  explicit consume_op(future_parts<T> of) noexcept
      : future_parts<T>(std::move(of)), get_op<T>(static_cast<future_parts<T>&>(*this)) {}
  T result(status ended) {
    if (!ended) give_up();
    return take_result(static_cast<future_parts<T>&>(*this));
  }

 private:
  [[noreturn]] void give_up() {
    if (this->way_back) this->way_back->cancel();
    throw future_error(future_error::cancelled);
  }
};

template <class T>
struct is_future : std::false_type {};
template <class T>
struct is_future<future<T>> : std::true_type {};
template <class T>
inline constexpr bool is_future_v = is_future<std::remove_cvref_t<T>>::value;
// The value type of a function's future: T if the function returns T or future<T>.
template <class T>
struct future_value : std::type_identity<T> {};
template <class T>
  requires is_future_v<T>
struct future_value<T> : std::type_identity<typename std::remove_cvref_t<T>::value_type> {};
template <class T>
using future_value_t = typename future_value<T>::type;

// Gives the library access to the parts of a future.
struct future_access {
  template <class T>
  static future_parts<T>& parts(future<T>& f) noexcept {
    return f.parts_;
  }
  template <class T>
  static future_parts<T> take(future<T>&& f) noexcept {
    return std::move(f.parts_);
  }
  template <class T>
  static future<T> make(future_parts<T> parts) noexcept {
    return future<T>(std::move(parts));
  }
};

}  // namespace detail
}  // namespace sluice
