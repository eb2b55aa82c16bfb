#include "sluice/sim/detail/source_lines.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

#include "sluice/base/detail/code_address.hpp"

namespace sluice::sim::detail {
namespace {

// A source line of an address. Calls that were inlined there have lines of their own.
struct source_line {
  std::string function;
  std::string file;  // empty: unknown
  std::string line;

  bool is_known() const { return !file.empty(); }
  bool is_of(std::string_view folder) const { return file.find(folder) != std::string::npos; }
  bool is_hidden() const {
    return is_of("/include/c++/") || is_of("/usr/include/") || is_of("sluice/sim/detail/") ||
           function.starts_with("sluice::sim::detail::");
  }
  std::string place() const { return file.substr(file.rfind('/') + 1) + ":" + line; }
};

std::string program_path() {
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

// Returns the binary that contains the code, and the address relative to it.
std::pair<std::string, std::uintptr_t> in_file(const void* address) {
  Dl_info found{};
  Dl_info program{};
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  ::dladdr(reinterpret_cast<const void*>(&in_file), &program);
  const auto base = reinterpret_cast<std::uintptr_t>(found.dli_fbase);
  // argv[0] need not be a path.
  const bool is_program = found.dli_fbase == program.dli_fbase;
  std::string path = is_program ? program_path() : std::string(found.dli_fname);
  const bool is_quotable = path.find('\'') == std::string::npos;
  if (!is_quotable) path.clear();
  return {std::move(path), reinterpret_cast<std::uintptr_t>(address) - base};
}

std::string next_line(std::FILE* from) {
  std::string line;
  for (int c = std::fgetc(from); c != EOF && c != '\n'; c = std::fgetc(from)) {
    line += static_cast<char>(c);
  }
  return line;
}

using lines_by_address = std::map<const void*, std::vector<source_line>>;

lines_by_address& known_lines() {
  static lines_by_address known;
  return known;
}

// Runs addr2line once for all addresses of one binary. For each it prints the address, then
// functions and places alternately, innermost first.
void run_addr2line(const std::string& path, const std::vector<const void*>& addresses,
                   const std::string& offsets) {
  const std::string command = "addr2line -a -f -i -C -e '" + path + "'" + offsets + " 2>/dev/null";
  std::FILE* const printed = ::popen(command.c_str(), "r");
  if (printed == nullptr) return;
  auto at = addresses.begin();
  std::vector<source_line>* lines = nullptr;
  for (std::string text = next_line(printed); !text.empty(); text = next_line(printed)) {
    if (text.starts_with("0x")) {
      if (at == addresses.end()) break;
      lines = &known_lines()[*at++];
      continue;
    }
    if (lines == nullptr) break;
    source_line one;
    one.function = std::move(text);
    std::string place = next_line(printed);
    place.erase(std::min(place.find(" ("), place.size()));  // " (discriminator 2)"
    const auto colon = place.rfind(':');
    const bool is_known = !place.starts_with('?') && colon != std::string::npos &&
                          place.find_first_of("?", colon) == std::string::npos &&
                          place.substr(colon) != ":0";
    if (is_known) {
      one.file = place.substr(0, colon);
      one.line = place.substr(colon + 1);
    }
    lines->push_back(std::move(one));
  }
  ::pclose(printed);
}

}  // namespace

void prepare_call_stacks() noexcept {
  (void)calls_from_here();
}

call_stack calls_from_here(const void* interrupted) noexcept {
  std::array<void*, call_stack::depth_max + 8> found{};
  const int depth = ::backtrace(found.data(), static_cast<int>(found.size()));
  const auto end = found.begin() + std::max(depth, 0);
  auto first = found.begin();
  if (interrupted != nullptr) {
    const auto at = std::find(found.begin(), end, interrupted);
    if (at != end) first = at;
  }
  call_stack calls;
  for (auto at = first; at != end && calls.depth < call_stack::depth_max; ++at) {
    // A return address lies behind its call, and may belong to the next line.
    const auto back = *at == interrupted ? 0 : 1;
    calls.addresses[calls.depth++] = static_cast<const char*>(*at) - back;
  }
  return calls;
}

void find_lines(std::span<const call_stack* const> stacks) {
  struct asked {
    std::vector<const void*> addresses;
    std::string offsets;
  };
  std::map<std::string, asked> by_file;
  for (const call_stack* const calls : stacks) {
    for (const void* const address : calls->calls()) {
      if (!known_lines().try_emplace(address).second) continue;
      const auto [path, offset] = in_file(address);
      if (path.empty()) continue;
      std::array<char, 40> shown{};
      std::snprintf(shown.data(), shown.size(), " 0x%zx", static_cast<std::size_t>(offset));
      by_file[path].addresses.push_back(address);
      by_file[path].offsets += shown.data();
    }
  }
  for (const auto& [path, wanted] : by_file) run_addr2line(path, wanted.addresses, wanted.offsets);
}

std::string caller_line(const call_stack& calls) {
  const call_stack* const one = &calls;
  find_lines({&one, 1});
  for (const void* const address : calls.calls()) {
    for (const source_line& line : known_lines()[address]) {
      if (line.is_known() && !line.is_hidden()) return line.place();
    }
  }
  return {};
}

std::vector<std::string> caller_lines(const call_stack& calls, std::size_t most) {
  const call_stack* const one = &calls;
  find_lines({&one, 1});
  std::vector<std::string> shown;
  for (const void* const address : calls.calls()) {
    const std::vector<source_line>& lines = known_lines()[address];
    if (lines.empty() && shown.size() < most) shown.push_back(seam::code_address_text(address));
    for (const source_line& line : lines) {
      // The remaining calls are the simulator's.
      if (line.function.starts_with("sluice::sim::detail::scheduler::")) return shown;
      if (line.is_hidden() || shown.size() == most) continue;
      const bool is_named = !line.function.starts_with('?');
      std::string text = is_named ? line.function : seam::code_address_text(address);
      if (line.is_known()) text += " (" + line.place() + ")";
      shown.push_back(std::move(text));
    }
  }
  return shown;
}

}  // namespace sluice::sim::detail
