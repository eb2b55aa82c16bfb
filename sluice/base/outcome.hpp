#pragma once

// Says how a call ended when ending without success is an everyday matter: full, empty, closed,
// timed out, stopped.
//
// Use `status` as the result of a call that hands something in (push, send, lock), and
// `outcome<T>` as the result of a call that takes something out (pop, receive). Both are true in
// a condition exactly when the call did what it was asked to do:
//
//     while (auto item = queue.pop()) handle(*item);         // false: closed and drained
//     if (auto s = queue.try_push(job); !s) log(to_string(s));
//
// Guarantees: plain values, no allocation, no exception of their own. A call that did not return
// `ok` changed nothing, and what was to be handed in is still with the caller; the one exception
// is `dropped`, which only a queue built with a dropping policy returns.
// Limits: reading the value of an outcome that holds none is a broken contract and ends the
// program.

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
    ok,         // done
    empty,      // nothing to take right now (only from calls that never wait)
    full,       // no room: refused, the item is still with the caller
    closed,     // closed for intake, or closed and drained
    timed_out,  // the deadline came first; nothing was taken or given
    stopped,    // the stop_token asked first; nothing was taken or given
    dropped,    // the policy dropped the very item that was handed in
  };
  // So that one writes status::closed. They are of a scoped enumeration: a status never turns into
  // a number or, backwards, into a bool by accident.
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
