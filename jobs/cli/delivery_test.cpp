// Deliveries by the real program: signed posts of jobs and of their ends, the response as result,
// rejected URLs, reloaded rules, and a shutdown during a request.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "jobs/deliver/signature.hpp"
#include "jobs/deliver/testing/receiver.hpp"
#include "jobs/deliver/testing/test_authority.hpp"
#include "jobs/http/testing/wire.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::delivery_test {
namespace {

using jobs::testing::answer;
using jobs::testing::json_answer;
using jobs::testing::received;
using jobs::testing::receiver;
using jobs::testing::test_authority;
using jobs::testing::wire;
using sluice::testing::eventually;
using testing::ended;
using testing::make_file;
using testing::server_program;
using testing::start_options;
using testing::temporary_folder;

class Delivery : public ::testing::Test {
 protected:
  static inline const std::string secret = "a-secret-of-a-good-length";
  const start_options signing{.environment = {"SLUICE_DELIVERY_SECRET=" + secret}};

  static void deliver(const server_program& server, const std::string& queue,
                      const std::string& url) {
    const ended set = server.run({"queues", "set", queue, "--deliver-url", url});
    ASSERT_EQ(set.code, 0) << set.err;
  }
  static std::string push(const server_program& server, std::vector<std::string> words) {
    words.insert(words.begin(), {"push", "--quiet"});
    const ended pushed = server.run(words);
    EXPECT_EQ(pushed.code, 0) << pushed.err;
    return pushed.out.substr(0, pushed.out.find('\n'));
  }
  static std::string metrics(const server_program& server) {
    const std::string port = server.url().substr(server.url().rfind(':') + 1);
    wire w(static_cast<std::uint16_t>(std::stoul(port)));
    w.request("GET", "/metrics");
    return w.receive().body;
  }
  static void wait_for_metric(const server_program& server, const std::string& line) {
    eventually([&] { return metrics(server).find("\n" + line + "\n") != std::string::npos; },
               line.c_str());
  }
  static void wait_for_log(server_program& server, const std::string& text) {
    eventually([&] { return server.itself().err().find(text) != std::string::npos; }, text.c_str());
  }
  static void expect_signed(const received& r) {
    const auto fine =
        verify_signature(r.header("sluice-signature"), r.body, {secret}, real_time().now());
    EXPECT_TRUE(fine) << fine.error().message;
    EXPECT_FALSE(
        verify_signature(r.header("sluice-signature"), r.body + " ", {secret}, real_time().now()));
  }

