// Batches, workflows, keys, cron entries, progress and logs, over a real socket.
#include <gtest/gtest.h>

#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_groups_test {
namespace {

using namespace std::chrono_literals;
using testing::reply;

class HttpGroups : public testing::HttpTest {
 protected:
  static std::string path(job_id id, std::string_view suffix = "") {
    return "/v1/jobs/" + std::to_string(id) + std::string(suffix);
  }
  static std::string batch(job_id id, std::string_view suffix = "") {
    return "/v1/batches/" + std::to_string(id) + std::string(suffix);
  }
  static std::string with(const leased_job& l, std::string_view more = "") {
    return "{\"lease\":" + std::to_string(l.key) + std::string(more) + "}";
  }
  batch_receipt push_batch(std::string_view body) {
    const reply r = ask("POST", "/v1/batches", body);
    EXPECT_EQ(r.status, 201) << r.body;
    return read<batch_receipt>(r);
  }
  job get(job_id id) { return read<job>(ask("GET", path(id))); }
  // Leases and acks the next job; returns its id.
  job_id work() {
    const leased_job l = lease();
    if (l.job == nullptr) return 0;
    EXPECT_EQ(ask("POST", path(l.job->id, "/ack"), with(l)).status, 204);
    return l.job->id;
  }
  void die() {
    const leased_job l = lease();
    EXPECT_EQ(ask("POST", path(l.job->id, "/fail"), with(l, R"(,"for_good":true)")).status, 200);
  }
  std::string refused(std::string_view method, std::string_view target,
                      std::string_view body = "") {
    return problem_of(ask(method, target, body), 400, error_code::invalid);
  }
};

// ---- batches

TEST_F(HttpGroups, RunAWorkflowInItsOrderAndThenItsCallback) {
  start();
  const reply r = ask("POST", "/v1/batches", R"({"name":"trip","jobs":[
      {"kind":"flight","step":"flight"},
      {"kind":"hotel","step":"hotel","after":["flight"]},
      {"kind":"mail","after":["flight",{"step":"hotel","when":"end"}]}],
      "on_success":{"kind":"thank"}})");
  ASSERT_EQ(r.status, 201) << r.body;
  const auto receipt = read<batch_receipt>(r);
  EXPECT_EQ(r.header("location"), "/v1/batches/" + std::to_string(receipt.id));
  ASSERT_EQ(receipt.jobs.size(), 3U);
  EXPECT_NE(receipt.on_success, 0U);
  EXPECT_EQ(get(receipt.jobs[1]).state, job_state::held);
  EXPECT_EQ(get(receipt.jobs[1]).blockers, 1U);
  EXPECT_EQ(get(receipt.on_success).state, job_state::held);

  auto info = read<batch_info>(ask("GET", batch(receipt.id)));
  EXPECT_EQ(info.name, "trip");
  EXPECT_EQ(info.total, 3U);
  EXPECT_EQ(info.pending, 3U);
  EXPECT_EQ(info.state(), batch_state::running);

  EXPECT_EQ(work(), receipt.jobs[0]);
  EXPECT_EQ(work(), receipt.jobs[1]);
  EXPECT_EQ(work(), receipt.jobs[2]);
  info = read<batch_info>(ask("GET", batch(receipt.id)));
  EXPECT_EQ(info.state(), batch_state::done);
  EXPECT_EQ(work(), receipt.on_success);
  EXPECT_EQ(ask("POST", "/v1/leases", "{}").status, 204);
}

TEST_F(HttpGroups, ListBatchesAndTheirJobs) {
  start();
  const auto first = push_batch(R"({"jobs":[{"kind":"a"},{"kind":"b"}]})");
  const auto second = push_batch(R"({"jobs":[{"kind":"c"}]})");
  auto page = read<batch_page>(ask("GET", "/v1/batches?limit=1"));
  ASSERT_EQ(page.batches.size(), 1U);
  EXPECT_EQ(page.batches[0].id, first.id);
  ASSERT_TRUE(page.cursor);
  page = read<batch_page>(ask("GET", "/v1/batches?after=" + std::to_string(*page.cursor)));
  ASSERT_EQ(page.batches.size(), 1U);
  EXPECT_EQ(page.batches[0].id, second.id);
  const auto jobs = read<job_page>(ask("GET", "/v1/jobs?batch=" + std::to_string(first.id)));
  ASSERT_EQ(jobs.jobs.size(), 2U);
  EXPECT_EQ(jobs.jobs[0].spec.batch, first.id);
  problem_of(ask("GET", "/v1/batches/4711"), 404, error_code::not_found);
  EXPECT_NE(
      problem_of(ask("GET", "/v1/batches/x"), 404, error_code::not_found).find("no batch 'x'"),
      std::string::npos);
}

