#pragma once

// Calls a user's callback and reports an exception that leaves it: the rule for every callback of
// the library (docs/concepts/errors.md).
//
// Use it for callbacks that only observe (`on_drop`, `on_change`). A function whose result is
// needed (`weigh`, `key`, `judge`) throws to the caller instead.
//
// Guarantees: the exception does not reach the caller. It is reported once, to `on_error` if the
// object has one, else on standard error. If `on_error` throws, both exceptions are written to
// standard error.
// Cost: nothing unless the callback throws.

#include <exception>
#include <string_view>
#include <utility>

namespace sluice::detail {

// Writes to standard error, as in: sluice: on_drop of queue 'mail' threw: disk full
void report_exception(std::string_view source, std::string_view name,
                      const std::exception_ptr& error) noexcept;

// Calls `callback`. Reports its exception on standard error.
template <class Callback, class... Args>
void call_back(std::string_view source, std::string_view name, Callback& callback,
               Args&&... args) noexcept {
  try {
    callback(std::forward<Args>(args)...);
  } catch (...) {
    report_exception(source, name, std::current_exception());
  }
}

// Passes `error`, which left `source`, to `on_error`, or writes it to standard error if `on_error`
// is empty.
template <class OnError>
void report_to(OnError& on_error, std::string_view source, std::string_view name,
               const std::exception_ptr& error) noexcept {
  if (!on_error) return report_exception(source, name, error);
  try {
    on_error(error);
  } catch (...) {
    report_exception(source, name, error);
    report_exception("on_error of", name, std::current_exception());
  }
}

// Calls `callback`. Reports its exception to `on_error`.
template <class OnError, class Callback, class... Args>
void call_back_or_report(OnError& on_error, std::string_view source, std::string_view name,
                         Callback& callback, Args&&... args) noexcept {
  try {
    callback(std::forward<Args>(args)...);
  } catch (...) {
    report_to(on_error, source, name, std::current_exception());
  }
}

}  // namespace sluice::detail
