#pragma once

// Aborts the program with a message that names the expectation when a caller breaks a contract.
//
// Use it for mistakes in the program itself (unlocking a mutex that is not locked, destroying a
// queue in which threads wait). Expected outcomes and input from outside return a `status` or a
// result instead.
//
// Guarantees: on in every build. If the condition is false, it writes to standard error and aborts,
// so a debugger or a core file shows the caller's stack. The message names the object, the
// expectation, the place of the call in the user's program and the check in the library. The place
// is that of the `call_site` if the check has one; without it, and for a call made by a header of
// the standard library, it is the address of the first function on the stack outside the library,
// if the program has symbols.
// Cost: one predictable branch.
//
//     check(!held_by_me(), "sluice::mutex", "not to be locked again", at);

#include <source_location>

#include "sluice/base/call_site.hpp"

namespace sluice {

[[noreturn]] void contract_broken(const char* object, const char* name, const char* expected,
                                  std::source_location where) noexcept;
// Takes `caller` by value, as all checks do: a check that holds then writes nothing to the stack.
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

// For an object that can have a name: the message contains it. `name` may be null or empty.
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
