// Connections that are reused, lost and limited, and calls that end before their response.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "jobs/client/client.hpp"
#include "jobs/http/testing/scripted_server.hpp"
#include "jobs/json/codec.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::client_connections_test {
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

// Replies only when the test releases it, or at its end.
class ClientWaits : public ::testing::Test {
 protected:
  ~ClientWaits() override { go_.set(); }

  reply_bytes hold(const received&) {
    arrived_.fetch_add(1);
    go_.wait();
    return answer(200, R"({"queues":[]})");
  }
  void wait_for_arrival(int many = 1) {
    eventually([&] { return arrived_.load() == many; }, "the request to arrive");
  }

  event go_;
  atomic<int> arrived_{0};
  scripted_server server_{[this](const received& r) { return hold(r); }};
};

TEST(ClientConnections, UsesOneConnectionForCallsAfterEachOther) {
  const scripted_server server([](const received&) { return answer(200, R"({"queues":[]})"); });
  auto c = open(server);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(c.queues());
  EXPECT_EQ(server.connections(), 1);
}

TEST(ClientConnections, KeepsAConnectionFromOneHeartbeatToTheNext) {
  // A worker extends at a third of the lease: an idle connection must live longer than that.
  EXPECT_GE(client_options{}.keep_idle, queue_options{}.lease_for / 3 * 2);
}

TEST(ClientConnections, DoesNotKeepAConnectionThatTheServerWillClose) {
  const scripted_server server(
      [](const received&) { return answer(200, R"({"queues":[]})", "Connection: close\r\n"); });
  auto c = open(server);
  EXPECT_TRUE(c.queues());
  EXPECT_TRUE(c.queues());
  EXPECT_EQ(server.connections(), 2);
}

TEST(ClientConnections, NoticesThatAKeptConnectionWasClosed) {
  // Replies and closes at once, without announcing it.
  const scripted_server server([](const received& r) -> reply_bytes {
    if (r.number == 2) return testing::no_answer();
    return answer(201, R"({"id":1})");
  });
  auto c = open(server);
  EXPECT_TRUE(c.push({.kind = "a"}));
  // The server loses the second call on the connection: the push must not be repeated, and the
  // error must state that its outcome is unknown.
  const auto lost = c.push({.kind = "a"});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, error_code::unavailable);
  EXPECT_NE(lost.error().message.find("the server may have executed the request"),
            std::string::npos)
      << lost.error().message;
  EXPECT_EQ(server.requests().size(), 2U);
  // The next call uses a new connection.
  EXPECT_TRUE(c.push({.kind = "a"}));
  EXPECT_EQ(server.connections(), 2);
}

