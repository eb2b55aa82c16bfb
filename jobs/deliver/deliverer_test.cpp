// Posted requests, and outcomes by response.
#include "jobs/deliver/deliverer.hpp"

#include <gtest/gtest.h>

#include "jobs/deliver/signature.hpp"
#include "jobs/deliver/testing/delivery_words.hpp"
#include "jobs/deliver/testing/test_authority.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::deliverer_test {
namespace {

using namespace sluice::jobs::testing;

class deliverer_test : public delivery_words {};

TEST_F(deliverer_test, PostsTheJobWithItsHeaders) {
  receiver endpoint([](const received&) { return answer(200); });
  deliver_to(endpoint);
  const job_id id = push_kept(
      {.kind = "mail", .args = {R"({"to":"ada","n":1.10})"}, .metadata = R"({"trace":"x"})"});
  EXPECT_EQ(ended(id).state, job_state::done);
  const received came = endpoint.requests().at(0);
  const std::string number = std::to_string(id);
  EXPECT_EQ(came.method, "POST");
  EXPECT_EQ(came.target, "/in");
  EXPECT_EQ(came.body, R"({"id":)" + number +
                           R"(,"queue":"default","kind":"mail","attempt":1,)"
                           R"("args":{"to":"ada","n":1.10},"metadata":{"trace":"x"}})");
  EXPECT_EQ(came.header("content-type"), "application/json");
  EXPECT_EQ(came.header("user-agent"), "sluice/1.2.3");
  EXPECT_EQ(came.header("sluice-delivery"), "job");
  EXPECT_EQ(came.header("sluice-job-id"), number);
  EXPECT_EQ(came.header("sluice-queue"), "default");
  EXPECT_EQ(came.header("sluice-kind"), "mail");
  EXPECT_EQ(came.header("sluice-attempt"), "1");
  EXPECT_EQ(came.header("idempotency-key"), number);
  EXPECT_EQ(came.header("sluice-signature"), "");
}

TEST_F(deliverer_test, PostsBytesAsBase64AndNoArgumentsAsNone) {
  receiver endpoint([](const received&) { return answer(200); });
  deliver_to(endpoint, 1);
  ended(push_kept({.args = {std::string("\0\xFF", 2), content_type::bytes}}));
  ended(push_kept({}));
  EXPECT_NE(endpoint.requests().at(0).body.find(R"("args_base64":"AP8=")"), std::string::npos);
  EXPECT_EQ(endpoint.requests().at(1).body.find("args"), std::string::npos);
}

TEST_F(deliverer_test, AKindCannotAddAHeader) {
  receiver endpoint([](const received&) { return answer(200); });
  deliver_to(endpoint);
  ended(push_kept({.kind = "a\r\nX-Evil: 1\r\n\r\nüb 100%"}));
  const received came = endpoint.requests().at(0);
  EXPECT_EQ(came.header("x-evil"), "");
  EXPECT_EQ(came.header("sluice-kind"), "a%0D%0AX-Evil: 1%0D%0A%0D%0A%C3%BCb 100%25");
}

TEST_F(deliverer_test, TheReceiverCanVerifyTheSignature) {
  posting.secrets = {"the-newer-of-two-secrets", "the-older-of-two-secrets"};
  receiver endpoint([](const received&) { return answer(200); });
  deliver_to(endpoint);
  ended(push_kept({.args = {R"({"amount":7})"}}));
  const received came = endpoint.requests().at(0);
  for (const std::string& secret : posting.secrets) {
    const auto fine =
        verify_signature(came.header("sluice-signature"), came.body, {secret}, time.now());
    EXPECT_TRUE(fine) << fine.error().message;
  }
  EXPECT_FALSE(verify_signature(came.header("sluice-signature"), came.body + " ", posting.secrets,
                                time.now()));
}

// ---- 2xx

TEST_F(deliverer_test, AJsonResponseIsTheResult) {
  receiver endpoint([](const received&) {
    return answer(201, " {\"n\": 1.10}\n", "Content-Type: Application/JSON; charset=utf-8\r\n");
  });
  deliver_to(endpoint);
  const job was = ended(push_kept());
  EXPECT_EQ(was.state, job_state::done);
  ASSERT_TRUE(was.result);
  EXPECT_EQ(was.result->data, "{\"n\": 1.10}");
  eventually([&] { return stats_of().delivered == 1; });
}

TEST_F(deliverer_test, AnyOther2xxResponseIsDoneWithoutAResult) {
  receiver endpoint([](const received& r) {
    if (r.header("sluice-kind") == "empty") return json_answer(200, "");
    if (r.header("sluice-kind") == "none") return answer(204);
    return answer(202, "thank you", "Content-Type: text/plain\r\n");
  });
  deliver_to(endpoint);
  for (const char* const kind : {"empty", "none", "text"}) {
    const job was = ended(push_kept({.kind = kind}));
    EXPECT_EQ(was.state, job_state::done) << kind;
    EXPECT_FALSE(was.result) << kind;
  }
  EXPECT_TRUE(events_of(delivery_event::event_kind::result_dropped).empty());
}

TEST_F(deliverer_test, AResultThatCannotBeStoredIsReportedAndTheJobDone) {
  posting.answer_bytes_max = 100;
  receiver endpoint([](const received& r) {
    return json_answer(
        200, r.header("sluice-kind") == "bad" ? "{oops" : "\"" + std::string(200, 'x') + "\"");
  });
  deliver_to(endpoint, 1);
  for (const char* const kind : {"bad", "large"}) {
    const job was = ended(push_kept({.kind = kind}));
    EXPECT_EQ(was.state, job_state::done) << kind;
    EXPECT_FALSE(was.result) << kind;
  }
  eventually([&] { return events_of(delivery_event::event_kind::result_dropped).size() == 2; });
  EXPECT_NE(events_of(delivery_event::event_kind::result_dropped)[0].message.find("not JSON"),
            std::string::npos);
  EXPECT_NE(events_of(delivery_event::event_kind::result_dropped)[1].message.find("100 bytes"),
            std::string::npos);
}

// ---- retries

class retried_status_test : public delivery_words, public ::testing::WithParamInterface<int> {};

TEST_P(retried_status_test, IsRetried) {
  receiver endpoint([](const received&) { return answer(GetParam(), " out of paper\n"); });
  deliver_to(endpoint);
  const job was = retrying(push_kept());
  ASSERT_EQ(was.errors.size(), 1U);
  EXPECT_EQ(was.errors[0].type, "http_" + std::to_string(GetParam()));
  EXPECT_NE(was.errors[0].message.find(endpoint.url()), std::string::npos) << was.errors[0].message;
  EXPECT_NE(was.errors[0].message.find("answered " + std::to_string(GetParam()) + ": out of paper"),
            std::string::npos)
      << was.errors[0].message;
  eventually([&] { return stats_of().failed == 1; });
}
INSTANTIATE_TEST_SUITE_P(every, retried_status_test,
                         ::testing::Values(408, 425, 429, 500, 502, 503, 504, 599));

class final_status_test : public delivery_words, public ::testing::WithParamInterface<int> {};

TEST_P(final_status_test, IsDeadAtOnce) {
  receiver endpoint([](const received&) {
    return answer(GetParam(), "no", "Location: http://127.0.0.1:1/x?token=secret\r\n");
  });
  deliver_to(endpoint);
  const job was = ended(push_kept());
  EXPECT_EQ(was.state, job_state::dead);
  EXPECT_EQ(was.attempts, 1U);
  EXPECT_EQ(was.errors.at(0).type, "http_" + std::to_string(GetParam()));
  EXPECT_EQ(was.errors.at(0).message.find("secret"), std::string::npos);
  eventually([&] { return stats_of().rejected == 1; });
  EXPECT_EQ(endpoint.requests().size(), 1U);
}
INSTANTIATE_TEST_SUITE_P(every, final_status_test,
                         ::testing::Values(300, 301, 302, 307, 308, 400, 401, 403, 404, 409, 410,
                                           413, 422));

TEST_F(deliverer_test, ARedirectIsNotFollowedAndIsReported) {
  receiver elsewhere([](const received&) { return answer(200); });
  receiver endpoint([&](const received&) {
    return answer(302, "", "Location: " + elsewhere.url("/in?x") + "\r\n");
  });
  allow({&endpoint, &elsewhere});
  deliver_to(endpoint);
  const job was = ended(push_kept());
  EXPECT_NE(was.errors.at(0).message.find("not followed (to " + elsewhere.url("/in?...") + ")"),
            std::string::npos)
      << was.errors.at(0).message;
  EXPECT_TRUE(elsewhere.requests().empty());
}

TEST_F(deliverer_test, AMissingResponseIsRetriedWithItsReason) {
  receiver endpoint([](const received& r) -> reply_bytes {
    if (r.header("sluice-kind") == "reset") return {"", reply_bytes::then::reset};
    if (r.header("sluice-kind") == "closed") return {"", reply_bytes::then::close};
    return {"nonsense\r\n\r\n", reply_bytes::then::close};
  });
  posting.failures_in_a_row = 100;
  deliver_to(endpoint);
  EXPECT_EQ(retrying(push_kept({.kind = "reset"})).errors.at(0).type, "connection_lost");
  EXPECT_EQ(retrying(push_kept({.kind = "closed"})).errors.at(0).type, "connection_lost");
  EXPECT_EQ(retrying(push_kept({.kind = "garbage"})).errors.at(0).type, "bad_answer");
}

TEST_F(deliverer_test, ARefusedConnectionIsRetried) {
  std::string url;
  {
    url = receiver([](const received&) { return answer(200); }).url();
  }
  posting.rules = url_rules::parse({url}).value();
  deliver("default", {.url = url});
  const job was = retrying(push_kept());
  EXPECT_EQ(was.errors.at(0).type, "connect_failed");
  EXPECT_NE(was.errors.at(0).message.find(url + ": cannot connect"), std::string::npos);
}

TEST_F(deliverer_test, ASlowResponseIsRetriedAfterTheTimeout) {
  receiver endpoint([](const received&) -> reply_bytes {
    return {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"};
  });
  deliver_to(endpoint, 1, 5s);
  const job_id id = push_kept();
  endpoint.await(1);
  time.advance(5s);
  EXPECT_EQ(retrying(id).errors.at(0).type, "timed_out");
}

TEST_F(deliverer_test, TheTimeLimitOfAJobAppliesIfShorter) {
  event go;
  receiver endpoint([&](const received&) {
    go.wait();
    return answer(200);
  });
  deliver_to(endpoint, 1, 30s);
  const job_id id = push_kept({.time_limit = 2s});
  endpoint.await(1);
  time.advance(2s);
  EXPECT_EQ(retrying(id).errors.at(0).type, "timed_out");
  go.set();
}

TEST_F(deliverer_test, RetryAfterSetsTheTimeOfTheRetry) {
  receiver endpoint([](const received& r) {
    // The manual clock is at 2026-01-01T00:00:00Z.
    return answer(r.header("sluice-kind") == "date" ? 500 : 502, "",
                  r.header("sluice-kind") == "date"
                      ? "Retry-After: Thu, 01 Jan 2026 00:01:40 GMT\r\n"
                      : "Retry-After: 7\r\n");
  });
  deliver_to(endpoint);
  EXPECT_EQ(retrying(push_kept({.kind = "seconds"})).due_at, time.now() + 7s);
  EXPECT_EQ(retrying(push_kept({.kind = "date"})).due_at, time.now() + 100s);
}

TEST_F(deliverer_test, TheLastAttemptIsDead) {
  receiver endpoint([](const received&) { return answer(500); });
  deliver_to(endpoint);
  const job was = ended(push_kept({.retry = {.attempts_max = 1}}));
  EXPECT_EQ(was.state, job_state::dead);
}

TEST_F(deliverer_test, AnAttemptPostsOnce) {
  receiver endpoint([](const received& r) { return r.number == 2 ? no_answer() : answer(200); });
  deliver_to(endpoint, 1);
  EXPECT_EQ(ended(push_kept()).state, job_state::done);
  const job lost = ended(push_kept({.retry = {.attempts_max = 1}}));
  EXPECT_EQ(lost.state, job_state::dead);
  EXPECT_EQ(lost.errors.at(0).type, "connection_lost");
  EXPECT_EQ(endpoint.requests().size(), 2U);
}

TEST_F(deliverer_test, ASecondAttemptHasItsNumberAndTheSameIdempotencyKey) {
  receiver endpoint(
      [](const received& r) { return answer(r.header("sluice-attempt") == "1" ? 500 : 200); });
  deliver_to(endpoint);
  const job_id id = push_kept({.retry = {.first = 10s, .jitter = 0}});
  retrying(id);
  advance(10s);
  EXPECT_EQ(ended(id).state, job_state::done);
  EXPECT_EQ(endpoint.requests().at(1).header("sluice-attempt"), "2");
  EXPECT_EQ(endpoint.requests().at(1).header("idempotency-key"), std::to_string(id));
}

// ---- targets

TEST_F(deliverer_test, StartsWithTheConfiguredTargets) {
  receiver endpoint([](const received&) { return answer(200); });
  allow({&endpoint});
  configure({.deliver_url = endpoint.url()}, "posted");
  (void)d();
  EXPECT_EQ(ended(push_kept({.queue = "posted"})).state, job_state::done);
  const job_id other = push_kept({.queue = "workers"});
  settle();
  EXPECT_EQ(state(other), job_state::ready);
}

TEST_F(deliverer_test, TheRulesRejectATargetAndAWebhookAtOnce) {
  const auto rules = url_rules::parse({"https://hooks.example.com/in"}).value();
  options.check_url = [&](std::string_view url) { return rules.check(url); };
  const auto target = e().configure("q", {.deliver_url = "http://10.0.0.1/"}).get();
  ASSERT_FALSE(target);
  EXPECT_NE(target.error().message.find("[delivery] allow"), std::string::npos);
  const auto pushed = try_push({.webhook = "https://hooks.example.com@10.0.0.1/in"});
  ASSERT_FALSE(pushed);
  EXPECT_NE(pushed.error().message.find("user name"), std::string::npos);
  EXPECT_TRUE(try_push({.webhook = "https://hooks.example.com/in/7"}));
}

TEST_F(deliverer_test, RefreshAddsChangesAndRemovesTargets) {
  receiver a([](const received&) { return answer(200); });
  receiver b([](const received&) { return answer(200); });
  allow({&a, &b});
  (void)d();
  const job_id waits = push_kept();
  settle();
  EXPECT_EQ(state(waits), job_state::ready);
  deliver("default", {.url = a.url()});
  EXPECT_EQ(ended(waits).state, job_state::done);
  deliver("default", {.url = b.url()});
  EXPECT_EQ(ended(push_kept()).state, job_state::done);
  EXPECT_EQ(a.requests().size(), 1U);
  EXPECT_EQ(b.requests().size(), 1U);
  deliver("default", {});
  eventually([&] { return d().stats().size() == 1; });  // only the webhooks
  const job_id stays = push_kept();
  settle();
  EXPECT_EQ(state(stays), job_state::ready);
}

TEST_F(deliverer_test, AQueueWhoseUrlIsNotAllowedKeepsItsJobs) {
  receiver endpoint([](const received&) { return answer(200); });
  const job_id id = push_kept();
  deliver("default", {.url = endpoint.url()});
  eventually([&] { return events_of(delivery_event::event_kind::not_allowed).size() == 1; });
  EXPECT_NE(events_of(delivery_event::event_kind::not_allowed)[0].message.find("[delivery] allow"),
            std::string::npos);
  eventually([&] { return stats_of().is_paused; });
  settle();
  EXPECT_EQ(get(id).state, job_state::ready);
  EXPECT_EQ(get(id).attempts, 0U);
  EXPECT_TRUE(endpoint.requests().empty());
}

TEST_F(deliverer_test, NewRulesAndSecretsApplyFromThenOn) {
  receiver endpoint([](const received&) { return answer(200); });
  const job_id id = push_kept();
  deliver("default", {.url = endpoint.url()});
  eventually([&] { return events_of(delivery_event::event_kind::not_allowed).size() == 1; });
  const auto refused = d().update(posting.rules, {"short"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("secret 1"), std::string::npos);
  allow({&endpoint});
  const std::string secret = "a-secret-of-enough-bytes";
  EXPECT_TRUE(d().update(posting.rules, {secret}));
  EXPECT_EQ(ended(id).state, job_state::done);
  const received came = endpoint.requests().at(0);
  EXPECT_TRUE(verify_signature(came.header("sluice-signature"), came.body, {secret}, time.now()));
  EXPECT_TRUE(d().update({}, {}));
  eventually([&] { return stats_of().is_paused; });
  const job_id stays = push_kept();
  settle();
  // A lease call in progress releases its job.
  eventually([&] { return state(stays) == job_state::ready; });
  EXPECT_EQ(get(stays).attempts, 0U);
  EXPECT_EQ(endpoint.requests().size(), 1U);
}

TEST_F(deliverer_test, ASmallerConcurrencyAppliesAtOnce) {
  event go;
  receiver endpoint([&](const received&) {
    go.wait();
    return answer(200);
  });
  deliver_to(endpoint, 4);
  push_some(4, {.keep_for = 1h});
  endpoint.await(4);
  deliver_to(endpoint, 1);
  push_some(4, {.keep_for = 1h});
  settle();
  EXPECT_EQ(endpoint.requests().size(), 4U);
  go.set();
  eventually([&] { return counts().done == 8; });
}

TEST_F(deliverer_test, PostsWithTls) {
  sluice::testing::temporary_folder folder;
  test_authority ca(folder.file("ca.pem"));
  posting.ca_file = ca.file();
  receiver endpoint([](const received&) { return answer(200); }, ca.server_for("IP:127.0.0.1"));
  receiver other([](const received&) { return answer(200); }, ca.server_for("DNS:example.com"));
  allow({&endpoint, &other});
  deliver("default", {.url = endpoint.url()});
  deliver("other", {.url = other.url()});
  EXPECT_EQ(ended(push_kept()).state, job_state::done);
  EXPECT_EQ(retrying(push_kept({.queue = "other"})).errors.at(0).type, "tls_failed");
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(deliverer_test, InvalidOptionsAreNamed) {
  const auto why = [&](const std::function<void(deliverer_options&)>& change) {
    deliverer_options o = posting;
    change(o);
    const auto opened = deliverer::open(e(), o);
    EXPECT_FALSE(opened);
    return opened ? "" : opened.error().message;
  };
  EXPECT_NE(why([](auto& o) { o.secrets = {"short"}; }).find("secret 1"), std::string::npos);
  EXPECT_NE(why([](auto& o) { o.requests_max = 0; }).find("requests_max"), std::string::npos);
  EXPECT_NE(why([](auto& o) { o.ca_file = "/none.pem"; }).find("none.pem"), std::string::npos);
  EXPECT_NE(why([](auto& o) { o.pause_first = 2min; }).find("pause_first"), std::string::npos);
  EXPECT_NE(why([](auto& o) { o.answer_bytes_max = 5u << 20; }).find("answer_bytes_max"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::deliverer_test
