#pragma once

// The common grammar of URLs and rules for URLs; a rule's host may have a star.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/deliver/web_url.hpp"

namespace sluice::jobs::detail {

struct url_parts {
  web_url::scheme protocol = web_url::scheme::http;
  std::string host{};  // in lower case, not checked yet
  std::uint16_t port = 80;
  std::string path{};
  std::string query{};
};

// Error messages continue "invalid URL: ".
result<url_parts> split_url(std::string_view text);
result<web_url> with_address(url_parts parts);
std::optional<std::string> wrong_name(std::string_view host);  // returns the fault, if any

}  // namespace sluice::jobs::detail
