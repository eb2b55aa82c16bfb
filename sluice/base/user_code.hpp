#pragma once

// Tells the user's code from that of this library and of the standard library, so that contract
// messages and the reports of `inspect` show the user's place also for a call that a header made:
// the constructor of a std::lock_guard, say.
//
// Guarantees: any thread may call anything; nothing is allocated.
// Limits: functions are told apart by their symbols, so all code of a stripped program counts as
// the user's. In a simulated build (sluice::sim) the stack is not walked.

namespace sluice::seam {

// True for headers of the standard library and of this library, except its test helpers.
bool is_library_file(const char* path) noexcept;

// True if a function of this library or of the standard library contains the return address. The
// result is cached by address.
bool is_library_code(const void* return_address) noexcept;

// Returns the innermost return address on the calling thread's stack that is in the user's code.
// `from`: starts there, at an address on the stack. Null if there is none, or none is known.
const void* user_code_on_stack(const void* from = nullptr) noexcept;

}  // namespace sluice::seam
