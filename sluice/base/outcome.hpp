#pragma once

// The result of a call that can end without success in normal operation: full, empty, closed, timed
// out, stopped.
//
// Use `status` as the result of a call that returns no value (push, send, lock), and `outcome<T>`
// as the result of a call that returns one (pop, receive). Both are true in a condition exactly if
// the call succeeded:
//
//     while (auto item = queue.pop()) handle(*item);         // false: closed and drained
//     if (auto s = queue.try_push(job); !s) log(to_string(s));
//
// Guarantees: plain values that neither allocate nor throw. A call that did not return `ok` changed
// nothing, and the caller still has its item; the exception is `dropped`, which only a queue with a
// dropping policy returns.
// Limits: reading the value of an outcome without one is a broken contract.

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice {

class [[nodiscard]] status {
 public:
  enum class code : std::uint8_t {
    ok,
    empty,      // no item now (only from calls that never wait)
    full,       // no capacity: rejected, the caller still has the item
    closed,     // closed to new items, or closed and drained
    timed_out,  // the deadline passed first; no item was moved
    stopped,    // stop was requested first; no item was moved
    dropped,    // the overflow policy dropped the caller's item
  };
  // Makes status::closed valid. The enumeration is scoped: a status never converts to a number, nor
  // a code to a bool.
  static constexpr code ok = code::ok;
  static constexpr code empty = code::empty;
  static constexpr code full = code::full;
  static constexpr code closed = code::closed;
  static constexpr code timed_out = code::timed_out;
  static constexpr code stopped = code::stopped;
  static constexpr code dropped = code::dropped;

  constexpr status(code c) noexcept : code_(c) {}
  constexpr explicit operator bool() const noexcept { return code_ == code::ok; }
  constexpr operator code() const noexcept { return code_; }

 private:
  code code_;
};

constexpr std::string_view to_string(status s) noexcept {
  switch (s) {
    case status::ok: return "ok";
    case status::empty: return "empty";
    case status::full: return "full";
    case status::closed: return "closed";
    case status::timed_out: return "timed out";
    case status::stopped: return "stopped";
    case status::dropped: return "dropped";
  }
  return "unknown";
}

template <class T>
class [[nodiscard]] outcome {
 public:
  using value_type = T;

  outcome(sluice::status why) noexcept : status_(why) {
    check(!why, "sluice::outcome", "a reason other than ok when there is no value");
  }
  outcome(sluice::status::code why) noexcept : outcome(sluice::status(why)) {}
  outcome(T value) noexcept(std::is_nothrow_move_constructible_v<T>)
      : value_(std::move(value)), status_(sluice::status::ok) {}

  explicit operator bool() const noexcept { return value_.has_value(); }
  bool has_value() const noexcept { return value_.has_value(); }
  sluice::status status() const noexcept { return status_; }

  T& operator*() & { return get(); }
  T&& operator*() && { return std::move(get()); }
  const T& operator*() const& { return const_cast<outcome&>(*this).get(); }
  T* operator->() { return &get(); }
  const T* operator->() const { return &const_cast<outcome&>(*this).get(); }
  T& value(call_site at = {}) & { return get(at); }
  const T& value(call_site at = {}) const& { return const_cast<outcome&>(*this).get(at); }
  T&& value(call_site at = {}) && { return std::move(get(at)); }

  template <class U>
  T value_or(U&& other) && {
    return value_ ? std::move(*value_) : static_cast<T>(std::forward<U>(other));
  }

 private:
  static constexpr const char* expected_ = "a value; test the outcome before reading it";

  T& get() {
    check(value_.has_value(), "sluice::outcome", expected_);
    return *value_;
  }
  T& get(call_site at) {
    check(value_.has_value(), "sluice::outcome", expected_, at);
    return *value_;
  }

  std::optional<T> value_;
  sluice::status status_;
};

}  // namespace sluice
