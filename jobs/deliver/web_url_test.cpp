#include "jobs/deliver/web_url.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

#include <gtest/gtest.h>

#include <random>

namespace sluice::jobs::web_url_test {
namespace {

std::string why(std::string_view text) {
  const auto parsed = parse_web_url(text);
  EXPECT_FALSE(parsed) << text << " was taken";
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code, error_code::invalid);
  return parsed.error().message;
}

#define EXPECT_REFUSED(url, part) \
  EXPECT_NE(why(url).find(part), std::string::npos) << (url) << ": " << why(url)

TEST(web_url_test, ParsesAUrl) {
  const auto url = parse_web_url("https://hooks.example.com:8443/in/box?team=7&x=%20");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->protocol, web_url::scheme::https);
  EXPECT_EQ(url->host, "hooks.example.com");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->path, "/in/box");
  EXPECT_EQ(url->query, "?team=7&x=%20");
  EXPECT_EQ(url->target(), "/in/box?team=7&x=%20");
  EXPECT_EQ(url->authority(), "hooks.example.com:8443");
  EXPECT_EQ(url->origin(), "https://hooks.example.com:8443");
}

TEST(web_url_test, FillsInPortAndPath) {
  EXPECT_EQ(parse_web_url("http://a")->port, 80);
  EXPECT_EQ(parse_web_url("https://a")->port, 443);
  EXPECT_EQ(parse_web_url("https://a")->target(), "/");
  EXPECT_EQ(parse_web_url("https://a?x")->target(), "/?x");
  EXPECT_EQ(parse_web_url("https://a:443/")->authority(), "a");
  EXPECT_EQ(parse_web_url("http://a:443/")->authority(), "a:443");
}

TEST(web_url_test, LowersSchemeAndHostAndNothingElse) {
  const auto url = parse_web_url("HTTPS://Hooks.EXAMPLE.com/In?X=Y");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->origin(), "https://hooks.example.com");
  EXPECT_EQ(url->target(), "/In?X=Y");
}

TEST(web_url_test, ReadsAddresses) {
  EXPECT_EQ(parse_web_url("http://127.0.0.1:9000/in")->kind, web_url::host_kind::ipv4);
  const auto six = parse_web_url("http://[0:0:0:0:0:0:0:1]:9000/in");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->kind, web_url::host_kind::ipv6);
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->authority(), "[::1]:9000");
  EXPECT_EQ(parse_web_url("http://[::1]")->port, 80);
}

TEST(web_url_test, ShowsNoQuery) {
  EXPECT_EQ(parse_web_url("https://a/in?token=secret")->shown(), "https://a/in?...");
}

TEST(web_url_test, NamesTheInvalidPart) {
  EXPECT_REFUSED("", "empty");
  EXPECT_REFUSED("https://a/" + std::string(2048, 'x'), "longer than 2048 bytes");
  EXPECT_REFUSED("ftp://a/", "begin with https://");
  EXPECT_REFUSED("hooks.example.com/in", "begin with https://");
  EXPECT_REFUSED("//a/in", "begin with https://");
  EXPECT_REFUSED("http", "begin with https://");
  EXPECT_REFUSED("https:", "begin with https://");
  EXPECT_REFUSED("https:/a", "begin with https://");
  EXPECT_REFUSED("https:///in", "has no host");
  EXPECT_REFUSED("https://:80/in", "has no host");
  EXPECT_REFUSED("https://a:0/", "port");
  EXPECT_REFUSED("https://a:/", "port");
  EXPECT_REFUSED("https://a:65536/", "port");
  EXPECT_REFUSED("https://a:080/", "port");
  EXPECT_REFUSED("https://a:80x/", "port");
  EXPECT_REFUSED("https://a:-1/", "port");
  EXPECT_REFUSED("https://a/in#x", "fragment");
  EXPECT_REFUSED("https://a/in box", "byte 13 is white space");
  EXPECT_REFUSED("https://a/in\r\nX: y", "byte 13 is white space");
  EXPECT_REFUSED(std::string_view("https://a\0.b/", 13), "byte 10 is white space");
  EXPECT_REFUSED("https://b\xC3\xBC.de/", "byte 10");
}

