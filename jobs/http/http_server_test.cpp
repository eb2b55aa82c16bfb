// Every route, over a real socket.
#include "jobs/http/http_server.hpp"

#include <gtest/gtest.h>

#include <array>

#include "jobs/http/testing/http_fixture.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::http_server_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::reply;
using testing::wire;

class HttpServer : public testing::HttpTest {};

std::string lease_body(const leased_job& l, std::string_view more = "") {
  return "{\"lease\":" + std::to_string(l.key) + std::string(more) + "}";
}

std::string job_path(job_id id, std::string_view suffix = "") {
  return "/v1/jobs/" + std::to_string(id) + std::string(suffix);
}

// ---- producers

TEST_F(HttpServer, AcceptsAJobAndReturnsItsLocation) {
  start();
  const reply r = ask("POST", "/v1/jobs", R"({"kind":"mail","args":{"to":"ada"}})");
  EXPECT_EQ(r.status, 201);
  EXPECT_EQ(r.body, R"({"id":1,"state":"ready"})");
  EXPECT_EQ(r.header("location"), "/v1/jobs/1");
  EXPECT_EQ(r.header("content-type"), "application/json");
  EXPECT_EQ(r.header("date").size(), 29U);
  const auto found = read<job>(ask("GET", "/v1/jobs/1"));
  EXPECT_EQ(found.spec.kind, "mail");
  EXPECT_EQ(found.spec.args.data, R"({"to":"ada"})");
  EXPECT_EQ(found.state, job_state::ready);
}

TEST_F(HttpServer, KeepsNumbersAsTheyWereSent) {
  start();
  const std::string args = R"([12345678901234567890,1.10,1e400])";
  push(R"({"kind":"k","args":)" + args + "}");
  EXPECT_NE(ask("GET", "/v1/jobs/1").body.find(args), std::string::npos);
  EXPECT_EQ(lease().job->spec.args.data, args);
}

TEST_F(HttpServer, SchedulesAJobForLater) {
  start();
  const reply r = ask("POST", "/v1/jobs", R"({"kind":"k","delay":"1h"})");
  EXPECT_EQ(r.status, 201);
  EXPECT_EQ(r.body, R"({"id":1,"state":"scheduled"})");
}

TEST_F(HttpServer, NamesTheJobThatHasAUniqueKey) {
  start();
  const std::string body = R"({"kind":"k","unique":{"key":"u"}})";
  push(body);
  const reply r = ask("POST", "/v1/jobs", body);
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.body, R"({"id":1,"duplicate":true})");
}

TEST_F(HttpServer, ReportsADroppedJob) {
  start();
  ask("PATCH", "/v1/queues/default", R"({"capacity_jobs":1,"when_full":"drop_newest"})");
  push();
  const reply r = ask("POST", "/v1/jobs", R"({"kind":"k"})");
  EXPECT_EQ(r.status, 202);
  EXPECT_EQ(r.body, R"({"dropped":true})");
}

TEST_F(HttpServer, TakesManyJobsEachForItself) {
  start();
  const reply r = ask("POST", "/v1/jobs", R"([{"kind":"a"},{"kind":""},{"kind":"c"}])");
  EXPECT_EQ(r.status, 200);
  const auto results = read<std::vector<result<push_receipt>>>(r);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0]);
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code, error_code::invalid);
  EXPECT_TRUE(results[2]);
  EXPECT_NE(r.body.find("\"accepted\":2"), std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/jobs", "[]").body, R"({"accepted":0,"results":[]})");
}

TEST_F(HttpServer, TakesAllJobsOrNone) {
  start();
  const reply r =
      ask("POST", "/v1/jobs", R"({"mode":"all_or_nothing","jobs":[{"kind":"a"},{"kind":""}]})");
  EXPECT_NE(problem_of(r, 400, error_code::invalid).find("job 2 of 2"), std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/jobs?mode=all_or_nothing", R"([{"kind":"a"},{"kind":""}])").status,
            400);
  EXPECT_EQ(jobs().stats().pushed, 0U);
  EXPECT_EQ(ask("POST", "/v1/jobs", R"({"jobs":[{"kind":"a"}],"mode":"all_or_nothing"})").body,
            R"({"accepted":1,"results":[{"id":1}]})");
}

