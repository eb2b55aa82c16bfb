#pragma once

// A request as far as the routes care: its first line and the few headers that mean something here.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "jobs/model/time.hpp"

namespace sluice::jobs::http {

enum class method : std::uint8_t { get, head, post, put, patch, remove, options, other };
std::string_view to_string(method m) noexcept;

// A form is what curl -d says when it is told nothing; such a body is read as JSON, as is one of
// which nothing was said.
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
  std::string last_event{};                   // Last-Event-ID: of a client that was away
  bool expects_continue = false;
  bool expects_other = false;  // Expect: anything else
  bool is_old = false;         // HTTP/1.0: an answer in parts ends with its connection
  bool has_length = false;     // Content-Length, or chunked
  std::optional<std::string> host{};
  std::optional<std::string> origin{};  // of the web page that sent the request
  fetch_site site = fetch_site::unknown;
  bool has_authorization = false;
  std::string bearer{};  // the token of Authorization: Bearer; empty: none, or more than one
  // Why two programs could read this request differently; empty: they cannot. Refers to a literal.
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

// The wait of a Prefer header, if it has one.
std::optional<milliseconds> prefer_wait(std::string_view value) noexcept;

// A host name that a web page elsewhere can make point here. Addresses and localhost are not, nor
// are the names in `own`, with or without a port.
bool is_foreign_host(std::string_view host, std::span<const std::string> own = {}) noexcept;
// Whether an Origin has the scheme, host and port that a request was sent to; or is https with a
// name of `own`, as behind a proxy that has the TLS. An address is compared like a name.
bool is_own_origin(std::string_view origin, std::string_view scheme, std::string_view host,
                   std::span<const std::string> own = {}) noexcept;
// Whether a web page of another origin may have made a browser send this request. Not with a bearer
// token, which no page of another origin can add. `scheme` is that of the connection.
bool may_be_cross_origin(const request_head& head, std::string_view scheme,
                         std::span<const std::string> own) noexcept;

// What stands behind Bearer in an Authorization header; empty: nothing, or another scheme.
std::string_view bearer_of(std::string_view authorization) noexcept;

// What %41 stands for; none when it stands for nothing. In a query, + is a space.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
std::string percent_encode(std::string_view text);

}  // namespace sluice::jobs::http
