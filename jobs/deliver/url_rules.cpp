#include "jobs/deliver/url_rules.hpp"

#include <algorithm>
#include <utility>

#include "jobs/deliver/detail/url_parts.hpp"

namespace sluice::jobs {
namespace {

// Returns whether the host is the rule's host with one more label, as in a.example.com.
bool star_matches(std::string_view rule, std::string_view host) {
  const auto dot = host.find('.');
  return dot != std::string_view::npos && host.substr(dot + 1) == rule;
}

bool path_matches(std::string_view rule, std::string_view path) {
  if (!path.starts_with(rule)) return false;
  return rule.ends_with('/') || path.size() == rule.size() || path[rule.size()] == '/';
}

}  // namespace

result<url_rules::rule> url_rules::parse_rule(std::string_view text) {
  auto parts = detail::split_url(text);
  if (!parts) return parts.error();
  if (!parts->query.empty()) return error{error_code::invalid, "a rule must not have a query"};
  rule r;
  if (parts->host.starts_with("*.")) {
    r.has_star = true;
    parts->host.erase(0, 2);
  }
  if (parts->host.find('*') != std::string::npos) {
    return error{
        error_code::invalid,
        "a star is allowed only as the first label of a host, as in https://*.example.com"};
  }
  auto pattern = detail::with_address(*std::move(parts));
  if (!pattern) return pattern.error();
  if (r.has_star && pattern->kind != web_url::host_kind::name) {
    return error{error_code::invalid, "a star is not allowed before an address"};
  }
  r.pattern = *std::move(pattern);
  return r;
}

void_result url_rules::check_rule(std::string_view rule) {
  auto parsed = parse_rule(rule);
  if (!parsed) return parsed.error();
  return done{};
}

result<url_rules> url_rules::parse(const std::vector<std::string>& rules) {
  if (rules.size() > rules_max) {
    return error{error_code::invalid,
                 "[delivery] allow: more than " + std::to_string(rules_max) + " rules"};
  }
  url_rules made;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    auto r = parse_rule(rules[i]);
    if (!r) {
      return error{error_code::invalid, "[delivery] allow: rule " + std::to_string(i + 1) +
                                            " is invalid: " + r.error().message};
    }
    made.rules_.push_back(*std::move(r));
  }
  return made;
}

bool url_rules::matches(const rule& r, const web_url& url) noexcept {
  if (r.pattern.protocol != url.protocol || r.pattern.port != url.port ||
      r.pattern.kind != url.kind)
    return false;
  const bool host =
      r.has_star ? star_matches(r.pattern.host, url.host) : r.pattern.host == url.host;
  return host && path_matches(r.pattern.path, url.path);
}

result<web_url> url_rules::allowed(std::string_view url) const {
  auto parsed = parse_web_url(url);
  if (!parsed) return parsed;
  if (std::ranges::any_of(rules_, [&](const rule& r) { return matches(r, *parsed); }))
    return parsed;
  if (rules_.empty()) {
    return error{error_code::invalid,
                 "the server may not post to any URL; allow URLs in the setting [delivery] allow, "
                 "as in allow = [\"" +
                     parsed->origin() + "/\"]"};
  }
  return error{error_code::invalid, "the server may not post to " + parsed->shown() +
                                        ": no rule of the setting [delivery] allow matches its "
                                        "scheme, host, port and path"};
}

void_result url_rules::check(std::string_view url) const {
  auto parsed = allowed(url);
  if (!parsed) return parsed.error();
  return done{};
}

}  // namespace sluice::jobs
