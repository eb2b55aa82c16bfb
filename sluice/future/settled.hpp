#pragma once

// The result of a future: a value or an exception. `handle` passes it to a function,
// `when_all_settled` and `when_any` return it.
//
// Guarantees: a plain value, as movable and copyable as T is (an error is always both). `value()`
// returns the value or throws the exception, so code that does not check `has_value` cannot read
// past an error. After a move, `has_value` is unchanged, and the value is a moved-from T.
// An error in a copy or in a moved-to object is not reported, unlike that of a dropped future
// (docs/concepts/errors.md).
// T may be void (`value()` then only throws or returns) or a reference.
//
//     auto n = std::move(f).handle([](settled<int> s) { return s ? s.value() : 0; });
//     if (auto* late = s.error_as<future_error>()) log(late->what());

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/future/detail/unread_error.hpp"

namespace sluice {

template <class T>
class settled {
  static_assert(!std::is_rvalue_reference_v<T>, "a value or an lvalue reference");
  struct nothing {};
  using stored = std::conditional_t<
      std::is_void_v<T>, nothing,
      std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>, T>>;
  static constexpr bool is_simple = std::is_void_v<T> || std::is_reference_v<T>;

 public:
  using value_type = T;

  // For the state of a future: without a result.
  struct unset_t {};
  explicit settled(unset_t) noexcept : kind_(kind::unset) {}

  // With a value.
  template <class... Args>
    requires(!std::is_void_v<T> && !std::is_reference_v<T> &&
             std::is_constructible_v<T, Args...>)
  explicit settled(std::in_place_t, Args&&... args) : kind_(kind::value) {
    ::new (place()) T(std::forward<Args>(args)...);
  }
  template <class R = T>
    requires std::is_lvalue_reference_v<R>
  explicit settled(std::in_place_t, std::type_identity_t<R> referred) noexcept
      : kind_(kind::value) {
    ::new (place()) stored(std::addressof(referred));
  }
  explicit settled(std::in_place_t) noexcept
    requires std::is_void_v<T>
      : kind_(kind::value) {}

  // With an error.
  explicit settled(std::exception_ptr error) noexcept : kind_(kind::unset) {
    fail(std::move(error));
  }

  settled(settled&& other) noexcept(is_simple || std::is_nothrow_move_constructible_v<stored>)
      : kind_(kind::unset) {
    take_from(other);
  }
  settled& operator=(settled&& other) noexcept(is_simple ||
                                               std::is_nothrow_move_constructible_v<stored>) {
    if (this != &other) {
      reset();
      take_from(other);
    }
    return *this;
  }
  settled(const settled& other)
    requires(std::is_copy_constructible_v<stored>)
      : kind_(kind::unset) {
    copy_from(other);
  }
  settled& operator=(const settled& other)
    requires(std::is_copy_constructible_v<stored>)
  {
    if (this != &other) {
      reset();
      copy_from(other);
    }
    return *this;
  }
  ~settled() { reset(); }

  bool has_value() const noexcept { return kind_ == kind::value; }
  explicit operator bool() const noexcept { return has_value(); }

  // Returns the value or throws the error.
  decltype(auto) value() & { return read(*this); }
  decltype(auto) value() const& { return read(*this); }
  decltype(auto) value() && {
    expect_value();
    if constexpr (std::is_lvalue_reference_v<T>) {
      return static_cast<T>(**object());
    } else if constexpr (!std::is_void_v<T>) {
      return static_cast<T&&>(*object());
    }
  }

  // Returns null if there is a value.
  std::exception_ptr error() const noexcept { return is_error() ? failure() : nullptr; }
  // Returns the error if it is an E, else null. Valid as long as this object.
  template <class E>
  const E* error_as() const {
    if (!is_error()) return nullptr;
    try {
      std::rethrow_exception(failure());
    } catch (const E& e) {
      return &e;  // the exception object lives as long as the pointer to it does
    } catch (...) {
      return nullptr;
    }
  }

