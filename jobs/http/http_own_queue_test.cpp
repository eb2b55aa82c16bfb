// The server's own queues over HTTP: readable and repairable, but closed to pushes and leases.
#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::testing::http_own_queue_test {
namespace {

class HttpOwnQueue : public HttpTest {
 protected:
  static void expect_refused(const reply& r) {
    EXPECT_NE(problem_of(r, 403, error_code::forbidden)
                  .find("queue 'sluice/webhooks' belongs to the server"),
              std::string::npos)
        << r.body;
  }
  static constexpr std::string_view own = R"({"kind":"k","queue":"sluice/webhooks"})";
  static constexpr std::string_view other = R"({"kind":"k"})";
  static std::string text(std::initializer_list<std::string_view> parts) {
    std::string all;
    for (const std::string_view p : parts) all += p;
    return all;
  }
};

TEST_F(HttpOwnQueue, RefusesPushes) {
  start();
  expect_refused(ask("POST", "/v1/jobs", own));
  for (const std::string_view mode : {"each", "all_or_nothing"}) {
    expect_refused(
        ask("POST", text({"/v1/jobs?mode=", mode}), text({R"({"jobs":[)", other, ",", own, "]}"})));
  }
  EXPECT_EQ(jobs().stats().pushed, 0U);
}

TEST_F(HttpOwnQueue, ALineOfAStreamThatPushesIntoItIsRefused) {
  start();
  const std::string lines = text({other, "\n", own, "\n", other, "\n"});
  const std::string_view type = "Content-Type: application/x-ndjson\r\n";
  const reply each = ask("POST", "/v1/jobs", lines, type);
  EXPECT_EQ(each.status, 200);
  EXPECT_NE(each.body.find("\"accepted\":2"), std::string::npos) << each.body;
  EXPECT_NE(each.body.find("line 2: queue 'sluice/webhooks' belongs to the server"),
            std::string::npos)
      << each.body;
  const reply none = ask("POST", "/v1/jobs?mode=all_or_nothing", lines, type);
  EXPECT_NE(problem_of(none, 403, error_code::forbidden).find("nothing was pushed"),
            std::string::npos);
  EXPECT_EQ(jobs().stats().pushed, 2U);
}

TEST_F(HttpOwnQueue, RefusesJobsAndCallbacksOfABatch) {
  start();
  for (const std::string_view where : {"/v1/batches", "/v1/workflows"}) {
    expect_refused(ask("POST", where, text({R"({"jobs":[)", other, ",", own, "]}"})));
    for (const std::string_view when : {"on_success", "on_end", "on_failure"}) {
      expect_refused(
          ask("POST", where, text({R"({"jobs":[)", other, R"(],")", when, R"(":)", own, "}"})));
    }
  }
  EXPECT_EQ(jobs().stats().pushed, 0U);
}

TEST_F(HttpOwnQueue, RefusesCronEntries) {
  start();
  expect_refused(
      ask("PUT", "/v1/crons/nightly", text({R"({"schedule":"0 3 * * *","job":)", own, "}"})));
  EXPECT_TRUE(jobs().crons().empty());
}

TEST_F(HttpOwnQueue, RefusesLeases) {
  start();
  ASSERT_TRUE(jobs().push({.queue = std::string(webhook_queue), .kind = "sluice.webhook"}).get());
  expect_refused(ask("POST", "/v1/leases", R"({"queues":["default","sluice/webhooks"]})"));
  EXPECT_EQ(jobs().queue(webhook_queue)->counts.ready, 1U);
}

TEST_F(HttpOwnQueue, ItsJobsCanBeReadRetriedAndRemoved) {
  start();
  const job_id id =
      jobs().push({.queue = std::string(webhook_queue), .kind = "sluice.webhook"}).get()->id;
  ASSERT_TRUE(jobs().kill(id, {.type = "receiver_down"}).get());
  const std::string job = "/v1/jobs/" + std::to_string(id);
  EXPECT_EQ(ask("GET", "/v1/jobs?queue=sluice/webhooks").status, 200);
  EXPECT_EQ(ask("GET", job).status, 200);
  EXPECT_EQ(ask("POST", job + "/retry").status, 200);
  EXPECT_EQ(ask("DELETE", job).status, 204);
}

}  // namespace
}  // namespace sluice::jobs::testing::http_own_queue_test
