// Parts of requests and answers that need no socket: headers, targets, routes, problems.
#include "jobs/http/detail/request.hpp"

#include <gtest/gtest.h>

#include <set>

#include "jobs/http/detail/response.hpp"
#include "jobs/http/detail/router.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http::request_test {
namespace {

using namespace std::chrono_literals;

TEST(MediaType, IsReadWithoutItsParametersAndInAnyCase) {
  EXPECT_EQ(media_of("application/json"), media::json);
  EXPECT_EQ(media_of(" Application/JSON ; charset=utf-8"), media::json);
  EXPECT_EQ(media_of("application/x-ndjson"), media::ndjson);
  EXPECT_EQ(media_of("application/jsonl"), media::ndjson);
  EXPECT_EQ(media_of(""), media::none);
  EXPECT_EQ(media_of(" ; x"), media::none);
  EXPECT_EQ(media_of("application/x-www-form-urlencoded"), media::form);
  EXPECT_EQ(media_of("text/json"), media::other);
}

TEST(OriginHeader, IsOwnWithTheSchemeTheHostAndThePortOfTheRequest) {
  EXPECT_TRUE(is_own_origin("http://localhost:7433", "http", "localhost:7433"));
  EXPECT_TRUE(is_own_origin("https://127.0.0.1", "https", "127.0.0.1:443"));
  EXPECT_TRUE(is_own_origin("http://[::1]", "http", "[::1]:80"));
  for (const std::string_view other :
       {"https://evil.example", "null", "", "://", "http://", "http://localhost.evil.example:7433",
        "https://localhost:7433", "http://localhost", "http://[::1]:7433"}) {
    EXPECT_FALSE(is_own_origin(other, "http", "localhost:7433")) << other;
    EXPECT_FALSE(is_own_origin(other, "http", "")) << other;
  }
}

TEST(PreferHeader, MayHaveAWait) {
  EXPECT_EQ(prefer_wait("wait=5"), 5s);
  EXPECT_EQ(prefer_wait("respond-async, WAIT = 10"), 10s);
  EXPECT_EQ(prefer_wait("wait=250ms"), 250ms);
  EXPECT_EQ(prefer_wait("wait=soon, wait=1"), 1s);
  for (const std::string_view value : {"", ",", "wait", "wait=", "wait=-1", "awaits=1", "=,=,"}) {
    EXPECT_EQ(prefer_wait(value), std::nullopt) << value;
  }
}

TEST(HostHeader, IsForeignWhenItNamesAnotherHost) {
  for (const std::string_view host :
       {"", "localhost", "LocalHost:1", "127.0.0.1:7433", "[::1]:80", "10.0.0.1"}) {
    EXPECT_FALSE(is_foreign_host(host)) << host;
  }
  for (const std::string_view host :
       {"evil.example", "localhost.evil.example:7433", "127.0.0.1.x"}) {
    EXPECT_TRUE(is_foreign_host(host)) << host;
  }
  const std::vector<std::string> own = {"one.example", "two.example:8443"};
  EXPECT_FALSE(is_foreign_host("one.example:7433", own));
  EXPECT_FALSE(is_foreign_host("two.example", own));
  EXPECT_TRUE(is_foreign_host("three.example", own));
}

TEST(PercentEncoding, IsReversible) {
  EXPECT_EQ(percent_decode("a%2Fb%20c+d", false), "a/b c+d");
  EXPECT_EQ(percent_decode("a+b", true), "a b");
  for (const std::string_view text : {"%", "%1", "%zz", "a%2", "%-1", "%+1"}) {
    EXPECT_EQ(percent_decode(text, false), std::nullopt) << text;
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(percent_decode(percent_encode(all), true), all);
}

TEST(Routes, AreFoundByMethodAndPath) {
  const routed push = find_route(method::post, "/v1/jobs");
  ASSERT_NE(push.target, nullptr);
  EXPECT_EQ(push.target->path, "/v1/jobs");
  const routed ack = find_route(method::post, "/v1/jobs/42/ack");
  ASSERT_NE(ack.target, nullptr);
  EXPECT_EQ(ack.id, 42U);
  EXPECT_EQ(ack.target->while_closing, closing_rule::of_workers);
  EXPECT_EQ(find_route(method::get, "/v1/queues/a%2Fb").name, "a/b");
  EXPECT_EQ(find_route(method::head, "/metrics").target,
            find_route(method::get, "/metrics").target);
}

TEST(Routes, LeadToTheirOwnHandlers) {
  std::set<std::pair<method, std::string_view>> seen;
  for (const route& r : routes()) {
    EXPECT_TRUE(seen.emplace(r.method, r.path).second) << r.path << " is repeated";
    std::string path(r.path);
    if (const auto id = path.find("{id}"); id != std::string::npos) path.replace(id, 4, "7");
    if (const auto name = path.find("{name}"); name != std::string::npos)
      path.replace(name, 6, "q");
    EXPECT_EQ(find_route(r.method, path).target, &r) << path;
  }
}

TEST(Routes, ListTheirMethods) {
  const routed wrong = find_route(method::patch, "/v1/jobs");
  EXPECT_EQ(wrong.target, nullptr);
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.allow, "POST, GET, HEAD, OPTIONS");
  EXPECT_EQ(find_route(method::options, "/v1/leases").status, 204);
  EXPECT_EQ(find_route(method::options, "*").status, 204);
  EXPECT_EQ(find_route(method::get, "*").status, 400);
  EXPECT_EQ(find_route(method::get, "").status, 400);
}

TEST(Problems, HaveAStatusForEveryCode) {
  for (int i = 0; i <= static_cast<int>(error_code::unavailable); ++i) {
    const auto code = static_cast<error_code>(i);
    const problem_parts p = make_problem({code, "why"});
    EXPECT_GE(p.status, 400);
    EXPECT_NE(reason_of(p.status), "Unknown");
    const auto read = json::read<json::problem>(p.body);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->error.code, code);
    EXPECT_EQ(p.headers.find("Retry-After") != std::string::npos, p.status == 503)
        << to_string(code);
  }
  for (const error_code code : {error_code::queue_full, error_code::overloaded,
                                error_code::disk_full, error_code::shutting_down}) {
    EXPECT_EQ(status_of(code), 503);
  }
}

TEST(Responses, AreWrittenAsHttpHasThem) {
  std::string out;
  append_response(out, {.status = 201, .type = json_type, .body = "{}", .headers = "X: y\r\n"}, {});
  EXPECT_EQ(out,
            "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX: y\r\n"
            "Content-Length: 2\r\n\r\n{}");
  out.clear();
  append_response(out, {.status = 204}, {.date = "Date: d\r\n", .keeps_alive = false});
  EXPECT_EQ(out, "HTTP/1.1 204 No Content\r\nDate: d\r\nConnection: close\r\n\r\n");
  out.clear();
  append_response(out, {.status = 200, .type = json_type, .body = "{}"}, {.without_body = true});
  EXPECT_TRUE(out.ends_with("Content-Length: 2\r\n\r\n"));
}

TEST(Dates, AreThoseOfHttp) {
  EXPECT_EQ(format_http_date({784'111'777'000}), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_http_date({0}), "Thu, 01 Jan 1970 00:00:00 GMT");
}

}  // namespace
}  // namespace sluice::jobs::http::request_test
