#include "jobs/deliver/url_rules.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::url_rules_test {
namespace {

url_rules rules(const std::vector<std::string>& list) {
  auto made = url_rules::parse(list);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : url_rules{};
}

bool allows(const std::string& rule, std::string_view url) {
  return rules({rule}).check(url).has_value();
}

std::string why_not(const url_rules& all, std::string_view url) {
  const auto checked = all.check(url);
  EXPECT_FALSE(checked) << url << " is allowed";
  return checked ? "" : checked.error().message;
}

std::string why_no_rule(const std::string& rule) {
  const auto made = url_rules::parse({"https://fine.example.com", rule});
  EXPECT_FALSE(made) << rule << " was taken";
  return made ? "" : made.error().message;
}

TEST(url_rules_test, NoRulesAllowNothingAndTheErrorNamesTheSetting) {
  const std::string why = why_not(url_rules{}, "https://hooks.example.com/in");
  EXPECT_NE(why.find("[delivery] allow"), std::string::npos) << why;
  EXPECT_NE(why.find("https://hooks.example.com/"), std::string::npos) << why;
  EXPECT_TRUE(url_rules{}.empty());
}

TEST(url_rules_test, SchemeHostAndPortMustBeTheSame) {
  const std::string rule = "https://hooks.example.com/";
  EXPECT_TRUE(allows(rule, "https://hooks.example.com/in/box?x"));
  EXPECT_TRUE(allows(rule, "https://hooks.example.com"));
  EXPECT_TRUE(allows(rule, "https://hooks.example.com:443/"));
  EXPECT_TRUE(allows(rule, "HTTPS://HOOKS.example.COM/"));
  EXPECT_TRUE(allows("HTTPS://HOOKS.example.COM/", "https://hooks.example.com/"));
  EXPECT_FALSE(allows(rule, "http://hooks.example.com/"));
  EXPECT_FALSE(allows(rule, "http://hooks.example.com:443/"));
  EXPECT_FALSE(allows(rule, "https://hooks.example.com:8443/"));
  EXPECT_FALSE(allows(rule, "https://example.com/"));
  EXPECT_FALSE(allows(rule, "https://other.hooks.example.com/"));
  EXPECT_FALSE(allows(rule, "https://hooks.example.com.evil.com/"));
  EXPECT_FALSE(allows(rule, "https://evilhooks.example.com/"));
}

TEST(url_rules_test, TricksAreRejectedWithTheirReason) {
  const auto all = rules({"https://good.com"});
  EXPECT_NE(why_not(all, "https://good.com@evil.com").find("user name"), std::string::npos);
  EXPECT_NE(why_not(all, "https://good.com.evil.com").find("no rule"), std::string::npos);
  EXPECT_NE(why_not(all, "https://good.com./").find("dot"), std::string::npos);
  EXPECT_NE(why_not(all, "https://good%2ecom/").find("escaped"), std::string::npos);
  EXPECT_NE(why_not(all, "https://evil.com\\.good.com/").find("backslash"), std::string::npos);
  EXPECT_NE(why_not(all, "https://evil.com/?https://good.com/").find("no rule"), std::string::npos);
  EXPECT_NE(why_not(all, "https://evil.com#good.com").find("fragment"), std::string::npos);
}

TEST(url_rules_test, AnErrorContainsNoQuery) {
  const std::string why = why_not(rules({"https://good.com"}), "https://evil.com/?token=secret");
  EXPECT_EQ(why.find("secret"), std::string::npos) << why;
}

TEST(url_rules_test, AStarMatchesExactlyOneLabel) {
  const std::string rule = "https://*.example.com";
  EXPECT_TRUE(allows(rule, "https://a.example.com/in"));
  EXPECT_TRUE(allows(rule, "https://A.Example.com/in"));
  EXPECT_FALSE(allows(rule, "https://example.com/"));
  EXPECT_FALSE(allows(rule, "https://a.b.example.com/"));
  EXPECT_FALSE(allows(rule, "https://aexample.com/"));
  EXPECT_FALSE(allows(rule, "https://a.example.com.evil.com/"));
  EXPECT_FALSE(allows(rule, "https://a.example.org/"));
  EXPECT_FALSE(allows("https://*.0.0.7f/", "https://127.0.0.7/"));
}

TEST(url_rules_test, APathIsAllowedAtASegmentsEnd) {
  const std::string rule = "http://127.0.0.1:9000/in";
  EXPECT_TRUE(allows(rule, "http://127.0.0.1:9000/in"));
  EXPECT_TRUE(allows(rule, "http://127.0.0.1:9000/in?x=1"));
  EXPECT_TRUE(allows(rule, "http://127.0.0.1:9000/in/box"));
  EXPECT_FALSE(allows(rule, "http://127.0.0.1:9000/inside"));
  EXPECT_FALSE(allows(rule, "http://127.0.0.1:9000/"));
  EXPECT_FALSE(allows(rule, "http://127.0.0.1:9000/In"));
  EXPECT_FALSE(allows(rule, "http://127.0.0.1:9000/in/../admin"));
  EXPECT_FALSE(allows(rule, "http://127.0.0.1:9000/%69n"));
  EXPECT_TRUE(allows("https://a.com/in/", "https://a.com/in/x"));
  EXPECT_FALSE(allows("https://a.com/in/", "https://a.com/in"));
}

TEST(url_rules_test, AddressesAreComparedInTheirShortestForm) {
  EXPECT_TRUE(allows("http://[::1]:9000", "http://[0:0::0:1]:9000/in"));
  EXPECT_FALSE(allows("http://[::1]:9000", "http://[::2]:9000/in"));
  EXPECT_FALSE(allows("http://localhost:9000", "http://127.0.0.1:9000/"));
  EXPECT_FALSE(allows("http://127.0.0.1", "http://[::ffff:127.0.0.1]/"));
}

TEST(url_rules_test, AnyMatchingRuleIsEnough) {
  const auto all = rules({"https://a.com/in", "https://b.com"});
  EXPECT_TRUE(all.check("https://b.com/x"));
  EXPECT_TRUE(all.check("https://a.com/in"));
  EXPECT_FALSE(all.check("https://a.com/x"));
  EXPECT_EQ(all.allowed("https://b.com/x?y")->target(), "/x?y");
}

TEST(url_rules_test, AnInvalidRuleIsNamedByItsNumberAndFault) {
  EXPECT_NE(why_no_rule("https://*/").find("rule 2"), std::string::npos);
  EXPECT_NE(why_no_rule("https://*/").find("star"), std::string::npos);
  EXPECT_NE(why_no_rule("https://a.*.com/").find("star"), std::string::npos);
  EXPECT_NE(why_no_rule("https://*.*.com/").find("star"), std::string::npos);
  EXPECT_NE(why_no_rule("https://*a.com/").find("star"), std::string::npos);
  EXPECT_NE(why_no_rule("https://*.127.0.0.1/").find("address"), std::string::npos);
  EXPECT_NE(why_no_rule("https://a.com/?x").find("query"), std::string::npos);
  EXPECT_NE(why_no_rule("https://a.com/..").find("segment"), std::string::npos);
  EXPECT_NE(why_no_rule("a.com").find("https://"), std::string::npos);
  EXPECT_FALSE(url_rules::parse(std::vector<std::string>(1001, "https://a.com")));
}

}  // namespace
}  // namespace sluice::jobs::url_rules_test