TEST_F(HttpServer, NamesTheJobThatBlocksAllTheOthers) {
  start();
  const job_id holder = push(R"({"kind":"k","unique":{"key":"u"}})");
  const reply r = ask("POST", "/v1/jobs?mode=all_or_nothing",
                      R"([{"kind":"a"},{"kind":"k","unique":{"key":"u"}}])");
  problem_of(r, 409, error_code::duplicate);
  EXPECT_EQ(json::read<json::problem>(r.body)->error.job, holder);
  EXPECT_EQ(jobs().stats().pushed, 1U);
}

TEST_F(HttpServer, TakesJobsLineByLine) {
  start();
  const reply r = ask("POST", "/v1/jobs",
                      "{\"kind\":\"a\"}\n\r\n{\"kind\":3}\n  {\"kind\":\"b\"}  \n{\"kind\":\"c\"}",
                      "Content-Type: application/x-ndjson\r\n");
  EXPECT_EQ(r.status, 200) << r.body;
  const auto results = read<std::vector<result<push_receipt>>>(r);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_TRUE(results[0]);
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().message,
            "kind: expected a string, found a number (line 3, column 9)");
  EXPECT_TRUE(results[3]);
  EXPECT_EQ(jobs().stats().pushed, 3U);
}

TEST_F(HttpServer, TakesALongStreamOfJobs) {
  start();
  std::string body;
  for (int i = 0; i < 20'000; ++i) body += R"({"kind":"k","args":)" + std::to_string(i) + "}\n";
  const reply r = ask("POST", "/v1/jobs", body, "Content-Type: application/x-ndjson\r\n");
  EXPECT_EQ(r.status, 200);
  const auto results = read<std::vector<result<push_receipt>>>(r);
  ASSERT_EQ(results.size(), 20'000U);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i]);
    ASSERT_EQ(results[i]->id, i + 1);
  }
}

TEST_F(HttpServer, TakesAStreamAllOrNothing) {
  start();
  const std::string type = "Content-Type: application/x-ndjson\r\n";
  const auto why = problem_of(
      ask("POST", "/v1/jobs?mode=all_or_nothing", "{\"kind\":\"a\"}\n{\"kind\":3}\n", type), 400,
      error_code::invalid);
  EXPECT_EQ(why, "kind: expected a string, found a number (line 2, column 9); nothing was pushed");
  EXPECT_EQ(jobs().stats().pushed, 0U);
  EXPECT_EQ(
      ask("POST", "/v1/jobs?mode=all_or_nothing", "{\"kind\":\"a\"}\n{\"kind\":\"b\"}\n", type)
          .body,
      R"({"accepted":2,"results":[{"id":1},{"id":2}]})");
}

TEST_F(HttpServer, RefusesAPushIntoAFullQueueWithTheReason) {
  start();
  ask("PATCH", "/v1/queues/default", R"({"capacity_jobs":1})");
  push();
  const reply r = ask("POST", "/v1/jobs", R"({"kind":"k"})");
  EXPECT_NE(problem_of(r, 503, error_code::queue_full).find("queue 'default' is full"),
            std::string::npos);
  EXPECT_EQ(r.header("retry-after"), "1");
  const reply many = ask("POST", "/v1/jobs", R"([{"kind":"k"}])");
  problem_of(many, 503, error_code::queue_full);
  EXPECT_EQ(many.header("retry-after"), "1");
}

TEST_F(HttpServer, RefusesABulkPushAsAWholeWhenAllJobsMayBeRetried) {
  start();
  ask("PATCH", "/v1/queues/full", R"({"capacity_jobs":1})");
  push(R"({"kind":"k","queue":"full"})");
  push(R"({"kind":"k","unique":{"key":"u"}})");
  const std::string full = R"({"kind":"k","queue":"full"})";
  const std::string lines = "Content-Type: application/x-ndjson\r\n";
  const auto all_ways = [&](const std::string& one, const std::string& two) {
    return std::array{ask("POST", "/v1/jobs", "[" + one + "," + two + "]"),
                      ask("POST", "/v1/jobs", one + "\n" + two + "\n", lines)};
  };
  for (const reply& r : all_ways(full, full)) {
    problem_of(r, 503, error_code::queue_full);
    EXPECT_EQ(r.header("retry-after"), "1");
    // The body has the result of each job as usual.
    const auto results = json::read<std::vector<result<push_receipt>>>(r.body);
    ASSERT_TRUE(results) << r.body;
    ASSERT_EQ(results->size(), 2U);
    for (const auto& one : *results) EXPECT_EQ(one.error().code, error_code::queue_full);
  }
  // With a job that is invalid, accepted or a duplicate, the client must check each result.
  for (const char* other :
       {R"({"kind":""})", R"({"kind":"k"})", R"({"kind":"k","unique":{"key":"u"}})"}) {
    for (const reply& r : all_ways(full, other)) {
      EXPECT_EQ(r.status, 200) << r.body;
      EXPECT_EQ(r.header("retry-after"), "1");
    }
  }
  EXPECT_EQ(ask("POST", "/v1/jobs", "[]").status, 200);
}

TEST_F(HttpServer, BoundsAnAllOrNothingStreamWhileItArrives) {
  start({.body_bytes_max = 4000, .bulk_jobs_max = 10});
  const std::string type = "Content-Type: application/x-ndjson\r\n";
  const std::string head = "POST /v1/jobs?mode=all_or_nothing HTTP/1.1\r\nHost: localhost\r\n" +
                           type + "Transfer-Encoding: chunked\r\n\r\n";
  // Neither body is complete: they are refused before their end.
  wire many = connect();
  many.send(head + "8f\r\n");
  for (int i = 0; i < 11; ++i) many.send("{\"kind\":\"k\"}\n");
  EXPECT_EQ(problem_of(many.receive(), 413, error_code::too_large),
            "more than 10 jobs in one request; nothing was pushed");
  EXPECT_TRUE(many.ends());
  wire large = connect();
  large.send(head + "1000\r\n" + std::string(4096, ' '));
  EXPECT_EQ(problem_of(large.receive(), 413, error_code::too_large),
            "the body is longer than 4000 bytes");
  EXPECT_TRUE(large.ends());
  problem_of(ask("POST", "/v1/jobs?mode=all_or_nothing", std::string(4001, ' '), type), 413,
             error_code::too_large);
  EXPECT_EQ(jobs().stats().pushed, 0U);
  std::string ten;
  for (int i = 0; i < 10; ++i) ten += "{\"kind\":\"k\"}\n";
  EXPECT_EQ(ask("POST", "/v1/jobs?mode=all_or_nothing", ten, type).status, 200);
  EXPECT_EQ(ask("POST", "/v1/jobs", ten + ten, type).status, 200);
  EXPECT_EQ(jobs().stats().pushed, 30U);
}

TEST_F(HttpServer, RefusesTwoDifferentModes) {
  start();
  const std::string each = R"({"mode":"each","jobs":[{"kind":"a"}]})";
  const std::string all = R"({"jobs":[{"kind":"a"}],"mode":"all_or_nothing"})";
  for (const auto& [query, body] : {std::pair{"all_or_nothing", each}, {"each", all}}) {
    EXPECT_EQ(problem_of(ask("POST", "/v1/jobs?mode=" + std::string(query), body), 400,
                         error_code::invalid),
              "the parameter 'mode': the body has a different mode; send one");
  }
  EXPECT_EQ(jobs().stats().pushed, 0U);
  EXPECT_EQ(ask("POST", "/v1/jobs?mode=each", each).status, 200);
  EXPECT_EQ(ask("POST", "/v1/jobs?mode=all_or_nothing", all).status, 200);
  // The query only.
  const std::string one_is_wrong = R"({"jobs":[{"kind":"a"},{"kind":""}]})";
  EXPECT_EQ(ask("POST", "/v1/jobs?mode=all_or_nothing", one_is_wrong).status, 400);
}

TEST_F(HttpServer, AnswersAWaitingLeaseWhenItStops) {
  start({.linger_time = 50ms});
  const job_id id = push();
  wire w = connect();
  w.request("GET", "/v1/jobs/" + std::to_string(id) + "?wait=60s");
  w.request("POST", "/v1/jobs", R"({"kind":"k"})");
  eventually([&] { return jobs().stats().pushed == 2; });  // then the previous request waits
  expect_alive_ = false;
  server().stop();
  EXPECT_EQ(read<job>(w.receive()).state, job_state::ready);
}

TEST_F(HttpServer, BlocksAPushForCapacityUntilItsDeadline) {
  start();
  ask("PATCH", "/v1/queues/default", R"({"capacity_jobs":1,"when_full":"block"})");
  const job_id first = push();
  problem_of(ask("POST", "/v1/jobs?wait=10ms", R"({"kind":"k"})"), 503, error_code::timed_out);
  problem_of(ask("POST", "/v1/jobs", R"({"kind":"k"})", "Prefer: wait=0.01\r\n"), 503,
             error_code::timed_out);
  wire waits = connect();
  waits.request("POST", "/v1/jobs?wait=60s", R"({"kind":"k"})");
  testing::eventually([&] { return jobs().stats().waiting_pushes == 1; });
  EXPECT_EQ(ask("DELETE", job_path(first)).status, 204);
  EXPECT_EQ(waits.receive().status, 201);
}

// ---- readers

TEST_F(HttpServer, WaitsForTheResultOfAJob) {
  start();
  const job_id id = push();
  wire waits = connect();
  waits.request("GET", job_path(id, "?wait=60s"));
  const leased_job l = lease();
  EXPECT_EQ(ask("POST", job_path(id, "/ack"), lease_body(l, R"(,"result":{"n":1.10})")).status,
            204);
  const auto ended = read<job>(waits.receive());
  EXPECT_EQ(ended.state, job_state::done);
  EXPECT_EQ(ended.result, payload{R"({"n":1.10})"});
}

TEST_F(HttpServer, ShowsAJobAsItIsWhenItDoesNotEndInTime) {
  start();
  const auto shown = read<job>(ask("GET", job_path(push(), "?wait=10ms")));
  EXPECT_EQ(shown.state, job_state::ready);
  problem_of(ask("GET", "/v1/jobs/99?wait=10ms"), 404, error_code::not_found);
}

TEST_F(HttpServer, ListsJobsPageByPage) {
  start();
  for (int i = 0; i < 5; ++i) push(i == 2 ? R"({"kind":"b","queue":"q"})" : R"({"kind":"a"})");
  const auto page = read<job_page>(ask("GET", "/v1/jobs?limit=2"));
  ASSERT_EQ(page.jobs.size(), 2U);
  ASSERT_TRUE(page.cursor);
  const auto next =
      read<job_page>(ask("GET", "/v1/jobs?limit=10&after=" + std::to_string(*page.cursor)));
  ASSERT_EQ(next.jobs.size(), 3U);
  EXPECT_EQ(next.jobs[0].id, 3U);
  EXPECT_EQ(read<job_page>(ask("GET", "/v1/jobs?kind=b")).jobs.size(), 1U);
  EXPECT_EQ(read<job_page>(ask("GET", "/v1/jobs?queue=q&state=ready")).jobs.size(), 1U);
  EXPECT_EQ(read<job_page>(ask("GET", "/v1/jobs?state=dead")).jobs.size(), 0U);
}

TEST_F(HttpServer, CancelsRetriesAndDeletesJobs) {
  start();
  const job_id id = push();
  EXPECT_EQ(read<job>(ask("POST", job_path(id, "/cancel"))).state, job_state::cancelled);
  problem_of(ask("POST", job_path(id, "/cancel")), 409, error_code::wrong_state);
  EXPECT_EQ(read<job>(ask("POST", job_path(id, "/retry"))).state, job_state::ready);
  EXPECT_EQ(ask("DELETE", job_path(id)).status, 204);
  problem_of(ask("GET", job_path(id)), 404, error_code::not_found);
  problem_of(ask("DELETE", job_path(id)), 404, error_code::not_found);
}

// ---- workers

TEST_F(HttpServer, LeasesJobsAndTakesTheirAcks) {
  start();
  const job_id id = push(R"({"kind":"mail","args":[1]})");
  const reply r = ask("POST", "/v1/leases", R"({"queues":["default"],"max":5,"worker":"w1"})");
  const auto leased = read<std::vector<leased_job>>(r);
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].job->id, id);
  EXPECT_EQ(leased[0].attempt, 1U);
  EXPECT_GT(leased[0].key, 0U);
  EXPECT_GT(leased[0].until, real_time().now());
  EXPECT_EQ(ask("POST", job_path(id, "/ack"), lease_body(leased[0])).status, 204);
  problem_of(ask("POST", job_path(id, "/ack"), lease_body(leased[0])), 409, error_code::lease_lost);
}

