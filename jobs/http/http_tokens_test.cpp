// Tokens: rights, and the replies to requests without them.
#include <gtest/gtest.h>

#include <chrono>

#include "jobs/http/detail/router.hpp"
#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_tokens_test {
namespace {

using testing::reply;

class HttpTokens : public testing::HttpTest {
 protected:
  void serve(http_server_options o = {}) {
    o.tokens = tokens_;
    o.time = &time_;
    o.wrong_token_delay = milliseconds(0);
    start(std::move(o));
  }
  std::string token(role_set roles, std::vector<std::string> queues = {}) {
    return "Authorization: Bearer " + text(roles, std::move(queues)) + "\r\n";
  }
  std::string text(role_set roles, std::vector<std::string> queues = {}) {
    return tokens_.create({.name = "t", .roles = roles, .queues = std::move(queues)}, time_.now())
        .value()
        .text;
  }
  std::uint64_t push_to(std::string_view queue) {
    return jobs().push({.queue = std::string(queue), .kind = "k"}).get().value().id;
  }

  manual_time time_;
  token_set tokens_;
};

TEST_F(HttpTokens, AreRequiredByEveryRouteExceptHealth) {
  token({role::admin});
  serve();
  for (const http::route& r : http::routes()) {
    std::string path(r.path);
    if (const auto at = path.find("{id}"); at != std::string::npos) path.replace(at, 4, "1");
    if (const auto at = path.find("{name}"); at != std::string::npos) path.replace(at, 6, "q");
    const reply got = ask(to_string(r.method), path, r.method == http::method::get ? "" : "{}");
    if (path == "/healthz" || path == "/readyz") {
      EXPECT_EQ(got.status, 200) << path;
      continue;
    }
    const std::string why = problem_of(got, 401, error_code::unauthenticated);
    EXPECT_NE(why.find("Authorization: Bearer"), std::string::npos) << path;
    EXPECT_EQ(got.header("www-authenticate"), "Bearer");
  }
}

TEST_F(HttpTokens, WithTheRoleAllowTheRequestAndOnlyThen) {
  std::map<role, std::string> headers;
  for (const role r : all_roles) headers[r] = token({r});
  serve();
  for (const http::route& r : http::routes()) {
    if (r.needs == http::access::open) continue;
    std::string path(r.path);
    if (const auto at = path.find("{id}"); at != std::string::npos) path.replace(at, 4, "1");
    if (const auto at = path.find("{name}"); at != std::string::npos) path.replace(at, 6, "q");
    for (const role held : all_roles) {
      const reply got =
          ask(to_string(r.method), path, r.method == http::method::get ? "" : "[]", headers[held]);
      const bool allowed = held == role::admin || held == role_of(r.needs);
      EXPECT_EQ(got.status == 403, !allowed)
          << to_string(r.method) << " " << path << " as " << to_string(held) << ": " << got.body;
      EXPECT_NE(got.status, 401);
    }
  }
}

TEST_F(HttpTokens, NeedRolesAsDocumented) {
  using http::access;
  for (const http::route& r : http::routes()) {
    if (r.path == "/healthz" || r.path == "/readyz") {
      EXPECT_EQ(r.needs, access::open) << r.path;
    } else if (r.method == http::method::get) {
      EXPECT_EQ(r.needs, access::read) << r.path;
    } else {
      EXPECT_NE(r.needs, access::open) << r.path;
      EXPECT_NE(r.needs, access::read) << r.path;
    }
  }
}

TEST_F(HttpTokens, ThatLackARoleGetItsName) {
  const std::string header = token({role::read});
  serve();
  const std::string why =
      problem_of(ask("POST", "/v1/queues/q/purge", "", header), 403, error_code::forbidden);
  EXPECT_NE(why.find("role admin"), std::string::npos) << why;
  EXPECT_NE(why.find("has read"), std::string::npos) << why;
}

TEST_F(HttpTokens, ThatAreWrongEndTheConnectionAndAreAnsweredLate) {
  token({role::admin});
  http_server_options o;
  o.tokens = tokens_;
  o.wrong_token_delay = milliseconds(50);
  start(std::move(o));
  const auto began = std::chrono::steady_clock::now();
  auto w = connect();
  w.request("GET", "/v1/queues", "",
            "Authorization: Bearer slk_00000000_" + std::string(43, 'a') + "\r\n");
  w.request("GET", "/healthz");
  const reply got = w.receive();
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(50));
  problem_of(got, 401, error_code::unauthenticated);
  EXPECT_EQ(got.header("www-authenticate"), "Bearer error=\"invalid_token\"");
  EXPECT_EQ(got.header("connection"), "close");
  EXPECT_TRUE(w.ends()) << "one try for each connection";
}

