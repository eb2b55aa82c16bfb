#include "jobs/protocol/browser_line.hpp"

#include <algorithm>
#include <array>

namespace sluice::jobs::protocol {
namespace {

// A page can use another method only for its own origin. That request line is recognized by its
// end, or the request by its Host header.
constexpr std::array<std::string_view, 7> methods = {"GET",     "POST",   "PUT",  "HEAD",
                                                     "OPTIONS", "DELETE", "PATCH"};
constexpr std::string_view host_header = "host:";
constexpr std::string_view tls_handshake = "\x16\x03";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// HTTP/1.1, also with a line end.
bool is_version(std::string_view text) {
  constexpr std::string_view name = "HTTP/";
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text.starts_with(name) && text.find_first_not_of("0123456789.", name.size()) == text.npos;
}

}  // namespace

bool is_browser_line(std::string_view line) noexcept {
  if (line.starts_with(tls_handshake)) return true;
  if (std::ranges::equal(line.substr(0, host_header.size()), host_header, {}, lower)) return true;
  const std::size_t method_end = line.find(' ');
  if (method_end == std::string_view::npos) return false;
  const bool has_path = line.substr(method_end + 1).starts_with('/');
  if (has_path && std::ranges::find(methods, line.substr(0, method_end)) != methods.end()) {
    return true;
  }
  const std::size_t target_end = line.rfind(' ');
  return target_end > method_end && is_version(line.substr(target_end + 1));
}

}  // namespace sluice::jobs::protocol
