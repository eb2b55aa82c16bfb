// Ends of jobs, posted to their webhooks.
#include <gtest/gtest.h>

#include <atomic>

#include "jobs/deliver/deliverer.hpp"
#include "jobs/deliver/testing/delivery_words.hpp"

namespace sluice::jobs::deliverer_webhook_test {
namespace {

using namespace sluice::jobs::testing;

class deliverer_webhook_test : public delivery_words {};

TEST_F(deliverer_webhook_test, AWebhookPostsTheEvent) {
  posting.secrets = {"a-secret-of-enough-bytes"};
  receiver endpoint([](const received&) { return json_answer(200, R"({"ignored":1})"); });
  allow({&endpoint});
  (void)d();
  const std::string event =
      R"({"id": 12, "queue":"mail","kind":"welcome","state":"done","attempts":1})";
  const job_id id = push_webhook(endpoint.url("/in/ends?x=1"), event);
  const job was = ended(id);
  EXPECT_EQ(was.state, job_state::done);
  EXPECT_FALSE(was.result);
  const received came = endpoint.requests().at(0);
  EXPECT_EQ(came.target, "/in/ends?x=1");
  EXPECT_EQ(came.body, event);
  EXPECT_EQ(came.header("sluice-delivery"), "webhook");
  EXPECT_EQ(came.header("sluice-job-id"), "12");
  EXPECT_EQ(came.header("sluice-queue"), "mail");
  EXPECT_EQ(came.header("sluice-kind"), "welcome");
  EXPECT_EQ(came.header("sluice-attempt"), "1");
  EXPECT_EQ(came.header("idempotency-key"), std::to_string(id));
  EXPECT_TRUE(came.header("sluice-signature").starts_with("t="));
}

TEST_F(deliverer_webhook_test, TheEndOfAJobIsPostedHoweverItEnded) {
  receiver endpoint([](const received&) { return answer(204); });
  allow({&endpoint});
  (void)d();
  const std::string url = endpoint.url("/in?who=me");
  const job_id one = push({.kind = "one", .webhook = url});
  EXPECT_TRUE(ack(take(), payload{R"({"n":1.10})"}));
  endpoint.await(1);
  const job_id two = push({.kind = "two", .webhook = url});
  EXPECT_TRUE(fail(take(), {.type = "oops", .message = "it broke", .for_good = true}));
  endpoint.await(2);
  const job_id three = push({.kind = "three", .webhook = url});
  EXPECT_TRUE(e().cancel(three).get());
  endpoint.await(3);
  const auto came = endpoint.requests();
  const auto has = [&](std::size_t which, const std::string& part) {
    EXPECT_NE(came.at(which).body.find(part), std::string::npos) << came.at(which).body;
  };
  has(0, R"("id":)" + std::to_string(one) + R"(,"queue":"default","kind":"one","state":"done")");
  has(0, R"("result":{"n":1.10})");
  has(1, R"("id":)" + std::to_string(two) + ",");
  has(1, R"("state":"dead")");
  has(1, R"("error":{"type":"oops","message":"it broke"})");
  has(2, R"("state":"cancelled")");
  EXPECT_EQ(came[2].header("sluice-job-id"), std::to_string(three));
  EXPECT_EQ(came[2].header("sluice-kind"), "three");
  EXPECT_EQ(came[2].target, "/in?who=me");
}

TEST_F(deliverer_webhook_test, ADeliveredJobCanHaveAWebhookToo) {
  receiver endpoint([](const received& r) {
    return r.header("sluice-delivery") == "job" ? json_answer(200, "42") : answer(200);
  });
  deliver_to(endpoint);
  push({.webhook = endpoint.url("/in/ends")});
  endpoint.await(2);
  EXPECT_EQ(endpoint.requests().at(0).header("sluice-delivery"), "job");
  EXPECT_EQ(endpoint.requests().at(1).header("sluice-delivery"), "webhook");
  EXPECT_NE(endpoint.requests().at(1).body.find(R"("result":42)"), std::string::npos);
}

TEST_F(deliverer_webhook_test, AWebhookIsRetriedAndFinallyDead) {
  receiver endpoint([](const received&) { return answer(500); });
  allow({&endpoint});
  (void)d();
  push({.webhook = endpoint.url()});
  EXPECT_TRUE(ack(take()));
  const std::string queue(webhook_queue);
  eventually([&] { return counts(queue).retrying == 1; });
  eventually([&] {
    advance_idle(queue, 1h);
    return counts(queue).dead == 1;
  });
  const auto dead = list_all({.queue = queue, .state = job_state::dead});
  EXPECT_EQ(dead.at(0).errors.back().type, "http_500");
  EXPECT_EQ(endpoint.requests().size(), dead.at(0).attempts);
  EXPECT_GT(dead.at(0).attempts, 5U);
}

TEST_F(deliverer_webhook_test, AnInvalidOrDisallowedWebhookIsDeadWithTheReason) {
  receiver endpoint([](const received&) { return answer(200); });
  allow({&endpoint});
  (void)d();
  const job refused = ended(push_webhook("https://elsewhere.example.com/", R"({"id":1})"));
  EXPECT_EQ(refused.state, job_state::dead);
  EXPECT_EQ(refused.errors.at(0).type, "url_not_allowed");
  for (const char* const args : {"[]", R"({"url":"http://a/"})", R"({"url":1,"event":{}})",
                                 R"({"url":"http://a/","event":{"id":"x"}})", ""}) {
    const job none = ended(
        push_kept({.queue = std::string(webhook_queue), .kind = "sluice.webhook", .args = {args}}));
    EXPECT_EQ(none.state, job_state::dead) << args;
    EXPECT_EQ(none.errors.at(0).type, "bad_webhook") << args;
  }
  EXPECT_TRUE(endpoint.requests().empty());
}

TEST_F(deliverer_webhook_test, WebhooksForAFailingReceiverArePostponedAndOthersContinue) {
  posting.failures_in_a_row = 2;
  posting.webhook_concurrency = 1;
  std::atomic<bool> works{false};
  receiver bad([&](const received&) { return answer(works ? 200 : 500); });
  receiver good([](const received&) { return answer(200); });
  allow({&bad, &good});
  ids to_bad;
  for (int i = 0; i < 10; ++i) to_bad.push_back(push_webhook(bad.url(), R"({"id":1})"));
  const job_id to_good = push_webhook(good.url(), R"({"id":2})");
  (void)d();
  EXPECT_EQ(ended(to_good).state, job_state::done);
  const std::string queue(webhook_queue);
  eventually([&] { return counts(queue).scheduled == 8; });
  EXPECT_EQ(bad.requests().size(), 2U);
  EXPECT_EQ(get(to_bad.back()).attempts, 0U);
  works = true;
  eventually([&] {
    advance_idle(queue, 1s);
    return counts(queue).done == 9;
  });
  EXPECT_EQ(get(to_bad.back()).attempts, 1U);
}

}  // namespace
}  // namespace sluice::jobs::deliverer_webhook_test
