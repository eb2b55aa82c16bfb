#include "jobs/client/detail/http_url.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "jobs/model/digit.hpp"

namespace sluice::jobs::detail {
namespace {

bool is_unreserved(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("-._~").find(c) != std::string_view::npos;
}

// Other characters would break the head of a request.
bool is_plain(char c) {
  return c > ' ' && c < 0x7F;
}

// Errors are logged: a password must not be part of them.
std::string without_password(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  // Up to the last @: an unescaped password may contain any character.
  const std::size_t at = url.rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(url);
  return std::string(url.substr(0, begin)) + "***" + std::string(url.substr(at));
}

error wrong(std::string_view url, std::string_view why) {
  return {error_code::invalid, "invalid server URL \"" + without_password(url) +
                                   "\": " + std::string(why) +
                                   " (expected a URL like http://127.0.0.1:7433)"};
}

}  // namespace

result<http_url> parse_http_url(std::string_view text) {
  if (!std::ranges::all_of(text, is_plain)) {
    return wrong(text, "it has white space or characters that must be escaped");
  }
  std::string_view rest = text;
  const bool is_secure = rest.starts_with("https://");
  if (!is_secure && !rest.starts_with("http://")) {
    return wrong(text, "it does not begin with http:// or https://");
  }
  rest.remove_prefix(is_secure ? 8 : 7);
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return wrong(text, "it has a query or a fragment");
  }

  http_url url;
  const std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view prefix = rest.substr(authority.size());
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (authority.find('@') != std::string_view::npos) {
    return wrong(text, "it has a user name or a password; use a token (SLUICE_TOKEN) instead");
  }

  std::string_view host = authority;
  std::string_view port;
  bool has_port = false;
  const auto bracket = authority.find(']');
  if (const auto colon = authority.rfind(':');
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    has_port = true;
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of("[]:") != std::string_view::npos) {
    return wrong(text, "an IPv6 address needs brackets, as in http://[::1]:7433");
  }
  if (host.empty()) return wrong(text, "it has no host");
  if (has_port) {
    unsigned number = 0;
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (failed != std::errc() || end != port.data() + port.size() || number == 0 ||
        number > 65535) {
      return wrong(text, "the port is not a number from 1 to 65535");
    }
  }
  url.host = host;
  url.port = has_port ? std::string(port) : is_secure ? "443" : "80";
  url.is_secure = is_secure;
  url.prefix = prefix;
  url.authority = authority;
  url.text = (is_secure ? "https://" : "http://") + url.authority + url.prefix;
  return url;
}

std::string percent_encoded(std::string_view text) {
  static constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    }
  }
  return out;
}

}  // namespace sluice::jobs::detail