TEST_F(HttpServer, ReportsAMissingJob) {
  start();
  const reply r = ask("POST", "/v1/leases", "{}");
  EXPECT_EQ(r.status, 204);
  EXPECT_EQ(r.body, "");
  EXPECT_EQ(ask("POST", "/v1/leases", R"({"wait":"20ms"})").status, 204);
}

TEST_F(HttpServer, BlocksALeaseUntilAJobArrives) {
  start();
  wire worker = connect();
  worker.request("POST", "/v1/leases", R"({"wait":"60s"})");
  testing::eventually([&] { return jobs().stats().waiting_leases == 1; });
  const job_id id = push();
  const auto leased = read<std::vector<leased_job>>(worker.receive());
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].job->id, id);
}

TEST_F(HttpServer, LeasesAJobDueBeforeTheEndOfTheWaitEvenIfBothAreDetectedLate) {
  static manual_time time;  // outlives the engine
  http_server_options o;
  o.time = &time;
  engine_options e;
  e.time = &time;
  start(std::move(o), {}, std::move(e));
  const job_id id = push(R"({"kind":"k","delay":1})");
  wire worker = connect();
  worker.request("POST", "/v1/leases", R"({"wait":"60s"})");
  testing::eventually([&] { return jobs().stats().waiting_leases == 1; });
  time.advance(1h);
  const auto leased = read<std::vector<leased_job>>(worker.receive());
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].job->id, id);
}