TEST_F(HttpGroups, PushMoreIntoABatchUntilItIsClosed) {
  start();
  const auto made = push_batch(R"({"open":true,"on_end":{"kind":"after"}})");
  push("{\"kind\":\"more\",\"batch\":" + std::to_string(made.id) + "}");
  EXPECT_EQ(read<batch_info>(ask("GET", batch(made.id))).total, 1U);
  const auto closed = read<batch_info>(ask("POST", batch(made.id, "/close")));
  EXPECT_FALSE(closed.open);
  EXPECT_NE(work(), made.on_end);
  EXPECT_EQ(work(), made.on_end);
  const reply late =
      ask("POST", "/v1/jobs", "{\"kind\":\"k\",\"batch\":" + std::to_string(made.id) + "}");
  EXPECT_EQ(late.status, 409) << late.body;
}

TEST_F(HttpGroups, CancelAndRetryAWholeBatch) {
  start();
  const auto made = push_batch(R"({"jobs":[{"kind":"a"},{"kind":"b"},{"kind":"c"}]})");
  die();
  EXPECT_EQ(ask("POST", batch(made.id, "/cancel")).body, R"({"cancelled":2})");
  EXPECT_EQ(read<batch_info>(ask("GET", batch(made.id))).failed, 3U);
  EXPECT_EQ(ask("POST", batch(made.id, "/retry")).body, R"({"retried":3})");
  EXPECT_EQ(read<batch_info>(ask("GET", batch(made.id))).pending, 3U);
  problem_of(ask("POST", "/v1/batches/999/cancel"), 404, error_code::not_found);
  problem_of(ask("POST", "/v1/batches/999/retry"), 404, error_code::not_found);
  problem_of(ask("POST", "/v1/batches/999/close"), 404, error_code::not_found);
}

TEST_F(HttpGroups, ReportTheErrorOfAWorkflow) {
  start();
  EXPECT_NE(refused("POST", "/v1/batches",
                    R"({"jobs":[{"kind":"a","step":"a","after":["b"]},)"
                    R"({"kind":"b","step":"b","after":["a"]}]})")
                .find("form a cycle: 'a' after 'b' after 'a'"),
            std::string::npos);
  EXPECT_NE(refused("POST", "/v1/batches", R"({"jobs":[{"kind":"a","after":["nowhere"]}]})")
                .find("there is no step 'nowhere'"),
            std::string::npos);
  EXPECT_NE(refused("POST", "/v1/batches", R"({"jobs":[{"kind":"a"},{"kind":""}]})").find("job 2"),
            std::string::npos);
  EXPECT_EQ(refused("POST", "/v1/batches", R"({"jobs":[{"kind":"a","after":[{}]}]})"),
            "jobs[0].after[0]: a dependency must have exactly one of job, batch and step "
            "(line 1, column 31)");
  EXPECT_EQ(refused("POST", "/v1/workflows", R"({"name":"x"})"),
            "jobs: a workflow must have at least one job");
  EXPECT_EQ(ask("POST", "/v1/workflows", R"({"jobs":[{"kind":"a"}]})").status, 201);
}

