#include "sluice/base/detail/callback.hpp"

#include <cstdio>

namespace sluice::detail {

void report_exception(std::string_view source, std::string_view name,
                      const std::exception_ptr& error) noexcept {
  const auto write = [&](const char* text) {
    const char* const quote = name.empty() ? "" : "'";
    std::fprintf(stderr, "sluice: %.*s%s%s%.*s%s threw: %s\n", static_cast<int>(source.size()),
                 source.data(), name.empty() ? "" : " ", quote, static_cast<int>(name.size()),
                 name.data(), quote, text);
  };
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    write(e.what());
  } catch (...) {
    write("not a std::exception");
  }
}

}  // namespace sluice::detail