TEST(web_url_test, RejectsHostsThatProgramsReadDifferently) {
  EXPECT_REFUSED("https://good.com@evil.com/", "user name");
  EXPECT_REFUSED("https://good.com:x@evil.com/", "user name");
  EXPECT_REFUSED("https://evil.com\\@good.com/", "backslash");
  EXPECT_REFUSED("https://evil.com\\.good.com/", "backslash");
  EXPECT_REFUSED("https://good.com%2eevil.com/", "escaped");
  EXPECT_REFUSED("https://%67ood.com/", "escaped");
  EXPECT_REFUSED("https://good.com./", "ends with a dot");
  EXPECT_REFUSED("https://good..com/", "empty part");
  EXPECT_REFUSED("https://.good.com/", "empty part");
  EXPECT_REFUSED("https://-good.com/", "hyphen");
  EXPECT_REFUSED("https://go*d.com/", "'*'");
  EXPECT_REFUSED("https://" + std::string(64, 'a') + ".com/", "63");
  EXPECT_REFUSED("http://127.1/", "IPv4");
  EXPECT_REFUSED("http://2130706433/", "IPv4");
  EXPECT_REFUSED("http://0x7f.1/", "IPv4");
  EXPECT_REFUSED("http://0x7f000001/", "IPv4");
  EXPECT_REFUSED("http://127.0.0.01/", "IPv4");
  EXPECT_REFUSED("http://127.0.0.256/", "IPv4");
  EXPECT_REFUSED("http://::1/", "IPv6");
  EXPECT_REFUSED("http://[::1/", "IPv6");
  EXPECT_REFUSED("http://[::1%25eth0]/", "IPv6");
  EXPECT_REFUSED("http://[127.0.0.1]/", "IPv6");
  EXPECT_REFUSED("http://[::1]x:80/", "IPv6");
}

TEST(web_url_test, RejectsPathsThatLeaveTheirFolder) {
  EXPECT_REFUSED("https://a/in/../admin", "segment");
  EXPECT_REFUSED("https://a/..", "segment");
  EXPECT_REFUSED("https://a/./in", "segment");
  EXPECT_REFUSED("https://a/in/%2e%2E/admin", "segment");
  EXPECT_REFUSED("https://a/in/.%2e/admin", "segment");
  EXPECT_REFUSED("https://a/in/..%2fadmin", "%2f");
  EXPECT_REFUSED("https://a/in/..%5Cadmin", "%5c");
  EXPECT_REFUSED("https://a/in%00", "%00");
  EXPECT_REFUSED("https://a/in%2", "two hexadecimal digits");
  EXPECT_REFUSED("https://a/in%zz", "two hexadecimal digits");
  EXPECT_TRUE(parse_web_url("https://a/in/..well/.hidden/x..y"));
  EXPECT_TRUE(parse_web_url("https://a/in?next=../x"));
}

// A parsed URL, written and parsed again, is the same, so it has one reading.
TEST(web_url_test, ParsedUrlsRoundTrip) {
  const auto seed = static_cast<unsigned>(sluice::testing::seed(sluice::testing::test_name(), 7));
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string bytes = "ab.:/@?#%2e5c[]\\*-_0x7 ";
  int taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = random() % 2 == 0 ? "http://" : "https://a";
    for (auto n = random() % 12; n > 0; --n) text += bytes[random() % bytes.size()];
    const auto url = parse_web_url(text);
    if (!url) continue;
    ++taken;
    const auto again = parse_web_url(url->origin() + url->target());
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(*again, *url) << text;
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace sluice::jobs::web_url_test