TEST(ClientConnections, DoesNotUseAConnectionThatWasClosedWhileItWasIdle) {
  std::optional<scripted_server> server(std::in_place,
                                        [](const received&) { return answer(201, R"({"id":1})"); });
  auto c = open(*server);
  EXPECT_TRUE(c.push({.kind = "a"}));
  // The server stops and closes the connection; the port is closed.
  server.reset();
  const auto refused = c.push({.kind = "a"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cannot connect"), std::string::npos)
      << refused.error().message;  // the old connection is not tried
}

TEST(ClientConnections, ReportsEachPushWhenNoneWasAccepted) {
  const scripted_server server([](const received&) {
    return answer(503, R"({"type":"about:blank","title":"t","status":503,"detail":"a is full",)"
                       R"("code":"queue_full","accepted":0,"results":[)"
                       R"({"error":{"code":"queue_full","message":"a is full"}},)"
                       R"({"error":{"code":"disk_full","message":"no room"}}]})");
  });
  auto c = open(server);
  const auto each = c.push_many({{.kind = "a"}, {.kind = "b"}});
  ASSERT_EQ(each.size(), 2U);
  EXPECT_EQ(each[0].error().code, error_code::queue_full);
  EXPECT_EQ(each[1].error().code, error_code::disk_full);
  EXPECT_EQ(each[1].error().message, "no room");
}

TEST(ClientConnections, ReportsTheSameErrorForEachPushWhenAllWereRejectedTogether) {
  const scripted_server server([](const received&) {
    return answer(503, R"({"type":"about:blank","title":"t","status":503,"detail":"ends",)"
                       R"("code":"shutting_down"})");
  });
  auto c = open(server);
  const auto each = c.push_many({{.kind = "a"}, {.kind = "b"}});
  ASSERT_EQ(each.size(), 2U);
  for (const auto& one : each) EXPECT_EQ(one.error().code, error_code::shutting_down);
}

TEST(ClientConnections, RepeatsAReadOnceWhenAReusedConnectionIsLost) {
  const scripted_server server([](const received& r) -> reply_bytes {
    if (r.number == 2) return testing::no_answer();
    return answer(200, R"({"queues":[]})");
  });
  auto c = open(server);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(c.queues()) << i;
  EXPECT_EQ(server.connections(), 4);
}

TEST(ClientConnections, DoesNotRepeatOnANewConnection) {
  const scripted_server server([](const received&) { return testing::no_answer(); });
  auto c = open(server);
  EXPECT_EQ(c.queues().error().code, error_code::unavailable);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(ClientWaits, LimitsItsConnections) {
  auto c = open(server_, {.connections_max = 2});
  std::vector<future<result<std::vector<queue_info>>>> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(c.async_queues());
  wait_for_arrival(2);
  EXPECT_EQ(server_.connections(), 2);
  go_.set();
  for (auto& call : calls) EXPECT_TRUE(call.get());
  EXPECT_EQ(server_.connections(), 2);
}

TEST_F(ClientWaits, RejectsCallsBeyondTheLimitOfWaitingOnes) {
  auto c = open(server_, {.connections_max = 1, .waiting_max = 1});
  auto first = c.async_queues();
  wait_for_arrival();
  auto second = c.async_queues();
  const auto third = c.queues();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, error_code::overloaded);
  go_.set();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
}

TEST_F(ClientWaits, FreesThePlaceOfACallThatEnded) {
  auto c = open(server_, {.connections_max = 1, .waiting_max = 1});
  auto first = c.async_queues();
  wait_for_arrival();
  std::stop_source stop;
  auto second = c.async_queues(stop.get_token());
  stop.request_stop();
  EXPECT_EQ(second.get().error().code, error_code::stopped);
  auto third = c.async_queues();  // no connection has become free
  auto fourth = c.async_queues();
  EXPECT_EQ(fourth.get().error().code, error_code::overloaded);
  go_.set();
  EXPECT_TRUE(first.get());
  const auto answered = third.get();
  EXPECT_TRUE(answered) << answered.error().message;
}

TEST_F(ClientWaits, EndsAtTheDeadlineAndClosesTheConnection) {
  auto c = open(server_);
  manual_clock clock;
  auto call = c.async_lease({}, deadline::after(1h, clock));
  wait_for_arrival();
  const auto sent = json::read<json::lease_call>(server_.requests().at(0).body).value();
  EXPECT_EQ(sent.wait, 30s);
  eventually([&] { return clock.pending() == 1; });
  clock.advance(1h);  // the server's reply may still arrive
  EXPECT_FALSE(call.is_ready());
  clock.advance(250ms);
  const auto ended = call.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, error_code::timed_out);
  EXPECT_NE(ended.error().message.find("may have executed"), std::string::npos)
      << ended.error().message;
  go_.set();
  eventually([&] { return server_.closed() == 1; }, "the server to see the end");
}

TEST_F(ClientWaits, EndsWhenStopped) {
  auto c = open(server_);
  std::stop_source stop;
  auto call = c.async_queues(stop.get_token());
  wait_for_arrival();
  stop.request_stop();
  EXPECT_EQ(call.get().error().code, error_code::stopped);
}

TEST_F(ClientWaits, EndsWhenTheFutureIsCancelled) {
  auto c = open(server_);
  auto call = c.async_wait(7);
  wait_for_arrival();
  call.cancel();
  EXPECT_EQ(call.get().error().code, error_code::stopped);
}

TEST_F(ClientWaits, EndsACallThatWaitsForAConnection) {
  auto c = open(server_, {.connections_max = 1});
  auto first = c.async_queues();
  wait_for_arrival();
  std::stop_source stop;
  auto second = c.async_queues(stop.get_token());
  stop.request_stop();
  EXPECT_EQ(second.get().error().code, error_code::stopped);
  go_.set();
  EXPECT_TRUE(first.get());
}

TEST_F(ClientWaits, TimesOutWhenTheServerDoesNotReply) {
  auto c = open(server_, {.answer_timeout = 50ms});
  const auto ended = c.queues();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, error_code::unavailable);
  EXPECT_NE(ended.error().message.find("timed out"), std::string::npos) << ended.error().message;
}

TEST_F(ClientWaits, SendsNothingWhenItsLimitsHaveAlreadyPassed) {
  auto c = open(server_);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(c.queues(stop.get_token()).error().code, error_code::stopped);
  EXPECT_EQ(c.queues(deadline::after(0s)).error().code, error_code::timed_out);
  EXPECT_EQ(server_.connections(), 0);
}

TEST_F(ClientWaits, EndsItsCallsWhenItIsDestroyed) {
  std::optional<client> c(open(server_, {.connections_max = 2}));
  std::vector<future<result<std::vector<queue_info>>>> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(c->async_queues());
  wait_for_arrival(2);
  c.reset();
  for (auto& call : calls) EXPECT_EQ(call.get().error().code, error_code::stopped);
}

