#pragma once

// Parses the URL of a queue's target or a webhook strictly: a URL that two programs read
// differently could lead to a host that is not allowed.
//
// Guarantees: a parsed URL has one reading. Scheme and host are in lower case, the port is always
// set, the path begins with a slash. Rejected: schemes other than http and https, a user name or
// password, a fragment, white space, control and non-ASCII characters, a backslash, an escaped
// host, a dot at the end of the host, numbers that only some resolvers accept as an address
// (0x7f.1, 127.1), ports outside 1 to 65535, path segments "." and "..", and an escaped slash,
// backslash, dot segment or NUL in the path. Errors are `invalid` and name the invalid part and the
// reason. Limits: bytes_max.
//
//     result<web_url> url = parse_web_url("https://hooks.example.com/in?team=7");
//     url->host == "hooks.example.com"; url->port == 443; url->target() == "/in?team=7";

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "jobs/model/result.hpp"

namespace sluice::jobs {

struct web_url {
  static constexpr std::size_t bytes_max = 2048;
  enum class scheme : std::uint8_t { http, https };
  enum class host_kind : std::uint8_t { name, ipv4, ipv6 };

  scheme protocol = scheme::http;
  std::string host{};  // an IPv6 address without brackets, in its shortest form
  host_kind kind = host_kind::name;
  std::uint16_t port = 80;
  std::string path = "/";
  std::string query{};  // with its question mark, or empty

  std::string target() const { return path + query; }
  std::string authority() const;  // for the Host field: without the scheme's default port
  std::string origin() const;     // scheme, host and port: the identity of a connection
  std::string shown() const;      // for people and logs: without the query, which may have a secret

  friend bool operator==(const web_url&, const web_url&) = default;
};

result<web_url> parse_web_url(std::string_view text);

}  // namespace sluice::jobs
