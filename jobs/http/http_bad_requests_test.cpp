// Invalid requests get clear errors, and affect no other request.
#include <gtest/gtest.h>

#include "jobs/http/testing/http_fixture.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::http_bad_requests_test {
namespace {

using namespace std::chrono_literals;
using testing::reply;
using testing::wire;

class HttpBadRequest : public testing::HttpTest {
 protected:
  std::string refused(std::string_view body) {
    return problem_of(ask("POST", "/v1/jobs", body), 400, error_code::invalid);
  }
};

TEST_F(HttpBadRequest, GetsThePositionOfItsJsonError) {
  start();
  EXPECT_EQ(refused("{\"kind\":\"a\",\n \"args\": [1,}"),
            "line 2, column 13: expected a value: an object, an array, a string, a number, true, "
            "false or null; found '}'");
  EXPECT_EQ(refused(R"({"kind":7})"), "kind: expected a string, found a number (line 1, column 9)");
  EXPECT_EQ(refused(R"({"kind":"a","prio":7})"),
            "line 1, column 13: unknown field \"prio\"; did you mean \"priority\"?");
  EXPECT_EQ(
      refused(R"({"jobs":[{"kind":"a"},{"kind":"b","retry":{"factor":"x"}}]})"),
      "jobs[1].retry.factor: expected a number from 1 to 1000, found a string (line 1, column "
      "53)");
  EXPECT_EQ(refused("{\"kind\":\"a\xFF\"}"), "line 1, column 11: these bytes are not UTF-8");
  EXPECT_EQ(refused(R"({"kind":"a","kind":"b"})"), "kind: duplicate field (line 1, column 13)");
  EXPECT_EQ(refused("{\"kind\":\"a\",\"args\":" + std::string(5000, '[') + "}"),
            "line 1, column 119: nested deeper than 100 levels");
  EXPECT_EQ(refused(""), "line 1, column 1: expected an object, found the end of the text");
  EXPECT_EQ(refused("[]x"),
            "line 1, column 3: expected the end of the text after the value, found 'x'");
  EXPECT_EQ(refused(R"({"kind":"a","priority":99999999999999999999})"),
            "priority: expected a whole number from -4294967296 to 4294967296, found "
            "99999999999999999999 (line 1, column 24)");
}

TEST_F(HttpBadRequest, GetsTheErrorOfTheEngine) {
  start();
  EXPECT_EQ(refused(R"({"kind":""})"), "kind must not be empty: it selects the handler of the job");
  EXPECT_NE(refused(R"({"kind":"k","queue":"a b"})").find("queue"), std::string::npos);
  const std::string args(limits::args_bytes_max, 'x');
  problem_of(ask("POST", "/v1/jobs", R"({"kind":"k","args":")" + args + "\"}"), 413,
             error_code::too_large);
}

TEST_F(HttpBadRequest, GetsTheNameOfTheInvalidParameter) {
  start();
  const auto why = [&](std::string_view target) {
    return problem_of(ask("GET", target), 400, error_code::invalid);
  };
  EXPECT_EQ(why("/v1/jobs?limit=0"),
            "the parameter 'limit': expected a whole number from 1 to 1000");
  EXPECT_NE(why("/v1/jobs?after=x").find("after"), std::string::npos);
  EXPECT_NE(why("/v1/jobs?state=asleep").find("state"), std::string::npos);
  EXPECT_EQ(why("/v1/jobs?colour=red"),
            "unknown parameter 'colour' in the query; known are queue, "
            "state, kind, batch, after, limit");
  EXPECT_NE(why("/v1/jobs?limit=1&limit=2").find("repeated"), std::string::npos);
  EXPECT_NE(why("/v1/jobs?kind=%zz").find("%"), std::string::npos);
  EXPECT_NE(why("/v1/jobs/1?wait=soon").find("wait"), std::string::npos);
  EXPECT_NE(why("/v1/queues?x=1").find("this route takes none"), std::string::npos);
  EXPECT_NE(why("/v1/queues/a%20b").find("the name of a queue"), std::string::npos);
  EXPECT_NE(
      problem_of(ask("POST", "/v1/jobs?mode=some", "[]"), 400, error_code::invalid).find("mode"),
      std::string::npos);
}

TEST_F(HttpBadRequest, HasAnUnknownPath) {
  start();
  for (const std::string_view target :
       {"/nothing", "/v1", "/v1/", "/v1/jobs/", "/v1/jobs/1/", "/v1/jobs/1/explode", "/v2/jobs",
        "/v1/jobs/x", "/v1/jobs/-1", "/v1/jobs/99999999999999999999", "//", "/v1/queues//pause",
        "/healthz/", "/%2e%2e/etc/passwd"}) {
    problem_of(ask("GET", target), 404, error_code::not_found);
  }
  problem_of(ask("GET", "/v1/jobs/7"), 404, error_code::not_found);
}