  temporary_folder folder_;
};

TEST_F(Delivery, PostsAJobSignedAndStoresTheResponseAsItsResult) {
  receiver endpoint([](const received&) { return json_answer(200, R"({"sent":true})"); });
  server_program server(folder_, {"--delivery-allow", endpoint.url("/")}, signing);
  deliver(server, "mail", endpoint.url("/in"));
  const std::string id = push(server, {"welcome", R"({"to":"ada"})", "--queue", "mail"});
  endpoint.await(1);
  const received got = endpoint.requests().front();
  EXPECT_EQ(got.method, "POST");
  EXPECT_EQ(got.target, "/in");
  EXPECT_EQ(got.header("sluice-delivery"), "job");
  EXPECT_EQ(got.header("sluice-job-id"), id);
  EXPECT_EQ(got.header("sluice-queue"), "mail");
  EXPECT_EQ(got.body, R"({"id":)" + id +
                          R"(,"queue":"mail","kind":"welcome","attempt":1,"args":{"to":"ada"}})");
  expect_signed(got);
  const ended found = server.run({"get", id, "--wait", "30s", "--json"});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_HAS(found.out, R"("state":"done")");
  EXPECT_HAS(found.out, R"("result":{"sent":true})");
  wait_for_metric(server, R"(sluice_deliveries_total{queue="mail"} 1)");
  EXPECT_HAS(metrics(server), "sluice_delivery_failures_total{queue=\"mail\"} 0\n");
  EXPECT_EQ(server.stop().code, 0);
}

TEST_F(Delivery, PostsTheEndOfAJobToItsWebhookSigned) {
  receiver endpoint([](const received&) { return answer(204); });
  server_program server(folder_, {"--delivery-allow", endpoint.url("/ends")}, signing);
  const std::string id = push(server, {"render", "7", "--webhook", endpoint.url("/ends?page=7")});
  client c = client::open({.url = server.url()}).value();
  const auto leased = c.lease({}, deadline::after(std::chrono::seconds(30)));
  ASSERT_TRUE(leased) << leased.error().message;
  ASSERT_TRUE(c.ack(leased->front().ref()));
  endpoint.await(1);
  const received got = endpoint.requests().front();
  EXPECT_EQ(got.target, "/ends?page=7");
  EXPECT_EQ(got.header("sluice-delivery"), "webhook");
  EXPECT_EQ(got.header("sluice-job-id"), id);
  EXPECT_HAS(got.body, R"("kind":"render","state":"done")");
  expect_signed(got);
  wait_for_metric(server, R"(sluice_deliveries_total{queue="sluice/webhooks"} 1)");
}

TEST_F(Delivery, AWebhookThatWaitsIsExportedOnlyIfItsQueueIsNamed) {
  receiver endpoint([](const received&) { return answer(503); });
  server_program server(folder_, {"--delivery-allow", endpoint.url("/ends")}, signing);
  push(server, {"render", "7", "--webhook", endpoint.url("/ends")});
  client c = client::open({.url = server.url()}).value();
  const auto leased = c.lease({}, deadline::after(std::chrono::seconds(30)));
  ASSERT_TRUE(leased) << leased.error().message;
  ASSERT_TRUE(c.ack(leased->front().ref()));
  endpoint.await(1);
  EXPECT_EQ(server.run({"export"}).out, "") << "no server would accept it";
  EXPECT_HAS(server.run({"export", "--queue", "sluice/webhooks"}).out, "sluice.webhook");
}

TEST_F(Delivery, RejectsAUrlThatIsNotAllowed) {
  server_program server(folder_, {"--delivery-allow", "http://127.0.0.1:9/in"});
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"push", "k", "--webhook", "http://127.0.0.1:9/out?key=hidden"},
        {"queues", "set", "mail", "--deliver-url", "http://127.0.0.1:9/out?key=hidden"}}) {
    const ended end = server.run(words);
    EXPECT_EQ(end.code, 2) << end.err;
    EXPECT_HAS(end.err, "may not post to http://127.0.0.1:9/out");
    EXPECT_HAS(end.err, "[delivery] allow");
    EXPECT_EQ(end.err.find("hidden"), std::string::npos) << end.err;
  }
  const ended jobs = server.run({"jobs", "--json"});
  EXPECT_EQ(jobs.out.find(R"("kind":"k")"), std::string::npos) << jobs.out;
}

