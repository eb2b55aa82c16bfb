#include "sluice/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void contract_broken(const char* object, const char* name, const char* expected,
                     std::source_location where) noexcept {
  const bool named = name != nullptr && *name != '\0';
  std::fprintf(stderr, "sluice: contract broken on %s%s%s%s: expected %s\n", object,
               named ? " \"" : "", named ? name : "", named ? "\"" : "", expected);
  std::fprintf(stderr, "  checked in %s (%s:%u)\n", where.function_name(), where.file_name(),
               static_cast<unsigned>(where.line()));
  std::fflush(stderr);
  std::abort();
}

}  // namespace sluice
