// Tokens that are limited to some queues: batches, cron entries, logs and events.
#include <gtest/gtest.h>

#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_scope_test {
namespace {

using testing::reply;
using testing::wire;

class HttpScope : public testing::HttpTest {
 protected:
  // The rights of a token for the queue `mine` only, by role.
  std::string scoped(role needed) {
    return "Authorization: Bearer " +
           tokens_.create({.name = "t", .roles = {needed}, .queues = {"mine"}}, time_.now())
               .value()
               .text +
           "\r\n";
  }
  void serve() {
    http_server_options o;
    o.tokens = tokens_;
    o.time = &time_;
    o.wrong_token_delay = milliseconds(0);
    start(std::move(o));
    expect_alive_ = true;
  }
  job_id batch_in(std::string queue) {
    return jobs().push_batch({.jobs = {{.queue = std::move(queue), .kind = "k"}}}).get().value().id;
  }
  void cron_in(std::string name, std::string queue) {
    ASSERT_TRUE(jobs()
                    .set_cron({.name = std::move(name),
                               .schedule = "@daily",
                               .job = {.queue = std::move(queue), .kind = "k"}})
                    .get());
  }

  manual_time time_;
  token_set tokens_;
};

TEST_F(HttpScope, PushesBatchesIntoItsOwnQueuesOnly) {
  const std::string push = scoped(role::push);
  serve();
  EXPECT_EQ(ask("POST", "/v1/batches", R"({"jobs":[{"kind":"k","queue":"mine"}]})", push).status,
            201);
  for (const std::string body :
       {R"({"jobs":[{"kind":"k","queue":"mine"},{"kind":"k"}]})",
        R"({"jobs":[{"kind":"k","queue":"mine"}],"on_end":{"kind":"k"}})",
        R"({"jobs":[{"kind":"k","queue":"mine"}],"on_success":{"kind":"k"}})",
        R"({"jobs":[{"kind":"k","queue":"mine"}],"on_failure":{"kind":"k"}})"}) {
    const std::string why =
        problem_of(ask("POST", "/v1/batches", body, push), 403, error_code::forbidden);
    EXPECT_NE(why.find("default"), std::string::npos) << why;
  }
}

TEST_F(HttpScope, SeesBatchesOfItsOwnQueuesOnly) {
  const std::string read = scoped(role::read);
  const std::string push = scoped(role::push);
  serve();
  const std::string own = "/v1/batches/" + std::to_string(batch_in("mine"));
  const std::string other = "/v1/batches/" + std::to_string(batch_in("other"));
  EXPECT_EQ(ask("GET", own, "", read).status, 200);
  problem_of(ask("GET", other, "", read), 404, error_code::not_found);
  EXPECT_EQ(ask("GET", own + "/graph", "", read).status, 200);
  problem_of(ask("GET", other + "/graph", "", read), 404, error_code::not_found);
  problem_of(ask("POST", other + "/cancel", "", push), 404, error_code::not_found);
  problem_of(ask("POST", other + "/retry", "", push), 404, error_code::not_found);
  problem_of(ask("POST", other + "/close", "", push), 404, error_code::not_found);
  EXPECT_EQ(ask("POST", own + "/cancel", "", push).body, R"({"cancelled":1})");
  problem_of(ask("GET", "/v1/batches", "", read), 403, error_code::forbidden);
}

TEST_F(HttpScope, DoesNotSeeABatchWithoutJobs) {
  const std::string read = scoped(role::read);
  const std::string push = scoped(role::push);
  serve();
  const job_id id = jobs().push_batch({.open = true}).get().value().id;
  const std::string batch = "/v1/batches/" + std::to_string(id);
  problem_of(ask("GET", batch, "", read), 404, error_code::not_found);
  problem_of(ask("GET", batch + "/graph", "", read), 404, error_code::not_found);
  for (const std::string_view act : {"/close", "/cancel", "/retry"}) {
    problem_of(ask("POST", batch + std::string(act), "", push), 404, error_code::not_found);
  }
  EXPECT_TRUE(jobs().get_batch(id).get()->open);
}

TEST_F(HttpScope, PushesNothingThatNamesAJobOrABatchOfAnotherQueue) {
  const std::string push = scoped(role::push);
  serve();
  const auto text = [](job_id id) { return std::to_string(id); };
  const auto open_in = [&](const std::string& queue) {
    return jobs().push_batch({.open = true, .jobs = {{.queue = queue, .kind = "k"}}}).get()->id;
  };
  const job_id own = open_in("mine");
  const job_id job = jobs().push({.queue = "mine", .kind = "k"}).get()->id;
  const std::string begin = R"({"kind":"k","queue":"mine",)";
  for (const std::string& names : {"\"batch\":" + text(own), "\"after\":[" + text(own) + "]",
                                   "\"after\":[" + text(job) + "]"}) {
    const reply got = ask("POST", "/v1/jobs", begin + names + "}", push);
    EXPECT_EQ(got.status, 201) << names << got.body;
  }
  const job_id other = open_in("other");
  const job_id empty = jobs().push_batch({.open = true}).get()->id;
  const job_id others_job = jobs().push({.queue = "other", .kind = "k"}).get()->id;
  const auto before = jobs().stats().pushed;
  for (const std::string& names :
       {"\"batch\":" + text(other), "\"batch\":" + text(empty), "\"after\":[" + text(other) + "]",
        "\"after\":[" + text(job) + "," + text(others_job) + "]"}) {
    const std::string spec = begin + names + "}";
    problem_of(ask("POST", "/v1/jobs", spec, push), 404, error_code::not_found);
    problem_of(ask("POST", "/v1/jobs", R"({"jobs":[)" + spec + "]}", push), 404,
               error_code::not_found);
    if (names.find("after") == std::string::npos) continue;
    problem_of(ask("POST", "/v1/batches", R"({"jobs":[)" + spec + "]}", push), 404,
               error_code::not_found);
    problem_of(ask("POST", "/v1/batches",
                   R"({"jobs":[{"kind":"k","queue":"mine"}],"on_end":)" + spec + "}", push),
               404, error_code::not_found);
  }
  EXPECT_EQ(jobs().stats().pushed, before);
  EXPECT_EQ(jobs().get_batch(other).get()->total, 1U);
}

TEST_F(HttpScope, NamesNoOtherJobsAndBatchesInLines) {
  const std::string push = scoped(role::push);
  serve();
  const job_id other = jobs().push({.queue = "other", .kind = "k"}).get()->id;
  const reply got =
      ask("POST", "/v1/jobs",
          "{\"kind\":\"k\",\"queue\":\"mine\"}\n{\"kind\":\"k\",\"queue\":\"mine\",\"after\":[" +
              std::to_string(other) + "]}\n",
          push + "Content-Type: application/x-ndjson\r\n");
  EXPECT_EQ(got.status, 200) << got.body;
  EXPECT_NE(got.body.find("\"accepted\":1,"), std::string::npos) << got.body;
  EXPECT_NE(got.body.find("line 2: "), std::string::npos) << got.body;
  EXPECT_EQ(jobs().queue("mine")->counts.ready, 1U);
}

TEST_F(HttpScope, HidesLeasesOfOtherQueues) {
  const std::string work = scoped(role::work);
  serve();
  const auto leased_from = [&](const std::string& queue) {
    EXPECT_TRUE(jobs().push({.queue = queue, .kind = "k"}).get());
    return jobs().lease({.queues = {queue}}).get().value().at(0);
  };
  const leased_job other = leased_from("other");
  const std::string path = "/v1/jobs/" + std::to_string(other.job->id);
  const std::string key = "\"lease\":" + std::to_string(other.key);
  problem_of(ask("POST", path + "/ack", "{" + key + "}", work), 404, error_code::not_found);
  problem_of(ask("POST", path + "/extend", "{" + key + "}", work), 404, error_code::not_found);
  problem_of(ask("POST", path + "/release", "{" + key + "}", work), 404, error_code::not_found);
  problem_of(ask("POST", path + "/fail", "{" + key + R"(,"message":"m"})", work), 404,
             error_code::not_found);
  problem_of(ask("POST", path + "/progress", "{" + key + R"(,"percent":1})", work), 404,
             error_code::not_found);
  problem_of(ask("POST", path + "/logs", "{" + key + R"(,"lines":["l"]})", work), 404,
             error_code::not_found);
  EXPECT_TRUE(jobs().extend(other.ref()));

  const leased_job own = leased_from("mine");
  const leased_job more = leased_from("mine");
  const auto item = [](const leased_job& l) {
    return "{\"id\":" + std::to_string(l.job->id) + ",\"lease\":" + std::to_string(l.key) + "}";
  };
  const reply many =
      ask("POST", "/v1/acks",
          R"({"acks":[)" + item(own) + "," + item(other) + "," + item(more) + "]}", work);
  EXPECT_EQ(many.status, 200) << many.body;
  EXPECT_NE(many.body.find("not_found"), std::string::npos) << many.body;
  EXPECT_EQ(jobs().stats().running, 1U);
  EXPECT_TRUE(jobs().extend(other.ref()));
  const leased_job last = leased_from("mine");
  const std::string ack = "{\"lease\":" + std::to_string(last.key) + "}";
  const std::string mine_path = "/v1/jobs/" + std::to_string(last.job->id);
  EXPECT_EQ(ask("POST", mine_path + "/extend", ack, work).status, 200);
  EXPECT_EQ(ask("POST", mine_path + "/ack", ack, work).status, 204);
  problem_of(ask("POST", mine_path + "/ack", ack, work), 409, error_code::lease_lost);
}

TEST_F(HttpScope, SeesCronEntriesOfItsOwnQueuesOnly) {
  const std::string read = scoped(role::read);
  const std::string admin = scoped(role::admin);
  serve();
  cron_in("a", "mine");
  cron_in("b", "other");
  const auto all = HttpTest::read<std::vector<cron_info>>(ask("GET", "/v1/crons", "", read));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].entry.spec.name, "a");
  EXPECT_EQ(ask("GET", "/v1/crons/a", "", read).status, 200);
  problem_of(ask("GET", "/v1/crons/b", "", read), 404, error_code::not_found);
  for (const std::string_view act : {"/pause", "/resume", "/run"}) {
    problem_of(ask("POST", "/v1/crons/b" + std::string(act), "", admin), 404,
               error_code::not_found);
  }
  problem_of(ask("DELETE", "/v1/crons/b", "", admin), 404, error_code::not_found);
  problem_of(ask("PATCH", "/v1/crons/b", "{}", admin), 404, error_code::not_found);
  // It can neither replace an entry of another queue, nor create one.
  problem_of(ask("PUT", "/v1/crons/b", R"({"schedule":"@daily","job":{"kind":"k","queue":"mine"}})",
                 admin),
             404, error_code::not_found);
  problem_of(ask("PUT", "/v1/crons/c", R"({"schedule":"@daily","job":{"kind":"k"}})", admin), 403,
             error_code::forbidden);
  EXPECT_EQ(jobs().get_cron("b")->entry.spec.job.queue, "other");
  EXPECT_EQ(ask("DELETE", "/v1/crons/a", "", admin).status, 204);
}

