#include "sluice/base/check.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sluice/base/detail/code_address.hpp"
#include "sluice/base/detail/user_code.hpp"

namespace sluice {

#if defined(SLUICE_SIM)
namespace seam {
void contract_broken_in_run(const char* text) noexcept;
}
#endif

namespace {

// Prints the place of the call in the user's program, or else its address; nothing if both are
// unknown.
void print_caller(const call_site* caller) {
  if (caller != nullptr && !seam::is_library_file(caller->file())) {
    std::fprintf(stderr, "  called at %s:%u (%s)\n", caller->file(),
                 static_cast<unsigned>(caller->line()), caller->function());
    return;
  }
  const void* const from = seam::user_code_on_stack();
  if (from != nullptr) {
    std::fprintf(stderr, "  called at %s\n", seam::code_address_text(from).c_str());
  } else if (caller != nullptr) {
    std::fprintf(stderr, "  called by %s:%u (%s)\n", caller->file(),
                 static_cast<unsigned>(caller->line()), caller->function());
  }
}

[[noreturn]] void broken(const char* object, const char* name, const char* expected,
                         const call_site* caller, std::source_location where) noexcept {
  const bool named = name != nullptr && *name != '\0';
#if defined(SLUICE_SIM)
  char text[400];
  const bool is_known = caller != nullptr && !seam::is_library_file(caller->file());
  std::snprintf(text, sizeof text, "contract broken on %s: expected %s (%s:%u)", object, expected,
                is_known ? caller->file() : where.file_name(),
                static_cast<unsigned>(is_known ? caller->line() : where.line()));
  seam::contract_broken_in_run(text);  // returns only outside of a schedule
#endif
  std::fprintf(stderr, "sluice: contract broken on %s%s%s%s: expected %s\n", object,
               named ? " \"" : "", named ? name : "", named ? "\"" : "", expected);
  print_caller(caller);
  std::fprintf(stderr, "  checked in %s (%s:%u)\n", where.function_name(), where.file_name(),
               static_cast<unsigned>(where.line()));
  std::fflush(stderr);
  std::abort();
}

}  // namespace

void contract_broken(const char* object, const char* name, const char* expected,
                     std::source_location where) noexcept {
  broken(object, name, expected, nullptr, where);
}

void contract_broken(const char* object, const char* name, const char* expected, call_site caller,
                     std::source_location where) noexcept {
  broken(object, name, expected, &caller, where);
}

}  // namespace sluice