  // For the state of a future. `construct` stores the result of `make`, without a move.
  bool is_set() const noexcept { return kind_ != kind::unset; }
  template <class Make>
  void construct(Make&& make) {
    if constexpr (std::is_void_v<T>) {
      std::forward<Make>(make)();
    } else if constexpr (std::is_lvalue_reference_v<T>) {
      ::new (place()) stored(std::addressof(static_cast<T>(std::forward<Make>(make)())));
    } else {
      ::new (place()) T(std::forward<Make>(make)());
    }
    kind_ = kind::value;
  }
  void fail(std::exception_ptr error) noexcept {
    check(error != nullptr, "sluice::settled", "an exception");
    ::new (place()) std::exception_ptr(std::move(error));
    kind_ = kind::error;
  }
  bool is_error() const noexcept { return kind_ >= kind::error; }
  // Moves the error to `target`, which must be unset, without reading it. This is unset afterwards.
  template <class U>
  void pass_error(settled<U>& target) noexcept {
    if (kind_ == kind::unread) {
      ::new (target.place()) detail::unread_error*(*unread());
      target.kind_ = settled<U>::kind::unread;
      kind_ = kind::unset;
    } else {
      target.fail(std::move(*plain()));
      reset();
    }
  }
  // Arranges that an error is reported to `on` (null: to standard error) if it is never read.
  void report_unread(executor* on) noexcept {
    if (kind_ != kind::error) [[likely]] return;
    auto* const made = detail::unread_error::make(*plain(), on);
    if (made == nullptr) return;
    std::destroy_at(plain());
    ::new (place()) detail::unread_error*(made);
    kind_ = kind::unread;
  }
  void reset() noexcept {
    if (kind_ == kind::value) {
      if constexpr (!is_simple) std::destroy_at(object());
    } else if (kind_ == kind::error) {
      std::destroy_at(plain());
    } else if (kind_ == kind::unread) {
      detail::unread_error::end(*unread());
    }
    kind_ = kind::unset;
  }

 private:
  template <class U>
  friend class settled;
  // unread: an error held by a detail::unread_error.
  enum class kind : unsigned char { unset, value, error, unread };

  template <class Self>
  static decltype(auto) read(Self& self) {
    self.expect_value();
    if constexpr (std::is_lvalue_reference_v<T>) {
      return static_cast<T>(**self.object());
    } else if constexpr (!std::is_void_v<T>) {
      return (*self.object());
    }
  }
  void expect_value() const {
    if (is_error()) std::rethrow_exception(failure());
    check(has_value(), "sluice::settled", "a result");
  }
  void take_from(settled& other) {
    if (other.kind_ == kind::value) {
      ::new (place()) stored(std::move(*other.object()));
      kind_ = kind::value;
    } else if (other.is_error()) {
      fail(other.failure());
    }
  }
  void copy_from(const settled& other) {
    if (other.kind_ == kind::value) {
      ::new (place()) stored(*other.object());
      kind_ = kind::value;
    } else if (other.is_error()) {
      fail(other.failure());
    }
  }

  void* place() noexcept { return &bytes_; }
  stored* object() noexcept { return std::launder(reinterpret_cast<stored*>(&bytes_)); }
  const stored* object() const noexcept {
    return std::launder(reinterpret_cast<const stored*>(&bytes_));
  }
  // Reads the error.
  const std::exception_ptr& failure() const noexcept {
    return kind_ == kind::unread ? (*unread())->read() : *plain();
  }
  std::exception_ptr* plain() noexcept {
    return std::launder(reinterpret_cast<std::exception_ptr*>(&bytes_));
  }
  const std::exception_ptr* plain() const noexcept {
    return std::launder(reinterpret_cast<const std::exception_ptr*>(&bytes_));
  }
  detail::unread_error* const* unread() const noexcept {
    return std::launder(reinterpret_cast<detail::unread_error* const*>(&bytes_));
  }

  static constexpr std::size_t bytes =
      sizeof(stored) > sizeof(std::exception_ptr) ? sizeof(stored) : sizeof(std::exception_ptr);
  static constexpr std::size_t alignment = alignof(stored) > alignof(std::exception_ptr)
                                               ? alignof(stored)
                                               : alignof(std::exception_ptr);
  alignas(alignment) unsigned char bytes_[bytes];
  kind kind_;
};

}  // namespace sluice