TEST_F(HttpScope, ReceivesEventsOfItsOwnQueuesOnly) {
  const std::string read = scoped(role::read);
  serve();
  wire w = connect();
  w.request("GET", "/v1/events", "", read);
  EXPECT_EQ(w.receive_head().status, 200);
  w.next_chunk();
  const auto start = jobs().events({}, wait_limits(deadline::after(milliseconds(0)))).get().value();
  ASSERT_TRUE(jobs().push({.queue = "other", .kind = "k"}).get());
  ASSERT_TRUE(jobs().push({.queue = "mine", .kind = "k"}).get());
  std::string received;
  while (received.find("event: pushed") == std::string::npos) {
    const std::string more = w.next_chunk();
    ASSERT_FALSE(more.empty());
    received += more;
  }
  EXPECT_EQ(received.find("other"), std::string::npos) << received;
  EXPECT_NE(received.find("\"queue\":\"mine\""), std::string::npos) << received;
  const auto page = HttpTest::read<event_page>(ask(
      "GET",
      "/v1/events?format=json&after=" + json::to_string(json::event_place{start.epoch, start.next}),
      "", read));
  ASSERT_EQ(page.events.size(), 1U);
  EXPECT_EQ(page.events[0].queue, "mine");
  problem_of(ask("GET", "/v1/events?queue=other", "", read), 403, error_code::forbidden);
}