TEST_F(HttpTokens, ThatAreWrongDelayNoOtherRequest) {
  const std::string header = token({role::read});
  http_server_options o;
  o.tokens = tokens_;
  o.wrong_token_delay = std::chrono::hours(1);
  start(std::move(o));
  auto slow = connect();
  slow.request("GET", "/v1/queues", "", "Authorization: Bearer wrong\r\n");
  EXPECT_EQ(ask("GET", "/v1/queues", "", header).status, 200);
  slow.close();
  server().stop(deadline::after(milliseconds(0)));
  expect_alive_ = false;
}

TEST_F(HttpTokens, AreAcceptedInTheAuthorizationHeaderOnly) {
  const std::string good = text({role::admin});
  serve();
  for (const std::string& name :
       std::vector<std::string>{"token", "access_token", "authorization"}) {
    EXPECT_EQ(ask("GET", "/v1/queues?" + name + "=" + good).status, 401);
  }
  for (const std::string& header :
       {"Authorization: Basic " + good + "\r\n", "Authorization: " + good + "\r\n",
        "X-Token: " + good + "\r\n", "Cookie: token=" + good + "\r\n",
        std::string("Authorization: Bearer\r\n"), "Authorization: Bearer " + good + " x\r\n",
        "Authorization: Bearer " + good + "\r\nAuthorization: Bearer " + good + "\r\n"}) {
    EXPECT_EQ(ask("GET", "/v1/queues", "", header).status, 401) << header;
  }
  for (const std::string& header :
       {"authorization: bearer " + good + "\r\n", "Authorization:   BEARER   " + good + "  \r\n"}) {
    EXPECT_EQ(ask("GET", "/v1/queues", "", header).status, 200) << header;
  }
}

TEST_F(HttpTokens, EndWhenTheyExpireOrAreRevoked) {
  const auto short_lived = tokens_
                               .create({.name = "t",
                                        .roles = {role::read},
                                        .expires_at = time_.now() + std::chrono::minutes(1)},
                                       time_.now())
                               .value();
  const auto other = tokens_.create({.name = "t", .roles = {role::read}}, time_.now()).value();
  serve();
  const std::string first = "Authorization: Bearer " + short_lived.text + "\r\n";
  const std::string second = "Authorization: Bearer " + other.text + "\r\n";
  auto open = connect();
  open.request("GET", "/v1/queues", "", first);
  EXPECT_EQ(open.receive().status, 200);
  time_.advance(std::chrono::minutes(1));
  open.request("GET", "/v1/queues", "", first);
  EXPECT_EQ(open.receive().status, 401) << "also on a connection that was authorized before";
  EXPECT_EQ(ask("GET", "/v1/queues", "", second).status, 200);
  ASSERT_TRUE(tokens_.revoke(other.info.id));
  server().use_tokens(tokens_);
  EXPECT_EQ(ask("GET", "/v1/queues", "", second).status, 401);
}

TEST_F(HttpTokens, AreRequiredOnceTheyExist) {
  start();
  EXPECT_EQ(ask("GET", "/v1/queues").status, 200);
  const std::string header = token({role::read});
  server().use_tokens(tokens_);
  EXPECT_EQ(ask("GET", "/v1/queues").status, 401);
  EXPECT_EQ(ask("GET", "/v1/queues", "", header).status, 200);
}

