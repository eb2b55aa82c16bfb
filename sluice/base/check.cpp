#include "sluice/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace sluice {

#if defined(SLUICE_SIM)
namespace seam {
void contract_broken_in_run(const char* text) noexcept;
}
#endif

void contract_broken(const char* object, const char* name, const char* expected,
                     std::source_location where) noexcept {
  const bool named = name != nullptr && *name != '\0';
#if defined(SLUICE_SIM)
  char text[400];
  std::snprintf(text, sizeof text, "contract broken on %s: expected %s (%s:%u)", object, expected,
                where.file_name(), static_cast<unsigned>(where.line()));
  seam::contract_broken_in_run(text);  // returns only outside of a schedule
#endif
  std::fprintf(stderr, "sluice: contract broken on %s%s%s%s: expected %s\n", object,
               named ? " \"" : "", named ? name : "", named ? "\"" : "", expected);
  std::fprintf(stderr, "  checked in %s (%s:%u)\n", where.function_name(), where.file_name(),
               static_cast<unsigned>(where.line()));
  std::fflush(stderr);
  std::abort();
}

}  // namespace sluice
