#include "sluice/base/detail/user_code.hpp"

#include <unwind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/base/atomic.hpp"
#include "sluice/base/detail/symbols.hpp"

namespace sluice::seam {
namespace {

using namespace std::string_view_literals;

constexpr std::array modules{"actor/"sv,  "base/"sv,    "channel/"sv, "executor/"sv, "flow/"sv,
                             "future/"sv, "inspect/"sv, "queue/"sv,   "sync/"sv};

// Removes the prefix. Returns false if the text does not start with it.
bool skip(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Checks the outermost namespace of a mangled name: _Z [Z...] N [qualifiers] 6sluice ...
bool is_library_name(std::string_view name) noexcept {
  if (!skip(name, "_Z")) return false;
  while (skip(name, "Z")) {  // a local entity: its function counts
  }
  if (skip(name, "N")) {
    while (skip(name, "r") || skip(name, "V") || skip(name, "K") || skip(name, "R") ||
           skip(name, "O")) {
    }
  }
  if (name.starts_with("St") || name.starts_with("Sa") || name.starts_with("Ss") ||
      name.starts_with("9__gnu_cxx") || name.starts_with("10__cxxabiv1")) {
    return true;
  }
  // The job server and the tests are users of the library.
  return skip(name, "6sluice") && !name.starts_with("4jobs") && !name.starts_with("7testing");
}

// True for files of the system, which end a walk.
bool is_system_file(std::string_view file) noexcept {
  return file.starts_with("libc.") || file.starts_with("libc-") || file.starts_with("libpthread") ||
         file.starts_with("libstdc++") || file.starts_with("libgcc_s") || file.starts_with("ld-");
}

enum class origin : std::uint8_t { unknown, user, library, system };

origin find_origin(const void* return_address) noexcept {
  const code_symbol in = find_symbol(return_address);
  if (is_system_file(in.file)) {
    return in.file.starts_with("libstdc++") ? origin::library : origin::system;
  }
  return is_library_name(in.name) ? origin::library : origin::user;
}

// Origins by address, direct-mapped: (address << 2) | origin. A new entry replaces an older one.
constexpr std::size_t cache_size = 256;
constinit std::array<atomic<std::uint64_t>, cache_size> cache{};

origin origin_of(const void* return_address) noexcept {
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(return_address);
  auto& entry = cache[(address ^ (address >> 8)) % cache_size];
  // relaxed: an entry is a single word.
  const std::uint64_t seen = entry.load(relaxed);
  if (seen >> 2 == address) return static_cast<origin>(seen & 3);
  const origin found = find_origin(return_address);
  entry.store((address << 2) | static_cast<std::uint64_t>(found), relaxed);
  return found;
}

struct walk {
  const void* from = nullptr;  // skips frames up to this address; null: none left to skip
  const void* found = nullptr;
  int frames_left = 64;
};

[[maybe_unused]] _Unwind_Reason_Code visit_frame(_Unwind_Context* frame, void* data) noexcept {
  auto& w = *static_cast<walk*>(data);
  const auto* const address = reinterpret_cast<const void*>(::_Unwind_GetIP(frame));
  if (address == nullptr || --w.frames_left == 0) return _URC_END_OF_STACK;
  if (w.from != nullptr && address != w.from) return _URC_NO_REASON;
  w.from = nullptr;
  switch (origin_of(address)) {
    case origin::library:
    case origin::unknown:
      return _URC_NO_REASON;
    case origin::system:
      return _URC_END_OF_STACK;
    case origin::user:
      w.found = address;
      return _URC_END_OF_STACK;
  }
  return _URC_END_OF_STACK;
}

}  // namespace

bool is_library_file(const char* path) noexcept {
  const std::string_view file(path);
  if (file.find("/c++/") != std::string_view::npos) return true;
  if (!file.ends_with(".hpp") || file.find("/testing/") != std::string_view::npos) return false;
  const auto at = file.rfind("sluice/");
  if (at == std::string_view::npos || (at > 0 && file[at - 1] != '/')) return false;
  const std::string_view rest = file.substr(at + "sluice/"sv.size());
  for (const auto m : modules) {
    if (rest.starts_with(m)) return true;
  }
  return false;
}

bool is_library_code(const void* return_address) noexcept {
  return origin_of(return_address) == origin::library;
}

const void* user_code_on_stack([[maybe_unused]] const void* from) noexcept {
  walk w{.from = from};
#if !defined(SLUICE_SIM)  // a simulation's threads are fibers
  ::_Unwind_Backtrace(&visit_frame, &w);
#endif
  return w.found;
}

}  // namespace sluice::seam