TEST_F(HttpBadRequest, HasTheWrongMethod) {
  start();
  const reply r = ask("DELETE", "/v1/jobs");
  EXPECT_NE(problem_of(r, 405, error_code::invalid).find("DELETE"), std::string::npos);
  EXPECT_EQ(r.header("allow"), "POST, GET, HEAD, OPTIONS");
  EXPECT_EQ(ask("PUT", "/v1/jobs/1", "{}").header("allow"), "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(ask("GET", "/v1/leases").status, 405);
  EXPECT_EQ(ask("BREW", "/healthz").status, 405);
}

TEST_F(HttpBadRequest, LacksALengthOrAType) {
  start();
  problem_of(
      send("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n"),
      411, error_code::invalid);
  const std::string_view job = R"({"kind":"k"})";
  for (const std::string_view type : {"text/plain", "multipart/form-data", "json"}) {
    const auto why =
        problem_of(ask("POST", "/v1/jobs", job, "Content-Type: " + std::string(type) + "\r\n"), 415,
                   error_code::invalid);
    EXPECT_NE(why.find("application/json"), std::string::npos);
  }
  problem_of(ask("POST", "/v1/leases", "{}", "Content-Type: application/x-ndjson\r\n"), 415,
             error_code::invalid);
  EXPECT_EQ(
      ask("POST", "/v1/jobs", job, "Content-Type: Application/JSON; charset=utf-8\r\n").status,
      201);
}

// `curl -d` sends the content type of a form.
TEST_F(HttpBadRequest, MayOmitTheJsonContentType) {
  start();
  for (const std::string_view type : {"application/x-www-form-urlencoded", ""}) {
    const std::string header = "Content-Type: " + std::string(type) + "\r\n";
    EXPECT_EQ(ask("POST", "/v1/jobs", R"({"kind":"k"})", header).status, 201) << type;
  }
}

TEST_F(HttpBadRequest, ComesFromAPageOfAnotherSite) {
  start();
  for (const std::string_view origin : {"https://evil.example", "null"}) {
    const std::string header = "Origin: " + std::string(origin) + "\r\n";
    problem_of(ask("POST", "/v1/jobs", R"({"kind":"k"})", header), 403, error_code::invalid);
    problem_of(ask("POST", "/v1/queues/default/purge", "", header), 403, error_code::invalid);
  }
  EXPECT_EQ(ask("POST", "/v1/jobs", R"({"kind":"k"})", "Origin: http://localhost\r\n").status, 201);
}

// A foreign web page can make its own name resolve to this machine (DNS rebinding); it cannot forge
// the Host header.
TEST_F(HttpBadRequest, ComesFromAPageThatReboundItsName) {
  start();
  problem_of(send("GET /v1/jobs HTTP/1.1\r\nHost: evil.example:7433\r\n\r\n"), 421,
             error_code::invalid);
  for (const std::string_view host : {"localhost:7433", "127.0.0.1", "[::1]:7433", "LOCALHOST"}) {
    EXPECT_EQ(send("GET /v1/jobs HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n").status, 200);
  }
}

TEST_F(HttpBadRequest, IsTooLong) {
  start({.head_bytes_max = 2000, .body_bytes_max = 5000});
  problem_of(ask("POST", "/v1/jobs", R"({"kind":")" + std::string(6000, 'k') + "\"}"), 413,
             error_code::too_large);
  problem_of(send("GET /" + std::string(3000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 414,
             error_code::too_large);
  problem_of(
      send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(3000, 'x') + "\r\n\r\n"),
      431, error_code::too_large);
  std::string many = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 500; ++i) many += "X" + std::to_string(i) + ": y\r\n";
  problem_of(send(many + "\r\n"), 431, error_code::too_large);
  // Without Content-Length, it is detected while the body arrives.
  std::string chunked =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n";
  for (int i = 0; i < 10; ++i) chunked += "3e8\r\n" + std::string(1000, ' ') + "\r\n";
  problem_of(send(chunked + "0\r\n\r\n"), 413, error_code::too_large);
}

TEST_F(HttpBadRequest, HasALineOrAStreamThatIsTooLong) {
  start({.stream_bytes_max = 8u << 20, .stream_jobs_max = 10});
  const std::string type = "Content-Type: application/x-ndjson\r\n";
  std::string eleven;
  for (int i = 0; i < 11; ++i) eleven += "{\"kind\":\"k\"}\n";
  const reply r = ask("POST", "/v1/jobs", eleven, type);
  EXPECT_EQ(r.header("connection"), "close");
  const auto why = problem_of(r, 413, error_code::too_large);
  EXPECT_EQ(why, "more than 10 jobs in one request; 0 jobs before it were pushed");
  const auto line = problem_of(ask("POST", "/v1/jobs", std::string(6u << 20, ' '), type), 413,
                               error_code::too_large);
  EXPECT_NE(line.find("line 1 is longer than"), std::string::npos);
  problem_of(ask("POST", "/v1/jobs", std::string(9u << 20, '\n'), type), 413,
             error_code::too_large);
}

