#pragma once

// Where a server is, taken from a URL such as http://127.0.0.1:7433, https://[::1]:7433 or
// https://jobs.internal/behind/a/proxy.

#include <string>
#include <string_view>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

struct http_url {
  std::string host;        // an IPv6 address without its brackets
  std::string port;        // 80, or 443 of https, when the URL has none
  std::string prefix;      // what every path begins with; no slash at its end
  std::string text;        // the whole, for people
  std::string authority;   // for the Host field
  bool is_secure = false;  // https
};

// An error is `invalid` and says which part is wrong; a password in the text is not repeated.
result<http_url> parse_http_url(std::string_view text);

// As a part of a path or of a query: everything but letters, digits and - . _ ~ is escaped.
std::string percent_encoded(std::string_view text);

}  // namespace sluice::jobs::detail
