#pragma once

// Holds and calls any function object, including move-only ones: the type of functions passed to an
// executor, a future or a timer.
//
// Use it for a parameter or a member. Prefer a template parameter if the type need not be erased,
// and `std::function` if copies are needed.
//
// Guarantees: moving never throws. Each call invokes the held object as an lvalue; there may be any
// number of calls. Constructed from a null pointer or an empty function, it is empty. Calling an
// empty one is a broken contract.
// Cost: 48 bytes; no allocation for an object of up to 40 bytes whose move does not throw. A call
// is one indirect call; moving an object that is trivially copyable is a copy of the bytes.
//
//     unique_function<void()> f = [p = std::make_unique<job>()] { p->run(); };
//     f();

#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice {

template <class Signature>
class unique_function;

namespace detail {
template <class F>
inline constexpr bool can_be_empty = std::is_pointer_v<F> || std::is_member_pointer_v<F>;
template <class Signature>
inline constexpr bool can_be_empty<std::function<Signature>> = true;
template <class Signature>
inline constexpr bool can_be_empty<unique_function<Signature>> = true;
}  // namespace detail

template <class R, class... Args>
class unique_function<R(Args...)> {
 public:
  static constexpr std::size_t inline_bytes = 40;

  unique_function() noexcept = default;
  unique_function(std::nullptr_t) noexcept {}

  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, unique_function> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  unique_function(F&& f) {
    using held = std::decay_t<F>;
    if constexpr (detail::can_be_empty<held> && !std::is_function_v<std::remove_reference_t<F>>) {
      if (!static_cast<bool>(f)) return;  // an empty source gives an empty function
    }
    if constexpr (fits_inline<held>) {
      ::new (place()) held(std::forward<F>(f));
      operations_ = &inline_operations<held>;
    } else {
      ::new (place()) (held*)(new held(std::forward<F>(f)));
      operations_ = &heap_operations<held>;
    }
  }

  unique_function(unique_function&& other) noexcept { take(other); }
  unique_function& operator=(unique_function&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~unique_function() { reset(); }

  explicit operator bool() const noexcept { return operations_ != nullptr; }

  R operator()(Args... args) {
    check(operations_ != nullptr, "sluice::unique_function",
          "to hold a function when it is called");
    return operations_->call(place(), std::forward<Args>(args)...);
  }

  void reset() noexcept {
    if (operations_ == nullptr) return;
    const operations* const old = std::exchange(operations_, nullptr);
    if (old->destroy != nullptr) old->destroy(place());
  }

 private:
  struct operations {
    R (*call)(void*, Args&&...);
    void (*relocate)(void* source, void* target) noexcept;  // null: copy the bytes
    void (*destroy)(void*) noexcept;                        // null: nothing to do
  };

  template <class F>
  static constexpr bool fits_inline =
      sizeof(F) <= inline_bytes && alignof(F) <= alignof(void*) &&
      std::is_nothrow_move_constructible_v<F>;
  template <class F>
  static constexpr bool is_plain = std::is_trivially_copyable_v<F>;

  template <class F>
  static F& object(void* at) noexcept {
    return *std::launder(static_cast<F*>(at));
  }
  template <class F>
  static F*& pointer(void* at) noexcept {
    return *std::launder(static_cast<F**>(at));
  }

  template <class F>
  static R invoke(F& f, Args&&... args) {
    if constexpr (std::is_void_v<R>) {
      std::invoke(f, std::forward<Args>(args)...);
    } else {
      return std::invoke(f, std::forward<Args>(args)...);
    }
  }
  template <class F>
  static R call_inline(void* at, Args&&... args) {
    return invoke(object<F>(at), std::forward<Args>(args)...);
  }
  template <class F>
  static void relocate_inline(void* source, void* target) noexcept {
    F& held = object<F>(source);
    ::new (target) F(std::move(held));
    held.~F();
  }
  template <class F>
  static void destroy_inline(void* at) noexcept {
    object<F>(at).~F();
  }
  template <class F>
  static R call_heap(void* at, Args&&... args) {
    return invoke(*pointer<F>(at), std::forward<Args>(args)...);
  }
  template <class F>
  static void destroy_heap(void* at) noexcept {
    delete pointer<F>(at);
  }

  template <class F>
  static constexpr operations inline_operations{
      &call_inline<F>, is_plain<F> ? nullptr : &relocate_inline<F>,
      is_plain<F> ? nullptr : &destroy_inline<F>};
  template <class F>
  static constexpr operations heap_operations{&call_heap<F>, nullptr, &destroy_heap<F>};

  void* place() noexcept { return bytes_; }
  void take(unique_function& other) noexcept {
    operations_ = std::exchange(other.operations_, nullptr);
    if (operations_ == nullptr) return;
    if (operations_->relocate == nullptr) {
      std::memcpy(bytes_, other.bytes_, inline_bytes);
    } else {
      operations_->relocate(other.place(), place());
    }
  }

  const operations* operations_ = nullptr;
  alignas(void*) std::byte bytes_[inline_bytes];
};

}  // namespace sluice
