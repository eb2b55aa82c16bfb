#pragma once

// Decides which URLs the server may post to, so that whoever may push a job cannot make the server
// talk to whatever it can reach.
//
// A rule is a URL without a query. Scheme, host and port must be the same (a rule without a port
// means the scheme's own); the path must be the rule's, or go on after it at a slash: a rule that
// ends in /in allows /in and /in/x and not /inside; one that ends in a slash, or has no path,
// allows all below. A host may begin with "*.", which stands for exactly one label:
// https://*.example.com allows https://a.example.com, and neither https://example.com nor
// https://a.b.example.com. Names are compared, not addresses: http://localhost does not allow
// http://127.0.0.1.
//
// Guarantees: what was made from the same text decides the same. No rules: everything is refused.
// An error is `invalid`, says which part of the URL is wrong or that no rule fits, and what to do;
// it does not show a URL's query.
// Any thread may call `check`. Cost: a look at each rule. Limits: rules_max.
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
  // An error names the rule and what is wrong with it.
  static result<url_rules> parse(const std::vector<std::string>& rules);

  // Whether one could be used; the error says only what is wrong with it.
  static void_result check_rule(std::string_view rule);

  void_result check(std::string_view url) const;
  // The same, with the URL taken apart.
  result<web_url> allowed(std::string_view url) const;
  bool empty() const noexcept { return rules_.empty(); }

 private:
  struct rule {
    web_url like;           // the host without its star
    bool has_star = false;  // one label stands before it
  };
  static result<rule> parse_rule(std::string_view text);
  static bool fits(const rule& r, const web_url& url) noexcept;

  std::vector<rule> rules_;
};

}  // namespace sluice::jobs
