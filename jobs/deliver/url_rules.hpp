#pragma once

// Decides which URLs the server may post to, so that a producer of jobs cannot make the server send
// requests to internal hosts.
//
// A rule is a URL without a query. Scheme, host and port must be equal (without a port, the
// scheme's default); the path must equal the rule's path or continue after it with a slash: a rule
// that ends in /in allows /in and /in/x but not /inside; a rule that ends in a slash or has no path
// allows every path below. A host may begin with "*.", which matches exactly one label:
// https://*.example.com allows https://a.example.com, but neither https://example.com nor
// https://a.b.example.com. Names are compared, not addresses: http://localhost does not allow
// http://127.0.0.1.
//
// Guarantees: deterministic. Without rules every URL is rejected. Errors are `invalid` and name the
// invalid part of the URL, or that no rule matches, and what to do; they do not contain the query.
// Any thread may call `check`. Cost: one comparison per rule. Limits: rules_max.
//
//     auto rules = url_rules::parse({"https://*.example.com", "http://127.0.0.1:9000/in"});
//     engine_options o{.check_url = [&](std::string_view url) { return rules->check(url); }};

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/deliver/web_url.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs {

class url_rules {
 public:
  static constexpr std::size_t rules_max = 1000;

  url_rules() = default;  // allows nothing
  // An error names the rule and its fault.
  static result<url_rules> parse(const std::vector<std::string>& rules);

  // Checks one rule; the error states only its fault.
  static void_result check_rule(std::string_view rule);

  void_result check(std::string_view url) const;
  // As `check`, and returns the parsed URL.
  result<web_url> allowed(std::string_view url) const;
  bool empty() const noexcept { return rules_.empty(); }

 private:
  struct rule {
    web_url pattern;        // the host without its star
    bool has_star = false;  // matches one more label before the host
  };
  static result<rule> parse_rule(std::string_view text);
  static bool matches(const rule& r, const web_url& url) noexcept;

  std::vector<rule> rules_;
};

}  // namespace sluice::jobs