TEST_F(ClientWaits, RejectsABlockingCallFromAContinuation) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto c = open(server_);
        auto all = c.async_queues().then([&](auto) { (void)c.queues(); });
        go_.set();  // the reply arrives when the continuation is attached
        all.get();
      },
      "no blocking call from a continuation");
}

// A server that waits as long as requested and then replies without a job.
class ClientSteps : public ::testing::Test {
 protected:
  ~ClientSteps() override { over_.set(); }

  reply_bytes wait_without_job(milliseconds duration, reply_bytes nothing) {
    waits_.lock()->push_back(duration);
    (void)over_.wait(duration);
    return nothing;
  }
  std::vector<milliseconds> waits() {
    return waits_.with([](const auto& all) { return all; });
  }

  event over_;
  guarded<std::vector<milliseconds>> waits_;
};

TEST_F(ClientSteps, RepeatsALeaseUntilThereIsAJob) {
  const scripted_server server([this](const received& r) -> reply_bytes {
    const auto call = json::read<json::lease_call>(r.body).value();
    if (r.number < 4) return wait_without_job(call.wait, answer(204, ""));
    return answer(200, R"({"jobs":[{"id":1,"queue":"q","kind":"k","args":1,"state":"running",)"
                       R"("lease":2,"attempt":1,"leased_until":"2026-01-01T00:00:00.000Z"}]})");
  });
  auto c = open(server, {.wait_step = 20ms});
  EXPECT_EQ(c.lease({})->size(), 1U);
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(waits(), (std::vector<milliseconds>{20ms, 20ms, 20ms}));
}

TEST_F(ClientSteps, RequestsTheServerToWaitUntilTheDeadline) {
  const scripted_server server([](const received&) { return answer(204, ""); });
  auto c = open(server);
  manual_clock clock;
  for (const std::chrono::nanoseconds left : {10'000'000'000ns, 1'000'000'000ns, 999'000'001ns}) {
    const auto none = c.lease({}, deadline::after(left, clock));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, error_code::timed_out);
    EXPECT_EQ(none.error().message, "no job to lease");
    EXPECT_EQ(json::read<json::lease_call>(server.requests().back().body)->wait,
              std::chrono::ceil<milliseconds>(left));
  }
}

// A job that is due before the deadline takes precedence, although its reply arrives after the
// deadline.
TEST_F(ClientSteps, AcceptsAReplyAtTheDeadline) {
  manual_clock clock;
  const scripted_server server([&](const received& r) -> reply_bytes {
    const auto call = json::read<json::lease_call>(r.body).value();
    clock.advance(call.wait);
    const bool has_job = r.number == 1;
    if (!has_job) return answer(204, "");
    return answer(200, R"({"jobs":[{"id":1,"queue":"q","kind":"k","args":1,"state":"running",)"
                       R"("lease":2,"attempt":1,"leased_until":"2026-01-01T00:00:00.000Z"}]})");
  });
  auto c = open(server);
  const auto leased = c.lease({}, deadline::after(2s, clock));
  ASSERT_TRUE(leased) << leased.error().message;
  EXPECT_EQ(leased->size(), 1U);
  EXPECT_EQ(c.lease({}, deadline::after(2s, clock)).error().message, "no job to lease");
  EXPECT_EQ(server.connections(), 1);  // it was reused
}

TEST_F(ClientSteps, WaitsForTheEndOfAJobInSteps) {
  const scripted_server server([this](const received& r) -> reply_bytes {
    const std::string state = r.number < 3 ? "running" : "done";
    const std::string job =
        R"({"id":7,"queue":"q","kind":"k","args":1,"state":")" + state + R"("})";
    return r.number < 3 ? wait_without_job(20ms, answer(200, job)) : answer(200, job);
  });
  auto c = open(server, {.wait_step = 20ms});
  EXPECT_EQ(c.wait(7)->state, job_state::done);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(ClientSteps, WaitsForAPurgeWithoutATimeout) {
  const scripted_server server([this](const received&) -> reply_bytes {
    (void)over_.wait(200ms);
    return answer(200, R"({"purged":3})");
  });
  auto c = open(server, {.answer_timeout = 20ms});
  const auto purged = c.purge("q");
  ASSERT_TRUE(purged) << purged.error().message;
  EXPECT_EQ(*purged, 3U);
}

TEST_F(ClientSteps, DoesNotLoopWhenTheServerDoesNotWait) {
  const scripted_server server([](const received&) { return answer(204, ""); });
  auto c = open(server);
  EXPECT_EQ(c.lease({}).error().code, error_code::timed_out);
  EXPECT_EQ(server.requests().size(), 1U);
}

}  // namespace
}  // namespace sluice::jobs::client_connections_test
