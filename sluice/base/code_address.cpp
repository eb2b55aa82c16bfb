#include "sluice/base/code_address.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace sluice::seam {
namespace {

std::string plus(std::string_view what, const void* address, const void* base) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "+0x%zx", static_cast<std::size_t>(offset));
  return std::string(what) + text.data();
}

}  // namespace

std::string code_address_text(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) {
    return plus("", address, nullptr);
  }
  if (found.dli_sname == nullptr) {
    std::string_view file(found.dli_fname);
    file.remove_prefix(file.rfind('/') == std::string_view::npos ? 0 : file.rfind('/') + 1);
    return plus(file, address, found.dli_fbase);
  }
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, &failed), &std::free);
  return plus(failed == 0 ? readable.get() : found.dli_sname, address, found.dli_saddr);
}

}  // namespace sluice::seam