TEST_F(HttpServer, ExtendsALeaseAndReportsACancel) {
  start();
  const job_id id = push();
  const leased_job l = lease();
  const auto longer =
      read<extension>(ask("POST", job_path(id, "/extend"), lease_body(l, R"(,"for":"2h")")));
  EXPECT_GT(longer.until, l.until);
  EXPECT_FALSE(longer.cancelled);
  EXPECT_EQ(ask("POST", job_path(id, "/cancel")).status, 200);
  EXPECT_TRUE(read<extension>(ask("POST", job_path(id, "/extend"), lease_body(l))).cancelled);
  problem_of(ask("POST", job_path(id, "/extend"), R"({"lease":1})"), 409, error_code::lease_lost);
}

TEST_F(HttpServer, TakesFailuresAndKeepsTheirErrors) {
  start();
  const job_id id = push(R"({"kind":"k","retry":{"attempts":2,"first":"1h","jitter":0}})");
  const leased_job l = lease();
  const auto failed = read<fail_receipt>(
      ask("POST", job_path(id, "/fail"),
          lease_body(l, R"(,"type":"io","message":"no route","backtrace":"at x")")));
  EXPECT_EQ(failed.state, job_state::retrying);
  EXPECT_GT(failed.next_at, real_time().now() + 30min);
  ask("POST", job_path(id, "/retry"));
  const leased_job again = lease();
  const auto died = read<fail_receipt>(
      ask("POST", job_path(id, "/fail"), lease_body(again, R"(,"for_good":true)")));
  EXPECT_EQ(died.state, job_state::dead);
  const auto dead = read<job>(ask("GET", job_path(id)));
  ASSERT_FALSE(dead.errors.empty());
  EXPECT_EQ(dead.errors[0].type, "io");
  EXPECT_EQ(dead.errors[0].message, "no route");
  EXPECT_EQ(dead.errors[0].backtrace, "at x");
}

