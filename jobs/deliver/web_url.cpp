#include "jobs/deliver/web_url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "jobs/deliver/detail/url_parts.hpp"
#include "jobs/model/digit.hpp"

namespace sluice::jobs {
namespace {

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

bool is_label_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

// Some resolvers accept a name whose last part is a number as an address, each in its own way.
bool ends_in_a_number(std::string_view host) {
  const std::string_view last = host.substr(host.rfind('.') + 1);
  if (std::ranges::all_of(last, is_digit)) return true;
  return last.starts_with("0x") && std::ranges::all_of(last.substr(2), is_hex);
}

bool is_dot_segment(std::string_view segment) {
  std::string plain;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment.substr(i).starts_with("%2e") || segment.substr(i).starts_with("%2E")) {
      plain += '.';
      i += 2;
    } else {
      plain += segment[i];
    }
  }
  return plain == "." || plain == "..";
}

std::optional<std::string> wrong_path(std::string_view path) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') continue;
    if (path.size() - i < 3 || !is_hex(path[i + 1]) || !is_hex(path[i + 2])) {
      return "its path has a % that is not followed by two hexadecimal digits";
    }
    const std::string code = lowered(path.substr(i + 1, 2));
    if (code == "2f" || code == "5c" || code == "00") {
      return "its path has %" + code + ", which servers interpret differently";
    }
  }
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the slash
    const std::string_view segment = rest.substr(0, rest.find('/'));
    if (is_dot_segment(segment)) return "its path has a segment '.' or '..'";
    rest.remove_prefix(segment.size());
  }
  return std::nullopt;
}

}  // namespace

namespace detail {

std::optional<std::string> wrong_name(std::string_view host) {
  if (host.size() > 253) return "its host is longer than 253 characters";
  if (host.ends_with('.')) return "its host ends with a dot";
  while (true) {
    const std::string_view label = host.substr(0, host.find('.'));
    if (label.empty()) return "its host has an empty part between dots";
    if (label.size() > 63) return "a part of its host is longer than 63 characters";
    if (label.front() == '-' || label.back() == '-') {
      return "a part of its host begins or ends with a hyphen";
    }
    const auto bad = std::ranges::find_if_not(label, is_label_byte);
    if (bad != label.end() && *bad == '%') return "its host is escaped with %";
    if (bad != label.end()) {
      return "its host has the character '" + std::string(1, *bad) + "'";
    }
    if (label.size() == host.size()) break;
    host.remove_prefix(label.size() + 1);
  }
  if (ends_in_a_number(host)) {
    return "its host is neither a name nor an IPv4 address of four numbers from 0 to 255";
  }
  return std::nullopt;
}

result<url_parts> split_url(std::string_view text) {
  const auto wrong = [](std::string why) { return error{error_code::invalid, std::move(why)}; };
  if (text.empty()) return wrong("it is empty");
  if (text.size() > web_url::bytes_max) {
    return wrong("it is longer than " + std::to_string(web_url::bytes_max) + " bytes");
  }
  const auto bad = std::ranges::find_if_not(text, [](char c) { return c > ' ' && c < 0x7F; });
  if (bad != text.end()) {
    return wrong("byte " + std::to_string(bad - text.begin() + 1) +
                 " is white space, a control or a non-ASCII character; escape it with %");
  }
  if (text.find('\\') != std::string_view::npos) return wrong("it has a backslash");
  if (text.find('#') != std::string_view::npos) return wrong("it has a fragment (a part after #)");

  url_parts parts;
  const auto scheme_end = text.find("://");
  const std::string scheme = lowered(text.substr(0, scheme_end));
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return wrong("it does not begin with https:// or http://");
  }
  parts.protocol = scheme == "https" ? web_url::scheme::https : web_url::scheme::http;
  text.remove_prefix(scheme.size() + 3);

  const std::string_view authority = text.substr(0, text.find_first_of("/?"));
  text.remove_prefix(authority.size());
  if (authority.find('@') != std::string_view::npos) {
    return wrong("it has a user name or a password (a part before @)");
  }
  std::string_view host = authority;
  std::string_view port;
  bool has_port = false;
  if (const auto colon = authority.rfind(':');
      colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    has_port = true;
  }
  if (host.empty()) return wrong("it has no host");
  parts.host = lowered(host);
  parts.port = parts.protocol == web_url::scheme::https ? 443 : 80;
  if (has_port) {
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), parts.port);
    if (failed != std::errc() || end != port.data() + port.size() || parts.port == 0 ||
        port.front() == '0') {
      return wrong("its port is not a number from 1 to 65535");
    }
  }
  const std::string_view path = text.substr(0, text.find('?'));
  parts.path = path.empty() ? "/" : std::string(path);
  parts.query = text.substr(path.size());
  if (auto why = wrong_path(parts.path)) return wrong(*std::move(why));
  return parts;
}

result<web_url> with_address(url_parts parts) {
  web_url url{.protocol = parts.protocol,
              .host = std::move(parts.host),
              .kind = web_url::host_kind::name,
              .port = parts.port,
              .path = std::move(parts.path),
              .query = std::move(parts.query)};
  if (url.host.starts_with('[') || url.host.find(':') != std::string::npos) {
    in6_addr address{};
    const bool has_brackets = url.host.starts_with('[') && url.host.ends_with(']');
    const std::string inside =
        has_brackets ? url.host.substr(1, url.host.size() - 2) : std::string();
    if (!has_brackets || inet_pton(AF_INET6, inside.c_str(), &address) != 1) {
      return error{error_code::invalid,
                   "its host is not an IPv6 address in brackets, as in http://[::1]:9000"};
    }
    std::array<char, INET6_ADDRSTRLEN> shortest{};
    url.host = inet_ntop(AF_INET6, &address, shortest.data(), shortest.size());
    url.kind = web_url::host_kind::ipv6;
    return url;
  }
  in_addr address{};
  if (inet_pton(AF_INET, url.host.c_str(), &address) == 1) {
    url.kind = web_url::host_kind::ipv4;
    return url;
  }
  if (auto why = wrong_name(url.host)) return error{error_code::invalid, *std::move(why)};
  return url;
}

}  // namespace detail

std::string web_url::authority() const {
  std::string text = kind == host_kind::ipv6 ? "[" + host + "]" : host;
  if (port != (protocol == scheme::https ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

std::string web_url::origin() const {
  return (protocol == scheme::https ? "https://" : "http://") + authority();
}

std::string web_url::shown() const {
  return origin() + path + (query.empty() ? "" : "?...");
}

result<web_url> parse_web_url(std::string_view text) {
  auto parts = detail::split_url(text);
  auto url = parts ? detail::with_address(*std::move(parts)) : result<web_url>(parts.error());
  if (url) return url;
  return error{error_code::invalid, "invalid URL: " + url.error().message};
}

}  // namespace sluice::jobs