TEST_F(HttpGroups, DrawAWorkflow) {
  start();
  const auto made = push_batch(R"({"name":"a \"b\"","jobs":[
      {"kind":"one","step":"first"},
      {"kind":"two","step":"second","after":["first"]},
      {"kind":"three","after":[{"step":"second","when":"failure"}]}]})");
  const reply mermaid = ask("GET", batch(made.id, "/graph"));
  EXPECT_EQ(mermaid.status, 200);
  EXPECT_EQ(mermaid.header("content-type"), "text/plain; charset=utf-8");
  const auto j = [&](std::size_t i) { return "j" + std::to_string(made.jobs[i]); };
  EXPECT_TRUE(mermaid.body.starts_with("%% batch ")) << mermaid.body;
  const std::vector<std::string> parts = {"flowchart TD\n", j(0) + "[\"first<br/>one ",
                                          "<br/>ready\"]:::ready\n", j(0) + " --> " + j(1) + "\n",
                                          j(1) + " -. on failure .-> " + j(2) + "\n"};
  for (const std::string& part : parts) {
    EXPECT_NE(mermaid.body.find(part), std::string::npos) << part << "\n" << mermaid.body;
  }
  const reply dot = ask("GET", batch(made.id, "/graph?format=dot"));
  EXPECT_EQ(dot.status, 200);
  EXPECT_NE(dot.body.find("digraph batch {"), std::string::npos);
  EXPECT_NE(dot.body.find(j(0) + " -> " + j(1) + ";"), std::string::npos) << dot.body;
  EXPECT_EQ(refused("GET", batch(made.id, "/graph?format=png")),
            "the parameter 'format': expected mermaid or dot");
  problem_of(ask("GET", "/v1/batches/999/graph"), 404, error_code::not_found);
}

TEST_F(HttpGroups, ReportASkippedJob) {
  start();
  // A deleted job counts as done: it cannot fail.
  push(R"({"kind":"a"})");
  const job_id id = work();
  const reply r =
      ask("POST", "/v1/jobs",
          "{\"kind\":\"b\",\"after\":[{\"job\":" + std::to_string(id) + ",\"when\":\"failure\"}]}");
  EXPECT_EQ(r.status, 202) << r.body;
  EXPECT_EQ(r.body, R"({"skipped":true})");
}

TEST_F(HttpGroups, RunJobsOfOneKeyOneAtATime) {
  start();
  push(R"({"kind":"a","key":"ada"})");
  push(R"({"kind":"b","key":"ada","priority":5})");
  const leased_job first = lease();
  EXPECT_EQ(first.job->spec.kind, "a");
  EXPECT_EQ(ask("POST", "/v1/leases", "{}").status, 204);
  ask("POST", path(first.job->id, "/ack"), with(first));
  EXPECT_EQ(lease().job->spec.kind, "b");
}

