#include "jobs/client/client.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <string>
#include <vector>

#include "jobs/http/testing/scripted_server.hpp"
#include "jobs/json/codec.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::client_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;
using testing::answer;
using testing::received;
using testing::reply_bytes;
using testing::scripted_server;

client open(const scripted_server& server, client_options o = {}) {
  o.url = server.url();
  return client::open(std::move(o)).value();
}

reply_bytes problem(error_code code, int status, std::string message, job_id job = 0) {
  const json::problem p{.status = status, .title = "Title", .error = {code, message, job}};
  return answer(status, json::to_json(p), "Content-Type: application/problem+json\r\n");
}

// ---- requests and responses

TEST(Client, PushesAJobAndReadsTheReceipt) {
  const scripted_server server([](const received&) { return answer(201, R"({"id":42})"); });
  auto c = open(server, {.user_agent = "test/1"});
  const job_spec spec{.queue = "mail",
                      .kind = "welcome",
                      .args = {R"({"to":"ada","n":12345678901234567890})"},
                      .priority = 5};
  const auto pushed = c.push(spec);
  ASSERT_TRUE(pushed) << pushed.error().message;
  EXPECT_EQ(pushed->id, 42U);
  EXPECT_EQ(pushed->outcome, push_receipt::fate::accepted);
  const auto sent = server.requests().at(0);
  EXPECT_EQ(sent.method, "POST");
  EXPECT_TRUE(sent.target.starts_with("/v1/jobs?wait=")) << sent.target;
  EXPECT_EQ(sent.header("user-agent"), "test/1");
  EXPECT_EQ(sent.header("content-type"), "application/json");
  EXPECT_EQ(json::read<job_spec>(sent.body).value(), spec);
}

TEST(Client, ReadsDuplicatesAndDroppedJobs) {
  const scripted_server server([](const received& r) {
    return r.number == 1 ? answer(200, R"({"id":41,"duplicate":true})")
                         : answer(202, R"({"dropped":true})");
  });
  auto c = open(server);
  const auto duplicate = c.push({.kind = "a"});
  EXPECT_EQ(duplicate->outcome, push_receipt::fate::duplicate);
  EXPECT_EQ(duplicate->id, 41U);
  EXPECT_EQ(c.push({.kind = "a"})->outcome, push_receipt::fate::dropped);
}

TEST(Client, PushesManyAndReadsOneResultForEach) {
  const scripted_server server([](const received&) {
    return answer(200, R"({"accepted":1,"results":[{"id":1},{"error":{"code":"queue_full",)"
                       R"("message":"full"}}]})");
  });
  auto c = open(server);
  const auto results = c.push_many({{.kind = "a"}, {.kind = "b"}}, bulk::all_or_nothing);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0]->id, 1U);
  EXPECT_EQ(results[1].error().code, error_code::queue_full);
  const auto call = json::read<json::push_call>(server.requests().at(0).body);
  EXPECT_EQ(call->jobs.size(), 2U);
  EXPECT_EQ(call->mode, bulk::all_or_nothing);
  EXPECT_TRUE(c.push_many({}).empty());
}

TEST(Client, ReturnsTheErrorOfTheWholeForEachOfMany) {
  const scripted_server server([](const received& r) {
    return r.number == 1 ? problem(error_code::disk_full, 507, "no room")
                         : answer(200, R"({"accepted":1,"results":[{"id":1}]})");
  });
  auto c = open(server);
  for (const auto& r : c.push_many({{.kind = "a"}, {.kind = "b"}})) {
    EXPECT_EQ(r.error().code, error_code::disk_full);
  }
  const auto short_answer = c.push_many({{.kind = "a"}, {.kind = "b"}});
  ASSERT_EQ(short_answer.size(), 2U);
  EXPECT_EQ(short_answer[1].error().code, error_code::unavailable);
  EXPECT_NE(short_answer[1].error().message.find("the response has results for 1 of 2 items"),
            std::string::npos);
}