TEST_F(HttpServer, ReleasesJobs) {
  start();
  const job_id id = push();
  const leased_job l = lease();
  EXPECT_EQ(ask("POST", job_path(id, "/release"), lease_body(l, R"(,"priority":7)")).status, 204);
  const auto back = read<job>(ask("GET", job_path(id)));
  EXPECT_EQ(back.state, job_state::ready);
  EXPECT_EQ(back.spec.priority, 7);
  const leased_job again = lease();
  EXPECT_EQ(again.attempt, 1U);
  ask("POST", job_path(id, "/release"), lease_body(again, R"(,"delay":"1h")"));
  EXPECT_EQ(read<job>(ask("GET", job_path(id))).state, job_state::scheduled);
}

TEST_F(HttpServer, TakesManyAcksAtOnce) {
  start();
  push();
  push();
  const auto leased = read<std::vector<leased_job>>(ask("POST", "/v1/leases", R"({"max":2})"));
  ASSERT_EQ(leased.size(), 2U);
  const json::acks_call acks{
      {{leased[0].ref(), std::nullopt}, {{99, 1}, std::nullopt}, {leased[1].ref(), payload{"7"}}}};
  const auto results = read<std::vector<void_result>>(ask("POST", "/v1/acks", json::to_json(acks)));
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0]);
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code, error_code::lease_lost);
  EXPECT_TRUE(results[2]);
}

