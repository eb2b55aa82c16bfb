#pragma once

// Where a job or a webhook is posted to, taken apart strictly: two programs that read one URL
// differently are how a request ends up at a host that nobody allowed.
//
// Guarantees: what comes out has one reading. Scheme and host are in lower case, the port is always
// there, the path begins with a slash. Refused are: other schemes than http and https, a user name
// or password, a fragment, white space, controls, what is not ASCII, a backslash, an escaped host,
// a dot at the host's end, numbers that only some resolvers take for an address (0x7f.1, 127.1), a
// port that is not 1 to 65535, path segments "." and "..", and an escaped slash, backslash, dot
// segment or NUL in the path. An error is `invalid`, and says which part is wrong and why.
// Limits: bytes_max.
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

  scheme how = scheme::http;
  std::string host{};  // an IPv6 address without its brackets, in its shortest form
  host_kind kind = host_kind::name;
  std::uint16_t port = 80;
  std::string path = "/";
  std::string query{};  // with its question mark; or empty

  std::string target() const { return path + query; }
  std::string authority() const;  // for the Host field: no port when it is the scheme's own
  std::string origin() const;     // scheme, host and port: what one connection can serve
  std::string shown() const;      // for people and logs: without the query, which may be a secret

  friend bool operator==(const web_url&, const web_url&) = default;
};

result<web_url> parse_web_url(std::string_view text);

}  // namespace sluice::jobs
