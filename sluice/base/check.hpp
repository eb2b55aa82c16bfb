#pragma once

// Ends the program, with a message that says what was expected, when a caller breaks a contract.
//
// Use it for mistakes in the program itself (unlocking what is not locked, destroying a queue
// that threads still wait in). Never for what can happen on a good day, and never for input from
// outside: those have a `status` or a result.
//
// Guarantees: always on, in every build. Costs one predictable branch. Never returns when the
// condition is false: it writes to standard error and aborts, so that a debugger or a core file
// shows the culprit's stack. The message names the object, the expectation, the place of the call
// in the user's program and the check in the library. The place is that of the `call_site` if the
// check has one; without it, and for a call made by a header of the standard library, it is the
// address of the first function on the stack outside the library, as far as the program has
// symbols.
//
//     check(!held_by_me(), "sluice::mutex", "not to be locked again", at);

#include <source_location>

#include "sluice/base/call_site.hpp"

namespace sluice {

[[noreturn]] void contract_broken(const char* object, const char* name, const char* expected,
                                  std::source_location where) noexcept;
// Takes the place by value, as all checks do: so a check that holds writes nothing to the stack.
[[noreturn]] void contract_broken(const char* object, const char* name, const char* expected,
                                  call_site caller, std::source_location where) noexcept;

inline void check(bool holds, const char* object, const char* expected,
                  std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] contract_broken(object, nullptr, expected, where);
}
inline void check(bool holds, const char* object, const char* expected, call_site caller,
                  std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] contract_broken(object, nullptr, expected, caller, where);
}

// The same for an object the user gave a name: the message carries it.
inline void check_named(bool holds, const char* object, const char* name, const char* expected,
                        std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] contract_broken(object, name, expected, where);
}
inline void check_named(bool holds, const char* object, const char* name, const char* expected,
                        call_site caller,
                        std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]] contract_broken(object, name, expected, caller, where);
}

}  // namespace sluice
