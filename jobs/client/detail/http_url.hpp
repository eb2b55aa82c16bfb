#pragma once

// Parses the URL of a server, such as http://127.0.0.1:7433, https://[::1]:7433 or
// https://jobs.internal/behind/a/proxy.

#include <string>
#include <string_view>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

struct http_url {
  std::string host;        // an IPv6 address without its brackets
  std::string port;        // default: 80, or 443 for https
  std::string prefix;      // of every path, without a slash at its end
  std::string text;        // the whole URL, for people
  std::string authority;   // for the Host field
  bool is_secure = false;  // https
};

// Fails with `invalid` and the invalid part; the message does not contain a password.
result<http_url> parse_http_url(std::string_view text);

// Escapes all characters except letters, digits and - . _ ~ for a path or a query.
std::string percent_encoded(std::string_view text);

}  // namespace sluice::jobs::detail