TEST(Client, LeasesExtendsAcksFailsAndReleases) {
  const std::string job = R"({"id":7,"queue":"q","kind":"k","args":[1],"state":"running",)"
                          R"("attempts":1,"created_at":"2026-01-01T00:00:00.000Z")";
  const scripted_server server([&](const received& r) -> reply_bytes {
    if (r.target == "/v1/leases") {
      return answer(200, R"({"jobs":[)" + job +
                             R"(,"lease":99,"attempt":2,)"
                             R"("leased_until":"2026-01-01T00:01:00.000Z"}]})");
    }
    if (r.target == "/v1/jobs/7/extend") {
      return answer(200, R"({"leased_until":"2026-01-01T00:02:00.000Z","cancelled":true})");
    }
    if (r.target == "/v1/jobs/7/fail") {
      return answer(200, R"({"state":"retrying","next_at":"2026-01-01T00:03:00.000Z"})");
    }
    if (r.target == "/v1/acks") {
      return answer(200, R"({"results":[{},{"error":{"code":"lease_lost","message":"gone"}}]})");
    }
    return answer(204, "");
  });
  auto c = open(server);
  const auto leased = c.lease({.queues = {"q", "r"}, .max = 5, .worker = "w1", .lease_for = 10s});
  ASSERT_TRUE(leased) << leased.error().message;
  ASSERT_EQ(leased->size(), 1U);
  EXPECT_EQ(leased->front().ref(), (lease_ref{7, 99}));
  EXPECT_EQ(leased->front().attempt, 2U);
  EXPECT_EQ(leased->front().job->spec.args, payload{"[1]"});
  const auto call = json::read<json::lease_call>(server.requests().at(0).body).value();
  EXPECT_EQ(call.request.queues, (std::vector<std::string>{"q", "r"}));
  EXPECT_EQ(call.request.max, 5U);
  EXPECT_EQ(call.request.worker, "w1");
  EXPECT_EQ(call.request.lease_for, 10s);
  EXPECT_EQ(call.wait, 30s);

  EXPECT_TRUE(c.extend({7, 99}, 5s)->cancelled);
  EXPECT_TRUE(c.ack({7, 99}, payload{"\xFF", content_type::bytes}));
  EXPECT_EQ(json::read<json::ack_call>(server.requests().back().body)->result,
            (payload{"\xFF", content_type::bytes}));
  EXPECT_EQ(c.fail({7, 99}, {.type = "t", .message = "m"})->state, job_state::retrying);
  EXPECT_TRUE(c.release({7, 99}, {.delay = 5s}));
  EXPECT_EQ(json::read<json::release_call>(server.requests().back().body)->release.delay, 5s);
  const auto acked =
      c.ack_many({{.lease = {7, 99}, .result = {}}, {.lease = {8, 1}, .result = {}}});
  ASSERT_EQ(acked.size(), 2U);
  EXPECT_TRUE(acked[0]);
  EXPECT_EQ(acked[1].error().code, error_code::lease_lost);
}

TEST(Client, QueriesJobsAndQueues) {
  const std::string job = R"({"id":7,"queue":"q","kind":"k","args":1,"state":"done"})";
  const scripted_server server([&](const received& r) -> reply_bytes {
    if (r.target == "/v1/jobs/7" && r.method == "DELETE") return answer(204, "");
    if (r.target.starts_with("/v1/jobs/7")) return answer(200, job);
    if (r.target.starts_with("/v1/jobs?")) {
      return answer(200, R"({"jobs":[)" + job + R"(],"next":7})");
    }
    if (r.target.ends_with("/purge")) return answer(200, R"({"purged":3})");
    if (r.target == "/v1/queues") return answer(200, R"({"queues":[]})");
    if (r.target.starts_with("/v1/queues/")) {
      queue_info info{.name = "a/b", .options = {.paused = true}};
      return answer(200, json::to_json(info));
    }
    return answer(200, json::to_json(engine_stats{.pushed = 11}));
  });
  auto c = open(server);
  EXPECT_EQ(c.get(7)->state, job_state::done);
  EXPECT_EQ(c.wait(7)->state, job_state::done);
  EXPECT_EQ(c.cancel(7)->id, 7U);
  EXPECT_EQ(c.retry(7)->id, 7U);
  EXPECT_TRUE(c.remove(7));
  const auto page = c.list({.queue = "q", .state = job_state::dead, .kind = "a b&c", .after = 3});
  EXPECT_EQ(page->cursor, 7U);
  EXPECT_EQ(server.requests().back().target,
            "/v1/jobs?queue=q&state=dead&kind=a%20b%26c&after=3&limit=100");
  EXPECT_TRUE(c.queues()->empty());
  EXPECT_TRUE(c.queue("a/b")->options.paused);
  EXPECT_EQ(server.requests().back().target, "/v1/queues/a%2Fb");
  EXPECT_TRUE(c.configure("a/b", {.paused = true}));
  EXPECT_EQ(server.requests().back().method, "PATCH");
  EXPECT_EQ(server.requests().back().body, R"({"paused":true})");
  EXPECT_EQ(c.purge("q").value(), 3U);
  EXPECT_EQ(c.stats()->pushed, 11U);
}

TEST(Client, ReportsWhetherTheServerAcceptsPushes) {
  const scripted_server server([](const received& r) {
    return r.number == 1 ? answer(200, R"({"status":"ok"})")
                         : problem(error_code::disk_full, 503, "the disk is full");
  });
  auto c = open(server);
  EXPECT_TRUE(c.health()->takes_pushes);
  const auto full = c.health();
  ASSERT_TRUE(full);
  EXPECT_FALSE(full->takes_pushes);
  EXPECT_EQ(full->code, error_code::disk_full);
  EXPECT_EQ(full->reason, "the disk is full");
}

TEST(Client, ConvertsLeaseTimesToItsOwnClock) {
  manual_time time;  // 2026-01-01T00:00:00Z; the server's clock is an hour ahead
  const scripted_server server([](const received&) {
    return answer(200, R"({"leased_until":"2026-01-01T01:01:00.000Z"})",
                  "Date: Thu, 01 Jan 2026 01:00:00 GMT\r\n");
  });
  auto c = open(server, {.time = &time});
  EXPECT_EQ(c.extend({1, 1})->until, time.now() + 60s);
}

