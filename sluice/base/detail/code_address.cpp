#include "sluice/base/detail/code_address.hpp"

#include <cxxabi.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "sluice/base/detail/symbols.hpp"

namespace sluice::seam {
namespace {

std::string plus(std::string_view text, std::uintptr_t offset) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "+0x%zx", static_cast<std::size_t>(offset));
  return std::string(text) + number.data();
}

}  // namespace

std::string code_address_text(const void* return_address) {
  const code_symbol at = find_symbol(return_address);
  if (at.file.empty()) return plus("", reinterpret_cast<std::uintptr_t>(return_address));
  const std::string in_file = plus(at.file, at.offset_in_file);
  if (at.name.empty()) return in_file;
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(std::string(at.name).c_str(), nullptr, nullptr, &failed), &std::free);
  const std::string_view name = failed == 0 ? std::string_view(readable.get()) : at.name;
  return plus(name, at.offset) + " (" + in_file + ")";
}

}  // namespace sluice::seam
