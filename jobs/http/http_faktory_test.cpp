// Workers of Faktory's protocol over HTTP: pages of workers, and state changes.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_faktory_test {
namespace {

using testing::reply;

constexpr std::string_view workers = "/v1/faktory/workers";

class HttpFaktory : public testing::HttpTest {
 protected:
  // A server without a Faktory port.
  void start_with_workers(std::optional<token_set> tokens = {}) {
    http_server_options o;
    o.tokens = std::move(tokens);
    o.wrong_token_delay = milliseconds(0);
    o.faktory =
        faktory_port{.list =
                         [this](const std::string& after, std::size_t limit) {
                           const auto crew = crew_.lock();
                           faktory_worker_page page;
                           for (auto it = crew->upper_bound(after); it != crew->end(); ++it) {
                             if (page.workers.size() == limit) {
                               page.cursor = page.workers.back().wid;
                               break;
                             }
                             page.workers.push_back(it->second);
                           }
                           return page;
                         },
                     .set_state = [this](const std::string& wid,
                                         worker_state state) -> std::optional<faktory_worker> {
                       const auto crew = crew_.lock();
                       const auto found = crew->find(wid);
                       if (found == crew->end()) return std::nullopt;
                       found->second.state = state;
                       return found->second;
                     }};
    start(std::move(o));
  }
  void add_worker(const std::string& wid) {
    crew_.lock()->insert_or_assign(wid, faktory_worker{.wid = wid,
                                                       .hostname = "web-1",
                                                       .pid = 812,
                                                       .labels = {"ruby", "blue"},
                                                       .rss_kb = 4096,
                                                       .since = {1000},
                                                       .last_beat = {2000},
                                                       .running = 3});
  }
  static std::string path(std::string_view wid, std::string_view action) {
    return std::string(workers) + "/" + std::string(wid) + "/" + std::string(action);
  }

  guarded<std::map<std::string, faktory_worker>> crew_;
};

TEST_F(HttpFaktory, ListsAWorkerWithAllItsFields) {
  start_with_workers();
  EXPECT_EQ(ask("GET", workers).body, R"({"workers":[],"next":null})");
  add_worker("w");
  EXPECT_EQ(ask("GET", workers).body,
            R"({"workers":[{"wid":"w","hostname":"web-1","pid":812,"labels":["ruby","blue"],)"
            R"("state":"running","rss_kb":4096,"since":"1970-01-01T00:00:01.000Z",)"
            R"("last_beat":"1970-01-01T00:00:02.000Z","running":3}],"next":null})");
}

TEST_F(HttpFaktory, ListsWorkersPageByPage) {
  start_with_workers();
  for (const char* const wid : {"a", "b&c", "d"}) add_worker(wid);
  const auto first = read<faktory_worker_page>(ask("GET", std::string(workers) + "?limit=2"));
  ASSERT_EQ(first.workers.size(), 2U);
  EXPECT_EQ(first.cursor, "b&c");
  const auto second =
      read<faktory_worker_page>(ask("GET", std::string(workers) + "?limit=2&after=b%26c"));
  ASSERT_EQ(second.workers.size(), 1U);
  EXPECT_EQ(second.workers[0].wid, "d");
  EXPECT_EQ(second.cursor, std::nullopt);
  for (const char* const wrong : {"?limit=0", "?limit=1001", "?limit=x", "?state=quiet"}) {
    problem_of(ask("GET", std::string(workers) + wrong), 400, error_code::invalid);
  }
}

TEST_F(HttpFaktory, SetsAWorkerToQuietAndTerminate) {
  start_with_workers();
  add_worker("w");
  add_worker("a/b");
  EXPECT_EQ(read<faktory_worker>(ask("POST", path("w", "quiet"))).state, worker_state::quiet);
  EXPECT_EQ(read<faktory_worker>(ask("POST", path("w", "terminate"))).state,
            worker_state::terminate);
  EXPECT_EQ(crew_.lock()->at("a/b").state, worker_state::running);
  EXPECT_EQ(read<faktory_worker>(ask("POST", path("a%2Fb", "quiet"))).wid, "a/b");
  problem_of(ask("POST", path("w", "quiet?now=1")), 400, error_code::invalid);
  EXPECT_EQ(ask("GET", path("w", "quiet")).status, 405);
}

TEST_F(HttpFaktory, ReportsAnUnknownWorker) {
  start_with_workers();
  EXPECT_EQ(problem_of(ask("POST", path("nobody", "quiet")), 404, error_code::not_found),
            "there is no worker 'nobody': it never connected, or its last connection is closed");
  problem_of(ask("POST", path(std::string(5000, 'w'), "terminate")), 404, error_code::not_found);
  EXPECT_EQ(ask("POST", path("%zz", "quiet")).status, 400);
  EXPECT_EQ(ask("POST", path("", "quiet")).status, 404);
}

TEST_F(HttpFaktory, ReportsThatTheProtocolIsOff) {
  start();
  const std::string why = problem_of(ask("GET", workers), 404, error_code::not_found);
  EXPECT_NE(why.find("start it with --faktory"), std::string::npos) << why;
  EXPECT_EQ(problem_of(ask("POST", path("w", "quiet")), 404, error_code::not_found), why);
  EXPECT_EQ(problem_of(ask("POST", path("w", "terminate")), 404, error_code::not_found), why);
}

TEST_F(HttpFaktory, TakesAdministratorsOfEveryQueue) {
  token_set tokens;
  const auto header = [&](token_request request) {
    request.name = "t";
    return "Authorization: Bearer " + tokens.create(std::move(request), real_time().now())->text +
           "\r\n";
  };
  const std::string reader = header({.roles = {role::read}});
  const std::string worker = header({.roles = {role::work, role::push}});
  const std::string admin = header({.roles = {role::admin}});
  const std::string scoped = header({.roles = {role::admin}, .queues = {"q"}});
  start_with_workers(tokens);
  add_worker("w");
  EXPECT_EQ(ask("GET", workers, "", reader).status, 200);
  EXPECT_EQ(ask("GET", workers, "", scoped).status, 403);
  EXPECT_EQ(ask("POST", path("w", "quiet"), "", reader).status, 403);
  EXPECT_EQ(ask("POST", path("w", "quiet"), "", worker).status, 403);
  EXPECT_EQ(ask("POST", path("w", "quiet"), "", scoped).status, 403);
  EXPECT_EQ(ask("POST", path("w", "quiet")).status, 401);
  EXPECT_EQ(crew_.lock()->at("w").state, worker_state::running);
  EXPECT_EQ(ask("POST", path("w", "quiet"), "", admin).status, 200);
}

TEST_F(HttpFaktory, AreShownToTheLast) {
  start_with_workers();
  add_worker("w");
  server().close_intake();
  EXPECT_EQ(ask("GET", workers).status, 200);
  EXPECT_EQ(ask("POST", path("w", "quiet")).status, 200);
}

}  // namespace
}  // namespace sluice::jobs::http_faktory_test