// ---- queues, and the server itself

TEST_F(HttpServer, ShowsAndConfiguresQueues) {
  start();
  push();
  EXPECT_EQ(read<std::vector<queue_info>>(ask("GET", "/v1/queues")).size(), 1U);
  const auto changed = read<queue_info>(
      ask("PATCH", "/v1/queues/a%2Fb", R"({"capacity_jobs":5,"when_full":"block"})"));
  EXPECT_EQ(changed.name, "a/b");
  EXPECT_EQ(changed.options.capacity_jobs, 5U);
  EXPECT_EQ(changed.options.when_full, overflow::block);
  const auto shown = read<queue_info>(ask("GET", "/v1/queues/default"));
  EXPECT_EQ(shown.counts.ready, 1U);
  problem_of(ask("GET", "/v1/queues/none"), 404, error_code::not_found);
}

TEST_F(HttpServer, PausesResumesAndPurgesQueues) {
  start();
  push();
  EXPECT_TRUE(read<queue_info>(ask("POST", "/v1/queues/default/pause")).options.paused);
  EXPECT_EQ(ask("POST", "/v1/leases", "{}").status, 204);
  EXPECT_FALSE(read<queue_info>(ask("POST", "/v1/queues/default/resume")).options.paused);
  EXPECT_EQ(ask("POST", "/v1/queues/default/purge").body, R"({"purged":1})");
  for (const std::string_view action : {"pause", "resume", "purge"}) {
    problem_of(ask("POST", "/v1/queues/none/" + std::string(action)), 404, error_code::not_found);
  }
}