TEST_F(HttpTokens, PushIntoTheirQueuesOnly) {
  const std::string header = token({role::push}, {"mail-*"});
  serve();
  EXPECT_EQ(ask("POST", "/v1/jobs", R"({"kind":"k","queue":"mail-eu"})", header).status, 201);
  const std::string why =
      problem_of(ask("POST", "/v1/jobs", R"({"kind":"k","queue":"reports"})", header), 403,
                 error_code::forbidden);
  EXPECT_NE(why.find("push"), std::string::npos);
  EXPECT_NE(why.find("'reports'"), std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/jobs", R"({"kind":"k"})", header).status, 403) << "the default queue";
  const std::string mixed =
      R"({"jobs":[{"kind":"k","queue":"mail-eu"},{"kind":"k","queue":"reports"}]})";
  EXPECT_EQ(ask("POST", "/v1/jobs", mixed, header).status, 403);
  EXPECT_EQ(jobs().queue("mail-eu")->counts.ready, 1U);
  EXPECT_FALSE(jobs().queue("reports"));
}

TEST_F(HttpTokens, RefuseLinesOfOtherQueues) {
  const std::string header =
      token({role::push}, {"mail"}) + "Content-Type: application/x-ndjson\r\n";
  serve();
  const std::string lines =
      "{\"kind\":\"k\",\"queue\":\"mail\"}\n{\"kind\":\"k\",\"queue\":\"other\"}\n";
  const reply each = ask("POST", "/v1/jobs", lines, header);
  EXPECT_EQ(each.status, 200) << each.body;
  EXPECT_NE(each.body.find("\"accepted\":1"), std::string::npos) << each.body;
  EXPECT_NE(each.body.find("forbidden"), std::string::npos) << each.body;
  EXPECT_NE(each.body.find("line 2"), std::string::npos) << each.body;
  EXPECT_EQ(ask("POST", "/v1/jobs?mode=all_or_nothing", lines, header).status, 403);
  EXPECT_EQ(jobs().queue("mail")->counts.ready, 1U);
  EXPECT_FALSE(jobs().queue("other"));
}

TEST_F(HttpTokens, LeaseFromTheirQueuesOnly) {
  const std::string header = token({role::work}, {"mail"});
  serve();
  push_to("mail");
  push_to("other");
  EXPECT_EQ(ask("POST", "/v1/leases", R"({"queues":["other"]})", header).status, 403);
  EXPECT_EQ(ask("POST", "/v1/leases", R"({"queues":["mail","other"]})", header).status, 403);
  EXPECT_EQ(ask("POST", "/v1/leases", R"({"queues":["mail"]})", header).status, 200);
  EXPECT_EQ(jobs().queue("other")->counts.ready, 1U);
}

TEST_F(HttpTokens, SeeNoJobOfAnotherQueue) {
  const std::string header = token({role::admin}, {"mail"});
  serve();
  const auto own = std::to_string(push_to("mail"));
  const auto other = std::to_string(push_to("other"));
  const auto never = std::to_string(999);
  for (const auto& [method, action] :
       std::vector<std::pair<std::string, std::string>>{{"GET", ""},
                                                        {"GET", "?wait=1ms"},
                                                        {"POST", "/cancel"},
                                                        {"POST", "/retry"},
                                                        {"DELETE", ""}}) {
    reply there = ask(method, "/v1/jobs/" + other + action, "", header);
    reply nowhere = ask(method, "/v1/jobs/" + never + action, "", header);
    EXPECT_EQ(there.status, 404) << method << action << there.body;
    // The two replies differ only in the id of the request.
    nowhere.body.replace(nowhere.body.find("job 999"), 7, "job " + other);
    if (const auto at = nowhere.body.find(":999"); at != std::string::npos) {
      nowhere.body.replace(at + 1, 3, other);
    }
    EXPECT_EQ(there.body, nowhere.body);
  }
  EXPECT_EQ(ask("GET", "/v1/jobs/" + own, "", header).status, 200);
  EXPECT_EQ(jobs().queue("other")->counts.ready, 1U);
  EXPECT_EQ(ask("POST", "/v1/jobs/" + own + "/cancel", "", header).status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/" + own, "", header).status, 204);
}

TEST_F(HttpTokens, ListTheirOwnQueues) {
  const std::string header = token({role::admin}, {"mail*"});
  serve();
  for (const char* queue : {"mail", "other", "mail2"}) push_to(queue);
  const auto page = read<job_page>(ask("GET", "/v1/jobs", "", header));
  ASSERT_EQ(page.jobs.size(), 2U);
  EXPECT_EQ(page.jobs[0].spec.queue, "mail");
  EXPECT_EQ(page.jobs[1].spec.queue, "mail2");
  EXPECT_EQ(ask("GET", "/v1/jobs?queue=other", "", header).status, 403);
  EXPECT_EQ(ask("GET", "/v1/jobs?queue=mail", "", header).status, 200);
  const auto queues = read<std::vector<queue_info>>(ask("GET", "/v1/queues", "", header));
  EXPECT_EQ(queues.size(), 2U);
  EXPECT_EQ(ask("GET", "/v1/queues/other", "", header).status, 403);
  EXPECT_EQ(ask("GET", "/v1/queues/no-such", "", header).status, 403);
  EXPECT_EQ(ask("GET", "/v1/queues/mail", "", header).status, 200);
  EXPECT_EQ(ask("GET", "/metrics", "", header).status, 403) << "it names every queue";
}

TEST_F(HttpTokens, ChangeTheirQueuesOnly) {
  const std::string header = token({role::admin}, {"mail"});
  serve();
  push_to("mail");
  push_to("other");
  for (const std::string& act : std::vector<std::string>{"pause", "resume", "purge"}) {
    EXPECT_EQ(ask("POST", "/v1/queues/other/" + act, "", header).status, 403) << act;
    EXPECT_EQ(ask("POST", "/v1/queues/mail/" + act, "", header).status, 200) << act;
  }
  EXPECT_EQ(ask("PATCH", "/v1/queues/other", R"({"paused":true})", header).status, 403);
  EXPECT_EQ(ask("PATCH", "/v1/queues/mail", R"({"paused":true})", header).status, 200);
  EXPECT_EQ(jobs().queue("other")->counts.ready, 1U);
  EXPECT_FALSE(jobs().queue("other")->options.paused);
}

TEST_F(HttpTokens, ThatAreUnknownAreReportedOnceASecond) {
  std::vector<std::pair<std::string, std::uint64_t>> reports;
  http_server_options o;
  o.on_intrusion = [&](const intrusion_notice& n) {
    reports.emplace_back(std::string(n.from), n.times);
  };
  token({role::admin});
  serve(std::move(o));
  const std::string wrong = "Authorization: Bearer wrong\r\n";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("GET", "/v1/queues", "", wrong).status, 401);
  time_.advance(std::chrono::seconds(1));
  EXPECT_EQ(ask("GET", "/v1/queues", "", wrong).status, 401);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0], (std::pair<std::string, std::uint64_t>("127.0.0.1", 1)));
  EXPECT_EQ(reports[1].second, 5U);
}

