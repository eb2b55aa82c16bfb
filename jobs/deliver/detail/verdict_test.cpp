#include "jobs/deliver/detail/verdict.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::detail::verdict_test {
namespace {

using namespace std::chrono_literals;

constexpr unix_time now{1'767'225'600'000};  // 2026-01-01T00:00:00Z, a Thursday
const web_url url = parse_web_url("https://a.example.com/in?key=secret").value();

verdict answered(int status, std::string body = {}, std::string type = {}) {
  return judge({.status = status, .content_type = std::move(type), .body = std::move(body)}, url,
               now);
}
const failure& failed(const verdict& v) {
  return std::get<failure>(v.report);
}

TEST(verdict_test, RetryAfterIsSecondsOrADate) {
  EXPECT_EQ(parse_retry_after("120", now), 2min);
  EXPECT_EQ(parse_retry_after(" 1 ", now), 1s);
  EXPECT_EQ(parse_retry_after("Thu, 01 Jan 2026 00:00:30 GMT", now), 30s);
}

TEST(verdict_test, RetryAfterIsAtMostADay) {
  EXPECT_EQ(parse_retry_after("86401", now), 24h);
  EXPECT_EQ(parse_retry_after("99999999999999999999999999", now), 24h);
  EXPECT_EQ(parse_retry_after("Fri, 01 Jan 2027 00:00:00 GMT", now), 24h);
}

TEST(verdict_test, AnInvalidRetryAfterIsIgnored) {
  for (const char* const text :
       {"", "0", "-5", "1.5", "soon", "5s", "Wed, 31 Dec 2025 23:59:59 GMT",
        "Thu, 01 Jan 2026 00:00:30 GMT and more", "Thu, 99 Jan 2026"}) {
    EXPECT_EQ(parse_retry_after(text, now), std::nullopt) << text;
  }
}

TEST(verdict_test, AMessageHasTheBeginningOfTheBodyAndNoQuery) {
  const verdict v = answered(500, std::string(510, 'a') + "\xC3\xBC" + std::string(10, 'b'));
  EXPECT_TRUE(failed(v).message.ends_with("aa\xC3\xBC ...")) << failed(v).message;
  EXPECT_EQ(failed(v).message.find("secret"), std::string::npos);
  const verdict inside = answered(500, std::string(511, 'a') + "\xC3\xBC");
  EXPECT_TRUE(failed(inside).message.ends_with("aa ...")) << failed(inside).message;
  EXPECT_EQ(failed(answered(404)).message, "https://a.example.com/in?... answered 404");
}

TEST(verdict_test, AReceiverThatRejectsAJobWorks) {
  EXPECT_EQ(answered(200).receiver, verdict::receiver_state::works);
  EXPECT_EQ(answered(404).receiver, verdict::receiver_state::works);
  EXPECT_EQ(answered(500).receiver, verdict::receiver_state::fails);
  EXPECT_EQ(judge({.cause = outgoing_end::fault::timed_out}, url, now).receiver,
            verdict::receiver_state::fails);
  EXPECT_EQ(judge({.cause = outgoing_end::fault::cancelled}, url, now).receiver,
            verdict::receiver_state::unknown);
}

TEST(verdict_test, OnlyABusyReceiverPausesByRetryAfter) {
  const auto pause = [](int status) {
    return judge({.status = status, .retry_after = "9"}, url, now).pause;
  };
  EXPECT_EQ(pause(429), 9s);
  EXPECT_EQ(pause(503), 9s);
  EXPECT_EQ(pause(500), 0s);
  EXPECT_EQ(pause(404), 0s);
}

TEST(verdict_test, OnlyAJsonResponseIsAResult) {
  const auto result = [](std::string type) {
    return std::get<delivery_ack>(answered(200, "{}", std::move(type)).report).result.has_value();
  };
  EXPECT_TRUE(result("application/json"));
  EXPECT_TRUE(result("application/json ; charset=utf-8"));
  EXPECT_TRUE(result("application/vnd.mine+json"));
  EXPECT_FALSE(result("text/json"));
  EXPECT_FALSE(result("application/jsonp"));
  EXPECT_FALSE(result(""));
}

}  // namespace
}  // namespace sluice::jobs::detail::verdict_test
