#include "jobs/deliver/url_rules.hpp"

#include <algorithm>
#include <utility>

#include "jobs/deliver/detail/url_parts.hpp"

namespace sluice::jobs {
namespace {

// "a.example.com" for "example.com": one label more.
bool starred_host_fits(std::string_view rule, std::string_view host) {
  const auto dot = host.find('.');
  return dot != std::string_view::npos && host.substr(dot + 1) == rule;
}

bool path_fits(std::string_view rule, std::string_view path) {
  if (!path.starts_with(rule)) return false;
  return rule.ends_with('/') || path.size() == rule.size() || path[rule.size()] == '/';
}

}  // namespace

result<url_rules::rule> url_rules::parse_rule(std::string_view text) {
  auto parts = detail::split_url(text);
  if (!parts) return parts.error();
  if (!parts->query.empty()) return error{error_code::invalid, "it has a query, a part after ?"};
  rule r;
  if (parts->host.starts_with("*.")) {
    r.has_star = true;
    parts->host.erase(0, 2);
  }
  if (parts->host.find('*') != std::string::npos) {
    return error{error_code::invalid,
                 "a star stands only for the first label of a host, as in https://*.example.com"};
  }
  auto like = detail::with_address(*std::move(parts));
  if (!like) return like.error();
  if (r.has_star && like->kind != web_url::host_kind::name) {
    return error{error_code::invalid, "an address cannot have a star before it"};
  }
  r.like = *std::move(like);
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
                                            " cannot be used: " + r.error().message};
    }
    made.rules_.push_back(*std::move(r));
  }
  return made;
}

bool url_rules::fits(const rule& r, const web_url& url) noexcept {
  if (r.like.how != url.how || r.like.port != url.port || r.like.kind != url.kind) return false;
  const bool host = r.has_star ? starred_host_fits(r.like.host, url.host) : r.like.host == url.host;
  return host && path_fits(r.like.path, url.path);
}

result<web_url> url_rules::allowed(std::string_view url) const {
  auto parsed = parse_web_url(url);
  if (!parsed) return parsed;
  if (std::ranges::any_of(rules_, [&](const rule& r) { return fits(r, *parsed); })) return parsed;
  if (rules_.empty()) {
    return error{error_code::invalid,
                 "the server may post to no URL at all: list those that it may in the setting "
                 "[delivery] allow, as in allow = [\"" +
                     parsed->origin() + "/\"]"};
  }
  return error{error_code::invalid, "the server may not post to " + parsed->shown() +
                                        ": no rule of the setting [delivery] allow fits its "
                                        "scheme, host, port and path"};
}

void_result url_rules::check(std::string_view url) const {
  auto parsed = allowed(url);
  if (!parsed) return parsed.error();
  return done{};
}

}  // namespace sluice::jobs