TEST_F(HttpServer, ReportsItsHealth) {
  start({.version = "1.2.3"});
  push();
  EXPECT_EQ(read<engine_stats>(ask("GET", "/v1/stats")).pushed, 1U);
  EXPECT_EQ(ask("GET", "/healthz").body, R"({"status":"ok"})");
  EXPECT_EQ(ask("GET", "/readyz").body, R"({"status":"ready"})");
  EXPECT_NE(ask("GET", "/").body.find(R"("version":"1.2.3")"), std::string::npos);
}

TEST_F(HttpServer, AnswersHeadWithoutABodyAndOptionsWithTheMethods) {
  start();
  wire w = connect();
  w.request("HEAD", "/healthz");
  const reply head = w.receive(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), "15");
  w.request("OPTIONS", "/v1/jobs");
  const reply options = w.receive();
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.header("allow"), "POST, GET, HEAD, OPTIONS");
  w.request("OPTIONS", "*");
  EXPECT_EQ(w.receive().status, 204);
}

TEST_F(HttpServer, IsNotReadyWhileTheStoreFails) {
  const auto fails = std::make_shared<atomic<bool>>(false);  // the engine outlives the test
  start({}, {.before_apply = [fails](const transaction&) -> std::optional<error> {
          if (fails->load()) return error{error_code::disk_full, "the disk is full"};
          return std::nullopt;
        }});
  push();
  fails->store(true);
  const reply refused = ask("POST", "/v1/jobs", R"({"kind":"k"})");
  EXPECT_EQ(problem_of(refused, 503, error_code::disk_full), "the disk is full");
  EXPECT_EQ(problem_of(ask("GET", "/readyz"), 503, error_code::disk_full), "the disk is full");
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  fails->store(false);
  eventually([&] { return ask("GET", "/readyz").status == 200; });
  push();
}

TEST_F(HttpServer, ReportsAFailingStoreAsRetryableAndACorruptStoreNot) {
  for (const error_code code : {error_code::io_error, error_code::locked, error_code::corrupt}) {
    start({}, {.before_apply = [code](const transaction&) -> std::optional<error> {
            return error{code, "the store has failed"};
          }});
    problem_of(ask("POST", "/v1/jobs", R"({"kind":"k"})"), code == error_code::corrupt ? 500 : 503,
               code);
    server().stop();
    jobs().stop();
  }
  expect_alive_ = false;
}

TEST_F(HttpServer, ServesOnSeveralThreads) {
  start({.threads = 3});
  std::vector<wire> clients;
  for (int i = 0; i < 30; ++i) clients.push_back(connect());
  for (int round = 0; round < 10; ++round) {
    for (wire& w : clients) w.request("POST", "/v1/jobs", R"({"kind":"k"})");
    for (wire& w : clients) EXPECT_EQ(w.receive().status, 201);
  }
  EXPECT_EQ(jobs().stats().pushed, 300U);
}

// ---- where it listens

TEST_F(HttpServer, ListensOnLoopbackOnly) {
  start();
  for (const char* address : {"0.0.0.0", "::", "192.168.1.1", "8.8.8.8"}) {
    http_server other({.address = address, .port = 0});
    const auto port = other.start(jobs());
    ASSERT_FALSE(port) << address;
    EXPECT_EQ(port.error().code, error_code::invalid);
    EXPECT_NE(port.error().message.find("sluice token create"), std::string::npos);
  }
  http_server other({.address = "nonsense", .port = 0});
  EXPECT_NE(other.start(jobs()).error().message.find("expected an address"), std::string::npos);
}

TEST_F(HttpServer, ReportsThatItsPortIsInUse) {
  start();
  http_server other({.port = port()});
  const auto second = other.start(jobs());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::unavailable);
  EXPECT_NE(second.error().message.find("another program listens on it"), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::http_server_test