TEST_F(HttpGroups, LimitAQueue) {
  start();
  const reply set = ask("PATCH", "/v1/queues/default",
                        R"({"rate":5,"rate_burst":2,"concurrency":1,"weight":3,)"
                        R"("key_concurrency":2,"key_rate":1,"key_burst":4})");
  const auto info = read<queue_info>(set);
  EXPECT_EQ(info.options.rate, 5);
  EXPECT_EQ(info.options.concurrency, 1U);
  push();
  push();
  lease();
  EXPECT_EQ(ask("POST", "/v1/leases", "{}").status, 204) << "one at a time";
  EXPECT_NE(refused("PATCH", "/v1/queues/default", R"({"weight":0})").find("weight"),
            std::string::npos);
  const std::string why =
      refused("PATCH", "/v1/queues/default", R"({"deliver":{"url":"http://a.example/"}})");
  EXPECT_EQ(why, "deliver.url: this server posts to no URL");
  EXPECT_EQ(jobs().queue("default")->options.deliver.url, "");
}

// ---- progress and logs

TEST_F(HttpGroups, ReportProgressAndLogsOfAJob) {
  start();
  const job_id id = push();
  const leased_job l = lease();
  EXPECT_EQ(
      ask("POST", path(id, "/progress"), with(l, R"(,"percent":40,"text":"half way")")).status,
      204);
  auto j = get(id);
  ASSERT_TRUE(j.progress);
  EXPECT_EQ(*j.progress, (progress{40, "half way"}));
  EXPECT_EQ(ask("POST", path(id, "/extend"), with(l, R"(,"progress":{"percent":60})")).status, 200);
  EXPECT_EQ(get(id).progress->percent, 60);

  EXPECT_EQ(ask("POST", path(id, "/logs"), with(l, R"(,"lines":["one","two"])")).status, 204);
  EXPECT_EQ(ask("POST", path(id, "/logs"), with(l, R"(,"lines":["three"])")).status, 204);
  auto page = read<log_page>(ask("GET", path(id, "/logs?limit=2")));
  ASSERT_EQ(page.lines.size(), 2U);
  EXPECT_EQ(page.lines[0].text, "one");
  EXPECT_EQ(page.lines[0].attempt, 1U);
  ASSERT_TRUE(page.cursor);
  page = read<log_page>(ask("GET", path(id, "/logs?after=" + std::to_string(*page.cursor))));
  ASSERT_EQ(page.lines.size(), 1U);
  EXPECT_EQ(page.lines[0].text, "three");

  problem_of(ask("POST", path(id, "/progress"), R"({"lease":1,"percent":1})"), 409,
             error_code::lease_lost);
  problem_of(ask("POST", path(id, "/logs"), R"({"lease":1,"lines":["x"]})"), 409,
             error_code::lease_lost);
  EXPECT_EQ(refused("POST", path(id, "/progress"), with(l, R"(,"percent":400)")),
            "percent: expected a number from 0 to 100, found 400 (line 1, column " +
                std::to_string(with(l).size() + 11) + ")");
  problem_of(ask("GET", "/v1/jobs/999/logs"), 404, error_code::not_found);
}

// ---- cron

TEST_F(HttpGroups, KeepCronEntries) {
  start();
  const reply set =
      ask("PUT", "/v1/crons/report",
          R"({"schedule":"30 4 * * *","zone":"Europe/Berlin","job":{"kind":"report"}})");
  ASSERT_EQ(set.status, 200) << set.body;
  auto info = read<cron_info>(set);
  EXPECT_EQ(info.entry.spec.name, "report");
  EXPECT_EQ(info.upcoming.size(), 5U);
  EXPECT_EQ(read<std::vector<cron_info>>(ask("GET", "/v1/crons")).size(), 1U);
  EXPECT_TRUE(read<cron_info>(ask("POST", "/v1/crons/report/pause")).entry.spec.paused);
  EXPECT_FALSE(read<cron_info>(ask("POST", "/v1/crons/report/resume")).entry.spec.paused);
  EXPECT_TRUE(
      read<cron_info>(ask("PATCH", "/v1/crons/report", R"({"paused":true})")).entry.spec.paused);
  const auto run = read<push_receipt>(ask("POST", "/v1/crons/report/run"));
  EXPECT_EQ(get(run.id).spec.kind, "report");
  info = read<cron_info>(ask("GET", "/v1/crons/report"));
  EXPECT_EQ(info.entry.spec.zone, "Europe/Berlin");
  EXPECT_EQ(ask("DELETE", "/v1/crons/report").status, 204);
  problem_of(ask("GET", "/v1/crons/report"), 404, error_code::not_found);
  problem_of(ask("DELETE", "/v1/crons/report"), 404, error_code::not_found);
  problem_of(ask("POST", "/v1/crons/report/pause"), 404, error_code::not_found);
  problem_of(ask("POST", "/v1/crons/report/resume"), 404, error_code::not_found);
  problem_of(ask("POST", "/v1/crons/report/run"), 404, error_code::not_found);
  problem_of(ask("PATCH", "/v1/crons/report", "{}"), 404, error_code::not_found);
}

TEST_F(HttpGroups, ReportTheErrorOfACronEntry) {
  start();
  EXPECT_NE(refused("PUT", "/v1/crons/a", R"({"schedule":"61 * * * *","job":{"kind":"k"}})")
                .find("column 1: minute '61'"),
            std::string::npos);
  EXPECT_NE(refused("PUT", "/v1/crons/a",
                    R"({"schedule":"@daily","zone":"Mars/Base","job":{"kind":"k"}})")
                .find("Mars/Base"),
            std::string::npos);
  EXPECT_NE(refused("PUT", "/v1/crons/a", R"({"name":"b","schedule":"@daily","job":{"kind":"k"}})")
                .find("the body has 'b', but the path has 'a'"),
            std::string::npos);
  EXPECT_NE(refused("PUT", "/v1/crons/a", R"({"schedule":"@daily","job":{}})")
                .find("job: the field \"kind\" is missing"),
            std::string::npos);
}

TEST_F(HttpGroups, CheckAScheduleWithoutStoringIt) {
  start();
  const auto times =
      read<json::cron_times>(ask("POST", "/v1/crons/check", R"({"schedule":"0 0 1 1 *"})"));
  EXPECT_EQ(times.upcoming.size(), 5U);
  EXPECT_FALSE(times.describes.empty());
  EXPECT_NE(refused("POST", "/v1/crons/check", R"({"schedule":"* * * *"})").find("cron '* * * *'"),
            std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/crons").body, R"({"crons":[]})");
}

}  // namespace
}  // namespace sluice::jobs::http_groups_test
