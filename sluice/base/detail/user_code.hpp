#pragma once

// Distinguishes user code from code of this library and the standard library. Contract messages and
// the reports of `inspect` can then show the user's place also for a call made in a header, such as
// the constructor of std::lock_guard.
//
// Guarantees: any thread may call any function; nothing is allocated.
// Limits: functions are distinguished by their symbols, so all code of a stripped program counts as
// user code. In a simulated build (sluice::sim) the stack is not walked.

namespace sluice::seam {

// Returns true for headers of the standard library and of this library, except its test helpers.
bool is_library_file(const char* path) noexcept;

// Returns true if a function of this library or of the standard library contains the return
// address. The result is cached by address.
bool is_library_code(const void* return_address) noexcept;

// Returns the innermost return address on the calling thread's stack that is in user code, or null
// if none is found. If `from`, a return address on the stack, is not null, the search starts there.
const void* user_code_on_stack(const void* from = nullptr) noexcept;

}  // namespace sluice::seam