// ---- errors

TEST(Client, ReturnsTheServersErrorsUnchanged) {
  constexpr error_code all[] = {
      error_code::invalid,    error_code::too_large,     error_code::not_found,
      error_code::duplicate,  error_code::wrong_state,   error_code::lease_lost,
      error_code::queue_full, error_code::shutting_down, error_code::overloaded,
      error_code::disk_full,  error_code::io_error,      error_code::locked,
      error_code::corrupt};
  const scripted_server server([&](const received& r) {
    return problem(all[r.number - 1], 409, "because of " + std::to_string(r.number), 17);
  });
  auto c = open(server);
  for (int i = 0; i < static_cast<int>(std::size(all)); ++i) {
    const auto got = c.get(1);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, all[i]);
    EXPECT_EQ(got.error().message, "because of " + std::to_string(i + 1));
    EXPECT_EQ(got.error().job, 17U);
  }
}

TEST(Client, ReportsAnInvalidResponseAsUnavailable) {
  const std::vector<reply_bytes> nonsense = {
      answer(200, "<html>hello</html>"),    answer(200, ""),
      answer(500, "Internal Server Error"), answer(200, R"({"id":"seven"})"),
      {"SSH-2.0-OpenSSH_9.2\r\n\r\n"},      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"},
      {std::string("\0\xFF\xFE", 3)}};
  const scripted_server server([&](const received& r) -> reply_bytes {
    if (r.number > 1) return testing::no_answer();
    return nonsense[static_cast<std::size_t>(std::stoi(r.target.substr(9)))];
  });
  for (std::size_t i = 0; i < nonsense.size(); ++i) {
    auto c = open(server, {.answer_timeout = 500ms});
    const auto got = c.get(i);
    ASSERT_FALSE(got) << i;
    EXPECT_EQ(got.error().code, error_code::unavailable) << got.error().message;
    EXPECT_NE(got.error().message.find(server.url()), std::string::npos) << got.error().message;
  }
}

TEST(Client, NamesTheUrlAndTheCauseWithoutAServer) {
  std::string url;
  {
    const scripted_server server([](const received&) { return testing::no_answer(); });
    url = server.url();
  }
  auto c = client::open({.url = url}).value();
  const auto got = c.push({.kind = "a"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, error_code::unavailable);
  EXPECT_EQ(got.error().message,
            "the job server at " + url + ": cannot connect: Connection refused");
}

TEST(Client, RejectsAResponseThatIsTooLarge) {
  const scripted_server server(
      [](const received&) { return answer(200, std::string(10'000, ' ')); });
  auto c = open(server, {.answer_bytes_max = 1000});
  const auto got = c.get(1);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, error_code::unavailable);
  EXPECT_NE(got.error().message.find("body limit"), std::string::npos) << got.error().message;
}

TEST(Client, AcceptsValidUrlsAndReportsInvalidOnes) {
  EXPECT_EQ(client::open({.url = "http://jobs.internal/behind/"})->url(),
            "http://jobs.internal/behind");
  EXPECT_EQ(client::open({.url = "http://[::1]:7433"})->url(), "http://[::1]:7433");
  const std::pair<const char*, const char*> wrong[] = {
      {"ftp://jobs.internal", "http:// or https://"},
      {"jobs.internal:7433", "does not begin with http://"},
      {"http://", "has no host"},
      {"http://:80", "has no host"},
      {"http://a:0", "port is not a number"},
      {"http://a:65536", "port is not a number"},
      {"http://a:", "port is not a number"},
      {"http://a:80x", "port is not a number"},
      {"http://::1:80", "IPv6 address needs brackets"},
      {"http://me:secret@a", "user name"},
      {"http://a/?x=1", "query"},
      {"http://a b", "white space"},
      {"http://a\r\nX: y", "white space"}};
  for (const auto& [url, why] : wrong) {
    const auto opened = client::open({.url = url});
    ASSERT_FALSE(opened) << url;
    EXPECT_EQ(opened.error().code, error_code::invalid);
    EXPECT_NE(opened.error().message.find(why), std::string::npos) << opened.error().message;
  }
}

TEST(Client, FindsTheServerByTheEnvironment) {
  setenv("SLUICE_URL", "http://127.0.0.9:1234", 1);
  EXPECT_EQ(client::open()->url(), "http://127.0.0.9:1234");
  unsetenv("SLUICE_URL");
  EXPECT_EQ(client::open()->url(), "http://127.0.0.1:7433");
}

TEST(Client, PutsThePrefixOfItsUrlBeforeEveryPath) {
  const scripted_server server([](const received&) { return answer(200, R"({"queues":[]})"); });
  auto c = client::open({.url = server.url() + "/jobs"}).value();
  EXPECT_TRUE(c.queues());
  EXPECT_EQ(server.requests().at(0).target, "/jobs/v1/queues");
}

}  // namespace
}  // namespace sluice::jobs::client_test