TEST_F(HttpScope, ReceivesNoEventsAfterTheTokenIsRevokedOrExpired) {
  enum class ending { revoked, removed, over };
  const unix_time end = time_.now() + milliseconds(60'000);
  std::vector<token_set::created> made;
  for (int i = 0; i < 3; ++i) {
    made.push_back(
        tokens_.create({.name = "t", .roles = {role::read}, .expires_at = end}, time_.now())
            .value());
  }
  serve();
  for (const ending ends : {ending::revoked, ending::removed, ending::over}) {
    const token_set::created& one = made[static_cast<std::size_t>(ends)];
    wire w = connect();
    w.request("GET", "/v1/events", "", "Authorization: Bearer " + one.text + "\r\n");
    ASSERT_EQ(w.receive_head().status, 200);
    w.next_chunk();
    ASSERT_TRUE(jobs().push({.queue = "before", .kind = "k"}).get());
    while (w.next_chunk().find("event: pushed") == std::string::npos) {
    }
    if (ends == ending::revoked) {
      ASSERT_TRUE(tokens_.revoke(one.info.id));
    }
    if (ends == ending::removed) {
      ASSERT_TRUE(tokens_.remove(one.info.id));
    }
    if (ends == ending::over) time_.advance(milliseconds(60'000));
    server().use_tokens(tokens_);
    ASSERT_TRUE(jobs().push({.queue = "secret", .kind = "k"}).get());
    std::string received;
    while (received.find("secret") == std::string::npos) {
      const std::string more = w.next_chunk();
      if (more.empty()) break;
      received += more;
    }
    EXPECT_TRUE(w.clean_end());
    EXPECT_NE(received.find("unauthenticated"), std::string::npos) << received;
    EXPECT_EQ(received.find("secret"), std::string::npos) << received;
  }
}

TEST_F(HttpScope, ReadsLogsOfItsOwnQueuesOnly) {
  const std::string read = scoped(role::read);
  serve();
  const auto own = jobs().push({.queue = "mine", .kind = "k"}).get()->id;
  const auto other = jobs().push({.queue = "other", .kind = "k"}).get()->id;
  EXPECT_EQ(ask("GET", "/v1/jobs/" + std::to_string(own) + "/logs", "", read).status, 200);
  problem_of(ask("GET", "/v1/jobs/" + std::to_string(other) + "/logs", "", read), 404,
             error_code::not_found);
}

}  // namespace
}  // namespace sluice::jobs::http_scope_test