TEST_F(Delivery, PostsNothingByDefault) {
  server_program server(folder_);
  const ended end = server.run({"push", "k", "--webhook", "http://127.0.0.1:9/in"});
  EXPECT_EQ(end.code, 2);
  EXPECT_HAS(end.err, R"(allow = ["http://127.0.0.1:9/"])");
}

TEST_F(Delivery, ChangesItsRulesOnSighup) {
  receiver endpoint([](const received&) { return answer(204); });
  const auto file_allowing = [&](const std::string& rule) {
    return make_file(folder_, "c.toml", "[delivery]\nallow = ['" + rule + "']\n");
  };
  const std::string file = file_allowing(endpoint.url("/old"));
  server_program server(folder_, {"--config", file});
  deliver(server, "mail", endpoint.url("/old"));
  file_allowing(endpoint.url("/new"));
  server.itself().signal(SIGHUP);
  wait_for_log(server, "reloaded what=delivery");
  EXPECT_EQ(server.run({"push", "k", "--webhook", endpoint.url("/old")}).code, 2);
  // The existing queue keeps its jobs: its URL is no longer allowed.
  wait_for_metric(server, R"(sluice_delivery_paused{queue="mail"} 1)");
  const std::string kept = push(server, {"k", "--queue", "mail"});
  deliver(server, "mail", endpoint.url("/new"));
  endpoint.await(1);
  EXPECT_EQ(endpoint.requests().front().target, "/new");
  EXPECT_EQ(endpoint.requests().front().header("sluice-job-id"), kept);

  file_allowing("ftp://nowhere");
  server.itself().signal(SIGHUP);
  wait_for_log(server, "c.toml:2:10: [delivery] allow[0]: ");
  push(server, {"k", "--webhook", endpoint.url("/new")});  // as before
}

TEST_F(Delivery, FinishesARequestInProgressAtShutdown) {
  std::promise<void> released;
  receiver endpoint([held = released.get_future().share()](const received&) {
    held.wait();
    return json_answer(200, "42");
  });
  std::string id;
  {
    server_program server(folder_, {"--delivery-allow", endpoint.url("/")}, signing);
    deliver(server, "mail", endpoint.url());
    id = push(server, {"k", "--queue", "mail"});
    endpoint.await(1);
    server.itself().signal(SIGTERM);
    wait_for_log(server, "shutting down signal=SIGTERM leased=1");
    EXPECT_FALSE(server.itself().has_ended());
    released.set_value();
    const ended end = server.itself().wait();
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(end.err.find("did not finish"), std::string::npos) << end.err;
    EXPECT_LT(end.err.find("closing connections"), end.err.find("stopped")) << end.err;
  }
  server_program next(folder_);
  const ended found = next.run({"get", id, "--json"});
  EXPECT_HAS(found.out, R"("state":"done")");
  EXPECT_HAS(found.out, R"("result":42)");
  EXPECT_EQ(endpoint.requests().size(), 1U) << "it was posted once";
}

TEST_F(Delivery, TrustsTheConfiguredAuthority) {
  test_authority ca(folder_.file("ca.pem"));
  receiver endpoint([](const received&) { return answer(204); }, ca.server_for("DNS:localhost"));
  const std::string url = endpoint.url("/in", "localhost");
  {
    server_program server(folder_, {"--delivery-allow", url});
    deliver(server, "mail", url);
    const std::string id = push(server, {"k", "--queue", "mail", "--attempts", "1"});
    EXPECT_HAS(server.run({"get", id, "--wait", "30s", "--json"}).out, "tls_failed");
    EXPECT_EQ(server.stop().code, 0);
  }
  server_program server(folder_, {"--delivery-allow", url, "--delivery-ca-file", ca.file()});
  push(server, {"k", "--queue", "mail"});
  endpoint.await(1);
  wait_for_metric(server, R"(sluice_deliveries_total{queue="mail"} 1)");
}

TEST_F(Delivery, WarnsWhenAReceiverKeepsFailingAndReportsItsRecovery) {
  std::atomic<int> requests = 0;
  receiver endpoint([&](const received&) { return answer(++requests <= 5 ? 500 : 204); });
  server_program server(folder_, {"--delivery-allow", endpoint.url("/")});
  ASSERT_EQ(server.run({"queues", "pause", "mail"}).code, 0);
  for (int i = 0; i < 6; ++i) push(server, {"k", "--queue", "mail"});
  deliver(server, "mail", endpoint.url());
  ASSERT_EQ(server.run({"queues", "set", "mail", "--deliver-concurrency", "1"}).code, 0);
  ASSERT_EQ(server.run({"queues", "resume", "mail"}).code, 0);
  wait_for_log(server, " warn  delivery what=paused queue=mail");
  wait_for_log(server, " info  delivery what=resumed queue=mail");
}

}  // namespace
}  // namespace sluice::jobs::cli::delivery_test
