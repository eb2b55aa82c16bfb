#pragma once

// The parts of a request that routes use: the request line and a few headers.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "jobs/model/time.hpp"

namespace sluice::jobs::http {

enum class method : std::uint8_t { get, head, post, put, patch, remove, options, other };
std::string_view to_string(method m) noexcept;

// `form` is the default content type of curl -d; such a body is read as JSON, as is a body without
// a content type.
enum class media : std::uint8_t { none, json, ndjson, form, other };
constexpr bool is_read_as_json(media m) noexcept {
  return m == media::json || m == media::none || m == media::form;
}
media media_of(std::string_view content_type) noexcept;

// Methods that change nothing (RFC 9110, 9.2.1). No route has TRACE.
constexpr bool is_safe(method m) noexcept {
  return m == method::get || m == method::head || m == method::options;
}

// The header Sec-Fetch-Site. Browsers set it, and no web page can change it.
enum class fetch_site : std::uint8_t { unknown, same_origin, other };

struct request_head {
  http::method method = method::other;
  std::string target{};
  http::media media = media::none;
  std::optional<milliseconds> prefer_wait{};  // Prefer: wait=5
  std::string last_event{};                   // Last-Event-ID, from a client that reconnects
  bool expects_continue = false;
  bool expects_other = false;  // Expect: anything else
  bool is_old = false;         // HTTP/1.0: a reply in parts ends with its connection
  bool has_length = false;     // Content-Length, or chunked
  std::optional<std::string> host{};
  std::optional<std::string> origin{};  // of the web page that sent the request
  fetch_site site = fetch_site::unknown;
  bool has_authorization = false;
  std::string bearer{};  // the token of Authorization: Bearer; empty: none, or more than one
  // Why two programs could parse this request differently (request smuggling); empty: they cannot.
  // Refers to a literal.
  std::string_view ambiguity{};

  std::string_view host_or_none() const noexcept { return host ? *host : std::string_view(); }
  std::string_view path() const noexcept {
    return std::string_view(target).substr(0, target.find('?'));
  }
  std::string_view query() const noexcept {
    const std::size_t mark = target.find('?');
    return mark == std::string::npos ? std::string_view()
                                     : std::string_view(target).substr(mark + 1);
  }
};

// Returns the wait of a Prefer header, if present.
std::optional<milliseconds> prefer_wait(std::string_view value) noexcept;

// Returns whether a web page of another site could have made this host name point here (DNS
// rebinding). Addresses, localhost and the names in `own`, with or without a port, are safe.
bool is_foreign_host(std::string_view host, std::span<const std::string> own = {}) noexcept;
// Returns whether an Origin has the scheme, host and port that a request was sent to, or is https
// with a name of `own`, as behind a proxy with TLS. An address is compared like a name.
bool is_own_origin(std::string_view origin, std::string_view scheme, std::string_view host,
                   std::span<const std::string> own = {}) noexcept;
// Returns whether a web page of another origin may have made a browser send this request. A bearer
// token excludes that: no such page can add it. `scheme` is the scheme of the connection.
bool may_be_cross_origin(const request_head& head, std::string_view scheme,
                         std::span<const std::string> own) noexcept;

// Returns the token of an Authorization header; empty: no token, or another scheme than Bearer.
std::string_view bearer_of(std::string_view authorization) noexcept;

// Decodes %41 and the like; none: malformed. In a query, + is a space.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
std::string percent_encode(std::string_view text);

}  // namespace sluice::jobs::http