TEST_F(HttpBadRequest, HasMoreThanAThousandWrongLines) {
  start();
  std::string lines = "{\"kind\":\"k\"}\n";
  for (int i = 0; i < 1001; ++i) lines += "x\n";
  const reply r = ask("POST", "/v1/jobs", lines, "Content-Type: application/x-ndjson\r\n");
  EXPECT_EQ(r.header("connection"), "close");
  const auto why = problem_of(r, 400, error_code::invalid);
  EXPECT_NE(why.find("more than 1000 lines are invalid, the last: line 1002"), std::string::npos)
      << why;
  EXPECT_NE(why.find("1 jobs before it were pushed"), std::string::npos) << why;
}

TEST_F(HttpBadRequest, IsNotHttp) {
  start();
  for (const std::string_view bytes :
       {"hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: "
        "chunked\r\n\r\n"}) {
    EXPECT_NE(problem_of(send(bytes), 400, error_code::invalid).find("not HTTP/1.1"),
              std::string::npos)
        << bytes;
  }
  problem_of(send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505, error_code::invalid);
  problem_of(send("GET relative HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400, error_code::invalid);
}

TEST_F(HttpBadRequest, HasABadChunk) {
  start();
  problem_of(send("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "application/json\r\nTransfer-Encoding: "
                  "chunked\r\n\r\nzz\r\n{}\r\n"),
             400, error_code::invalid);
}

TEST_F(HttpBadRequest, ExpectsSomethingElse) {
  start();
  problem_of(ask("POST", "/v1/jobs", "{}", "Expect: a miracle\r\n"), 417, error_code::invalid);
}

// After a refused request with a complete body, the connection serves the next request.
TEST_F(HttpBadRequest, LeavesItsConnectionUsable) {
  start();
  wire w = connect();
  w.request("POST", "/nothing", R"({"kind":"k"})");
  problem_of(w.receive(), 404, error_code::not_found);
  w.request("POST", "/v1/jobs", "{");
  problem_of(w.receive(), 400, error_code::invalid);
  w.request("POST", "/v1/jobs", "x", "Content-Type: text/plain\r\n");
  problem_of(w.receive(), 415, error_code::invalid);
  w.request("POST", "/v1/jobs", R"({"kind":"k"})");
  EXPECT_EQ(w.receive().status, 201);
}

TEST_F(HttpBadRequest, IsAnsweredEvenWhileItsBodyArrives) {
  start({.body_bytes_max = 1000});
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: "
      "900000000\r\n\r\n");
  w.send(std::string(100'000, 'x'));
  const reply r = w.receive();
  problem_of(r, 413, error_code::too_large);
  EXPECT_EQ(r.header("connection"), "close");
  EXPECT_TRUE(w.ends());
}

// ---- anything

TEST_F(HttpBadRequest, IsMadeOfRandomBytes) {
  start({.linger_time = 50ms});
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 4711);
  constexpr int rounds = 400;
  random chance(seed);
  int answered = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes;
    for (std::uint32_t n = chance.below(600); n > 0; --n) {
      bytes += static_cast<char>(chance.below(256));
    }
    wire w = connect();
    w.send(bytes);
    w.half_close();
    while (true) {
      const reply r = w.receive();
      if (r.status == 0) break;
      EXPECT_GE(r.status, 400);
      ++answered;
    }
  }
  std::printf("seed %llu, %d connections, %d answers\n", static_cast<unsigned long long>(seed),
              rounds, answered);
  EXPECT_GT(answered, 0);
}

TEST_F(HttpBadRequest, IsAValidOneWithSomeBytesChanged) {
  start({.linger_time = 50ms});
  const std::string good =
      "POST /v1/jobs?wait=1s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 37\r\nPrefer: wait=1\r\n\r\n{\"kind\":\"mail\",\"args\":{\"to\":\"ada\"}}  ";
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 815);
  constexpr int rounds = 1500;
  random chance(seed);
  std::map<int, int> statuses;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes = good;
    for (std::uint32_t n = 1 + chance.below(3); n > 0; --n) {
      const std::size_t at = chance.below(static_cast<std::uint32_t>(bytes.size()));
      if (chance.below(2) == 0) {
        bytes[at] = static_cast<char>(chance.below(256));
      } else {
        bytes.erase(at, 1 + chance.below(4));
      }
    }
    wire w = connect();
    w.send(bytes);
    w.half_close();
    for (reply r = w.receive(); r.status != 0; r = w.receive()) ++statuses[r.status];
    ASSERT_FALSE(HasFailure()) << ::testing::PrintToString(bytes);
  }
  std::printf("seed %llu, %d requests:", static_cast<unsigned long long>(seed), rounds);
  for (const auto& [status, count] : statuses) std::printf(" %d x %d", count, status);
  std::printf("\n");
  EXPECT_FALSE(statuses.contains(500));
  EXPECT_GT(statuses[201], 0);
  EXPECT_GT(statuses[400], 0);
}

}  // namespace
}  // namespace sluice::jobs::http_bad_requests_test