TEST_F(HttpTokens, AppearInTheAuditByIdOnly) {
  struct line {
    std::string who, from, act;
    int status;
  };
  std::vector<line> reports;
  http_server_options o;
  o.on_audit = [&](const audit_entry& e) {
    reports.push_back({std::string(e.who), std::string(e.from), std::string(e.act), e.status});
  };
  const auto made = tokens_.create({.name = "t", .roles = {role::admin}}, time_.now()).value();
  const std::string weak = token({role::read});
  serve(std::move(o));
  const std::string header = "Authorization: Bearer " + made.text + "\r\n";
  const auto id = std::to_string(push_to("q"));
  ask("POST", "/v1/queues/q/pause?secret=1", "", header);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].who, made.info.id);
  EXPECT_EQ(reports[0].from, "127.0.0.1");
  EXPECT_EQ(reports[0].act, "POST /v1/queues/q/pause") << "without the query";
  EXPECT_EQ(reports[0].status, 400);
  reports.clear();
  ask("POST", "/v1/queues/q/pause", "", weak);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].status, 403);
  reports.clear();
  ask("GET", "/v1/jobs/" + id, "", header);
  ask("POST", "/v1/jobs", R"({"kind":"k"})", header);
  ask("POST", "/v1/leases", "{}", header);
  EXPECT_TRUE(reports.empty()) << reports[0].act;
}

}  // namespace
}  // namespace sluice::jobs::http_tokens_test
