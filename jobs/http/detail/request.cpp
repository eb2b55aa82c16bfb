#include "jobs/http/detail/request.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "jobs/json/text.hpp"

namespace sluice::jobs::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The parts of "jobs.example:8443" or "[::1]:80". Malformed input is split too, and equals only
// itself.
struct host_and_port {
  std::string_view host;
  std::string_view port;
};
host_and_port split_port(std::string_view text, std::string_view usual_port) {
  const std::size_t end_of_ipv6 = text.starts_with('[') ? std::min(text.find(']'), text.size()) : 0;
  const std::size_t colon = text.find(':', end_of_ipv6);
  if (colon == std::string_view::npos) return {text, usual_port};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

bool is_same_place(std::string_view a, std::string_view b, std::string_view usual_port) {
  const host_and_port left = split_port(a, usual_port);
  const host_and_port right = split_port(b, usual_port);
  return same_word(left.host, right.host) && left.port == right.port;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string_view to_string(method m) noexcept {
  switch (m) {
    case method::get:
      return "GET";
    case method::head:
      return "HEAD";
    case method::post:
      return "POST";
    case method::put:
      return "PUT";
    case method::patch:
      return "PATCH";
    case method::remove:
      return "DELETE";
    case method::options:
      return "OPTIONS";
    case method::other:
      break;
  }
  return "other";
}

media media_of(std::string_view content_type) noexcept {
  const std::string_view name = trimmed(content_type.substr(0, content_type.find(';')));
  if (name.empty()) return media::none;
  if (same_word(name, "application/json")) return media::json;
  for (const std::string_view many :
       {"application/x-ndjson", "application/ndjson", "application/jsonl"}) {
    if (same_word(name, many)) return media::ndjson;
  }
  if (same_word(name, "application/x-www-form-urlencoded")) return media::form;
  return media::other;
}

std::optional<milliseconds> prefer_wait(std::string_view value) noexcept {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.size(), value.find(','));
    const std::string_view one = trimmed(value.substr(0, comma));
    value.remove_prefix(std::min(value.size(), comma + 1));
    const std::size_t equal = one.find('=');
    if (equal == std::string_view::npos || !same_word(trimmed(one.substr(0, equal)), "wait")) {
      continue;
    }
    if (auto wait = parse_duration(trimmed(one.substr(equal + 1)))) return *wait;
  }
  return std::nullopt;
}

bool is_foreign_host(std::string_view host, std::span<const std::string> own) noexcept {
  if (host.starts_with('[')) return false;  // an IPv6 address
  host = host.substr(0, host.find(':'));
  if (host.empty() || same_word(host, "localhost")) return false;
  if (std::ranges::any_of(
          own, [&](const std::string& o) { return same_word(host, split_port(o, {}).host); })) {
    return false;
  }
  return !std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

bool is_own_origin(std::string_view origin, std::string_view scheme, std::string_view host,
                   std::span<const std::string> own) noexcept {
  constexpr std::string_view behind_scheme = "://";
  const std::size_t end = origin.find(behind_scheme);
  if (end == std::string_view::npos) return false;  // "null"
  const std::string_view from = origin.substr(end + behind_scheme.size());
  if (from.empty()) return false;
  const bool is_https = origin.substr(0, end) == "https";
  const std::string_view usual_port = is_https ? "443" : "80";
  if (origin.substr(0, end) == scheme && is_same_place(from, host, usual_port)) return true;
  return is_https && std::ranges::any_of(own, [&](const std::string& o) {
           return is_same_place(from, o, usual_port);
         });
}

bool may_be_cross_origin(const request_head& head, std::string_view scheme,
                         std::span<const std::string> own) noexcept {
  if (!head.bearer.empty() || head.site == fetch_site::same_origin) return false;
  // Links of other sites may lead here, but only this server's pages may use unsafe methods.
  if (head.site == fetch_site::other && !is_safe(head.method)) return true;
  return head.origin && !is_own_origin(*head.origin, scheme, head.host_or_none(), own);
}

std::string_view bearer_of(std::string_view authorization) noexcept {
  const std::string_view all = trimmed(authorization);
  const std::size_t space = all.find(' ');
  if (space == std::string_view::npos || !same_word(all.substr(0, space), "Bearer")) return {};
  return trimmed(all.substr(space));
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      unsigned value = 0;
      const char* const digits = text.data() + i + 1;
      if (text.size() - i < 3) return std::nullopt;
      const auto [end, failed] = std::from_chars(digits, digits + 2, value, 16);
      if (failed != std::errc{} || end != digits + 2) return std::nullopt;
      out += static_cast<char>(value);
      i += 2;
    }
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    out += '%';
    out += hex[static_cast<unsigned char>(c) >> 4U];
    out += hex[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

}  // namespace sluice::jobs::http
