#pragma once

// Rejects `f.then(...)` on an lvalue at compile time: the call would leave `f` invalid, which the
// source would not show. `std::move(f).then(...)` shows it.

namespace sluice::detail {

template <class...>
inline constexpr bool is_moved = false;

// The overloads for lvalues; a future adds its own for rvalues.
class named_future {
 public:
  template <class... Args>
  auto then(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto and_then(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto recover(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto handle(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto finally(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto combine(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto with_timeout(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto with_stop(Args&&...) & {
    must_be_moved<Args...>();
  }
  template <class... Args>
  auto via(Args&&...) & {
    must_be_moved<Args...>();
  }

 private:
  template <class... Args>
  static void must_be_moved() {
    static_assert(is_moved<Args...>,
                  "this call consumes the future: write std::move(f).then(...), and likewise for "
                  "the other calls that attach a function");
  }
};

}  // namespace sluice::detail
