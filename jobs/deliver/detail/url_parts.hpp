#pragma once

// What a URL and a rule for URLs have in common: the same grammar, but for a star in a rule's host.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/deliver/web_url.hpp"

namespace sluice::jobs::detail {

struct url_parts {
  web_url::scheme how = web_url::scheme::http;
  std::string host{};  // in lower case, not looked at yet
  std::uint16_t port = 80;
  std::string path{};
  std::string query{};
};

// The messages of these go on from "the URL cannot be used: ".
result<url_parts> split_url(std::string_view text);
result<web_url> with_address(url_parts parts);
std::optional<std::string> wrong_name(std::string_view host);  // what is wrong with it

}  // namespace sluice::jobs::detail
