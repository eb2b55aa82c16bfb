// Connections: order, limits, and ends, also of the server.
#include <gtest/gtest.h>

#include "jobs/http/testing/http_fixture.hpp"
#include "jobs/net/client_memory.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::http_connection_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::reply;
using testing::wire;

class HttpConnection : public testing::HttpTest {
 protected:
  // A store that blocks its commits until release_commits.
  memory_options held_store() {
    return {.before_apply = [this](const transaction&) -> std::optional<error> {
      if (holds_.load()) {
        held_.set();
        released_.wait();
      }
      return std::nullopt;
    }};
  }
  // A number of /metrics.
  std::uint64_t metric(std::string_view name) const {
    const std::string text = ask("GET", "/metrics").body;
    const std::string line = "\n" + std::string(name) + " ";
    const std::size_t at = text.find(line);
    EXPECT_NE(at, std::string::npos) << name;
    return at == std::string::npos ? 0 : std::strtoull(&text[at + line.size()], nullptr, 10);
  }
  static std::shared_ptr<net::client_memory> budget(std::uint64_t bytes) {
    return std::make_shared<net::client_memory>(bytes);
  }
  std::uint64_t received() const { return metric("sluice_http_received_bytes_total"); }
  std::uint64_t timeouts() const { return metric("sluice_http_timeouts_total"); }
  void hold() {
    held_.reset();
    released_.reset();
    holds_.store(true);
  }
  void until_held() { held_.wait(); }
  void release_commits() {
    holds_.store(false);
    released_.set();
  }
  void TearDown() override {
    release_commits();
    HttpTest::TearDown();
  }

 private:
  atomic<bool> holds_{false};
  event held_;
  event released_;
};

const std::string one_push =
    "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
    "application/json\r\nContent-Length: "
    "12\r\n\r\n{\"kind\":\"k\"}";
const std::string health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

// ---- order

TEST_F(HttpConnection, IsKeptAndServesManyRequests) {
  start();
  wire w = connect();
  for (int i = 1; i <= 100; ++i) {
    w.send(one_push);
    EXPECT_EQ(w.receive().body, R"({"id":)" + std::to_string(i) + R"(,"state":"ready"})");
  }
}

TEST_F(HttpConnection, AnswersInTheOrderOfTheRequests) {
  start();
  wire w = connect();
  // The first request waits for a job, the others finish at once; another connection pushes the
  // job.
  w.request("POST", "/v1/leases", R"({"wait":"60s","queues":["q"]})");
  w.send(health + one_push + "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
  eventually([&] { return jobs().stats().pushed == 1; });
  push(R"({"kind":"last","queue":"q"})");
  EXPECT_EQ(read<std::vector<leased_job>>(w.receive()).at(0).job->spec.kind, "last");
  EXPECT_EQ(w.receive().body, R"({"status":"ok"})");
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 200);
}

TEST_F(HttpConnection, AnswersAThousandPipelinedRequestsInOrder) {
  start();
  wire w = connect();
  std::string all;
  for (int i = 0; i < 1000; ++i) all += i % 7 == 3 ? health : one_push;
  w.send(all);
  job_id next = 1;
  for (int i = 0; i < 1000; ++i) {
    const reply r = w.receive();
    if (i % 7 == 3) {
      ASSERT_EQ(r.body, R"({"status":"ok"})");
    } else {
      ASSERT_EQ(r.body, R"({"id":)" + std::to_string(next++) + R"(,"state":"ready"})");
    }
  }
}

TEST_F(HttpConnection, ReadsRequestsByteByByte) {
  start();
  wire w = connect();
  for (const char c : one_push + health) w.send(std::string(1, c));
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 200);
}

TEST_F(HttpConnection, ReadsChunkedBodies) {
  start();
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n6\r\n{\"kind\r\n5;x=y\r\n\":\"mo\r\n");
  w.send("3\r\nre\"\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n" + health);
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 200);
  EXPECT_EQ(read<job>(ask("GET", "/v1/jobs/1")).spec.kind, "more");
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/x-ndjson\r\nTransfer-Encoding: "
      "chunked\r\n\r\n8\r\n{\"kind\":\r\n");
  w.send("10\r\n\"a\"}\n{\"kind\":\"b\"\r\n2\r\n}\n\r\n0\r\n\r\n");
  EXPECT_EQ(w.receive().body, R"({"accepted":2,"results":[{"id":2},{"id":3}]})");
}

TEST_F(HttpConnection, ReadsChunkedBodiesByteByByte) {
  start();
  wire w = connect();
  const std::string head =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n";
  for (const char c : head + "c\r\n{\"kind\":\"a\"}\r\n0\r\n\r\n" + head + "0\r\n\r\n") {
    w.send(std::string(1, c));
  }
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 400);
  EXPECT_EQ(read<job>(ask("GET", "/v1/jobs/1")).spec.kind, "a");
}

TEST_F(HttpConnection, SendsContinueToAnExpectHeader) {
  start();
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: "
      "12\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(w.receive().status, 100);
  w.send("{\"kind\":\"k\"}");
  EXPECT_EQ(w.receive().status, 201);
}

TEST_F(HttpConnection, SendsNoContinueForARequestThatItRefuses) {
  start({.body_bytes_max = 1000});
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: "
      "5000\r\nExpect: 100-continue\r\n\r\n");
  problem_of(w.receive(), 413, error_code::too_large);
  EXPECT_TRUE(w.ends());
  wire other = connect();
  other.send(
      "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: "
      "100-continue\r\n\r\n");
  problem_of(other.receive(), 404, error_code::not_found);
  EXPECT_TRUE(other.ends());
}

TEST_F(HttpConnection, EndsAtTheRequestOfTheClient) {
  start();
  wire w = connect();
  w.request("GET", "/healthz", "", "Connection: close\r\n");
  const reply r = w.receive();
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.header("connection"), "close");
  EXPECT_TRUE(w.ends());
  wire old = connect();
  old.send("GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.receive().status, 200);
  EXPECT_TRUE(old.ends());
}

// ---- backpressure

TEST_F(HttpConnection, IsNotReadWhileItsRequestsWait) {
  start({.pipelined_max = 4}, held_store());
  push();
  hold();
  wire w = connect();
  std::string some;
  for (int i = 0; i < 20; ++i) some += one_push;
  w.send(some);
  until_held();
  // One commit is blocked; exactly four requests of this connection are pending in the engine.
  eventually([&] { return jobs().stats().pushed == 1; });
  const auto before = received();
  // Further pipelined requests stay with the sender: the socket fills up.
  std::string more;
  for (int i = 0; i < 10'000; ++i) more += one_push;
  std::size_t sent = 0;
  std::size_t stuck = 0;
  while (stuck < 1000) {
    const std::size_t n = w.send_without_waiting(more);
    sent += n;
    stuck = n == 0 ? stuck + 1 : 0;
    if (sent > (std::size_t{64} << 20U)) break;
  }
  EXPECT_LT(sent, std::size_t{64} << 20U);
  EXPECT_LT(received() - before, 200'000U);
  release_commits();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(w.receive().status, 201);
}

TEST_F(HttpConnection, ReadsABodyOfManyJobsOnlyAsTheyArePushed) {
  start({}, held_store());
  push();
  hold();
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/x-ndjson\r\nContent-Length: "
      "120000000\r\n\r\n");
  std::string lines;
  while (lines.size() < 120'000) lines += "{\"kind\":\"k\"}\n";
  std::size_t sent = 0;
  for (std::size_t stuck = 0; stuck < 1000;) {
    const std::size_t n = w.send_without_waiting(lines);
    sent += n;
    stuck = n == 0 ? stuck + 1 : 0;
    if (sent > (std::size_t{64} << 20U)) break;
  }
  EXPECT_LT(sent, std::size_t{64} << 20U);
  until_held();
  w.reset();
  release_commits();
}

TEST_F(HttpConnection, IsNotReadWhileItsAnswersAreNotRead) {
  start({.unsent_bytes_max = 100'000, .body_time = 300ms});
  const std::string text(100'000, 'x');
  // Not over HTTP: a body that stalls for a moment would also be too slow.
  ASSERT_TRUE(jobs().push({.kind = "k", .args = {'"' + text + '"'}}).get());
  wire w = connect();
  std::string gets;
  for (int i = 0; i < 2000; ++i) gets += "GET /v1/jobs/1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  w.send(gets);
  // 200 MB of unread replies: the server closes the connection.
  eventually([&] { return timeouts() == 1; });
  eventually([&] { return server().connections() <= 1; });
}

TEST_F(HttpConnection, IsNotReadWhileTheBodiesOfOthersUseAllTheMemory) {
  start({.memory = budget(700'000), .wanted_bytes_per_second = 1});
  const auto push_of = [](std::size_t bytes) {
    const std::string body = R"({"kind":"k","args":")" + std::string(bytes, 'x') + "\"}";
    return "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
           "application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const std::string large = push_of(400'000);
  wire first = connect();
  first.send(large.substr(0, 200'000));
  eventually([&] { return received() >= 200'000; });
  wire second = connect();
  seam::thread sends([&] { second.send(large); });
  eventually([&] { return received() >= 265'000; });
  // Short requests are served: acks and heartbeats do not wait for uploads of other clients.
  for (int i = 0; i < 20; ++i) push();
  EXPECT_EQ(jobs().stats().pushed, 20U);
  EXPECT_LT(received(), 400'000U);
  first.send(large.substr(200'000));
  EXPECT_EQ(first.receive().status, 201);
  EXPECT_EQ(second.receive().status, 201);
  sends.join();
  // A client that disconnects frees its reservation; a reservation beyond the budget is granted
  // when there is no other.
  first.send(large.substr(0, 200'000));
  eventually([&] { return received() >= 1'000'000; });
  seam::thread larger([&] { second.send(push_of(800'000)); });
  eventually([&] { return received() >= 1'065'000; });
  first.reset();
  EXPECT_EQ(second.receive().status, 201);
  larger.join();
}

TEST_F(HttpConnection, EndsWhenItDoesNotUseAReservationThatOthersWaitFor) {
  start({.memory = budget(500'000)});
  wire stuck = connect();
  stuck.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: "
      "400000\r\n\r\n" +
      std::string(100'000, ' '));
  eventually([&] { return received() >= 100'000; });
  const std::string body = R"({"kind":"k","args":")" + std::string(400'000, 'x') + "\"}";
  wire other = connect();
  seam::thread sends([&] { other.request("POST", "/v1/jobs", body); });
  EXPECT_EQ(other.receive().status, 201) << "long before body_time";
  sends.join();
  EXPECT_NE(problem_of(stuck.receive(), 408, error_code::timed_out).find("other requests wait"),
            std::string::npos);
  EXPECT_TRUE(stuck.ends());
  EXPECT_EQ(timeouts(), 1U);
}

TEST_F(HttpConnection, KeepsTheMemoryForItsBodyWhileNoOtherConnectionWaitsForIt) {
  // No client reaches this rate.
  start({.memory = budget(500'000), .wanted_bytes_per_second = 1U << 30U});
  wire slow = connect();
  slow.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: "
      "100012\r\n\r\n" +
      std::string(100'000, ' '));
  const auto begun = seam::now();
  eventually([&] { return seam::now() > begun + 1500ms; });
  slow.send(R"({"kind":"k"})");
  EXPECT_EQ(slow.receive().status, 201);
}

// ---- limits

TEST_F(HttpConnection, IsRefusedBeyondTheLimit) {
  start({.connections_max = 3});
  std::vector<wire> some;
  for (int i = 0; i < 3; ++i) {
    some.push_back(connect());
    some.back().send(health);
    EXPECT_EQ(some.back().receive().status, 200);
  }
  wire extra = connect();
  const reply r = extra.receive();
  EXPECT_NE(problem_of(r, 503, error_code::overloaded).find("3 connections"), std::string::npos);
  EXPECT_EQ(r.header("connection"), "close");
  EXPECT_TRUE(extra.ends());
  extra.close();
  some.clear();
  eventually([&] { return server().connections() == 0; });
}

TEST_F(HttpConnection, EndsAfterIdleTime) {
  start({.idle_time = 50ms});
  is_impatient_ = true;
  wire w = connect();
  EXPECT_TRUE(w.ends());
  eventually([&] {
    wire used = connect();
    used.send(health);
    if (used.receive().status != 200) return false;  // it was closed before its request
    EXPECT_TRUE(used.ends());
    return true;
  });
}

TEST_F(HttpConnection, EndsWhenTheHeadOfARequestDoesNotArrive) {
  start({.head_time = 50ms});
  wire w = connect();
  w.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ");
  const reply r = w.receive();
  EXPECT_NE(problem_of(r, 408, error_code::timed_out).find("head"), std::string::npos);
  EXPECT_EQ(r.header("connection"), "close");
  EXPECT_TRUE(w.ends());
}

TEST_F(HttpConnection, EndsWhenABodyDoesNotArrive) {
  start({.body_time = 50ms});
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: 12\r\n\r\n{");
  EXPECT_NE(problem_of(w.receive(), 408, error_code::timed_out).find("body"), std::string::npos);
  EXPECT_TRUE(w.ends());
  wire lines = connect();
  lines.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/x-ndjson\r\nContent-Length: "
      "100\r\n\r\n{\"kind\":\"k\"}\n{");
  problem_of(lines.receive(), 408, error_code::timed_out);
  EXPECT_EQ(jobs().stats().pushed, 1U);
}

TEST_F(HttpConnection, EndsWhenALongBodyStalls) {
  start({.body_time = 100ms, .body_bytes_per_second = 1000});
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: "
      "1000000\r\n\r\n");
  w.send(std::string(900'000, ' '));
  problem_of(w.receive(), 408, error_code::timed_out);
  EXPECT_TRUE(w.ends());
}

TEST_F(HttpConnection, ContinuesWhileABodyArrivesFastEnough) {
  start({.body_time = 4s, .body_bytes_per_second = 50});
  wire w = connect();
  w.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: "
      "2212\r\n\r\n");
  // In total the body takes longer than body_time, each part much less.
  for (int i = 0; i < 11; ++i) {
    w.send(std::string(200, ' '));
    EXPECT_EQ(ask("POST", "/v1/leases", R"({"wait":"400ms"})").status, 204);
  }
  w.send(R"({"kind":"k"})");
  EXPECT_EQ(w.receive().status, 201);
}

TEST_F(HttpConnection, AnswersTheRequestsBeforeARequestThatIsTooSlow) {
  start({.head_time = 50ms});
  wire w = connect();
  w.send(one_push + health + "GET /");
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 200);
  EXPECT_EQ(w.receive().status, 408);
  EXPECT_TRUE(w.ends());
}

class HttpSlowBehindALease : public HttpConnection {
 protected:
  wire waiting_lease() {
    wire w = connect();
    w.request("POST", "/v1/leases", R"({"wait":"60s"})");
    eventually([&] { return jobs().stats().waiting_leases == 1; });
    return w;
  }
};

TEST_F(HttpSlowBehindALease, IsAnsweredOnceWhenTheHeadOfARequestDoesNotArrive) {
  start({.head_time = 20ms});
  wire w = waiting_lease();
  w.send("G");
  eventually([&] { return timeouts() > 0; });
  // After many times head_time there is still one timeout.
  EXPECT_EQ(ask("POST", "/v1/leases", R"({"wait":"400ms","queues":["none"]})").status, 204);
  EXPECT_EQ(timeouts(), 1U);
  push();
  EXPECT_EQ(w.receive().status, 200);
  problem_of(w.receive(), 408, error_code::timed_out);
  EXPECT_TRUE(w.ends());
}

TEST_F(HttpSlowBehindALease, IsAnsweredOnceWhenTheNextBytesAreNotHttp) {
  start({.head_time = 20ms});
  wire w = waiting_lease();
  w.send("\x01\x02 nonsense\r\n\r\n");
  EXPECT_EQ(ask("POST", "/v1/leases", R"({"wait":"400ms","queues":["none"]})").status, 204);
  EXPECT_EQ(timeouts(), 0U);
  push();
  EXPECT_EQ(w.receive().status, 200);
  problem_of(w.receive(), 400, error_code::invalid);
  EXPECT_TRUE(w.ends());
}

TEST_F(HttpConnection, OutlivesAnIncompleteBodyBehindAWaitingRequestWhenTheClientHasGone) {
  start({.head_time = 200ms, .body_time = 20ms}, held_store());
  push();
  std::uint64_t pushed = 1;
  // Repeated if the deadline passed before the client closed its side: then half a request is
  // answered.
  eventually([&] {
    hold();
    wire w = connect();
    // The first is not answered before the deadline of the second's body.
    w.send(one_push + one_push.substr(0, one_push.size() - 1));
    until_held();
    w.half_close();
    EXPECT_EQ(send("G").status, 408);  // later than that deadline
    release_commits();
    EXPECT_EQ(w.receive().status, 201);
    EXPECT_EQ(jobs().stats().pushed, ++pushed);
    const reply of_half = w.receive();
    if (of_half.status == 408) return false;
    EXPECT_EQ(of_half.status, 0) << of_half.body;
    EXPECT_TRUE(w.ends());
    return true;
  });
}

TEST_F(HttpConnection, IsNotIdleWhileItWaits) {
  start({.idle_time = 50ms});
  is_impatient_ = true;
  // Repeated if the connection was closed before the first or second request.
  eventually([&] {
    wire w = connect();
    w.request("POST", "/v1/leases", R"({"wait":"400ms"})");
    if (w.receive().status != 204) return false;
    w.send(health);
    return w.receive().status == 200;
  });
}

// ---- clients that go away

TEST_F(HttpConnection, CancelsALeaseWhoseClientHasGone) {
  start();
  for (int way = 0; way < 3; ++way) {
    wire w = connect();
    w.request("POST", "/v1/leases", R"({"wait":"60s"})");
    eventually([&] { return jobs().stats().waiting_leases == 1; });
    if (way == 0) w.close();
    if (way == 1) w.reset();
    if (way == 2) {
      w.half_close();
      EXPECT_EQ(w.receive().status, 204);
    }
    eventually([&] { return jobs().stats().waiting_leases == 0; });
  }
  push();
  EXPECT_EQ(lease().attempt, 1U);
}

TEST_F(HttpConnection, CancelsALeaseOfAClientThatHasGoneAfterItsLastRequest) {
  start();
  const std::string rest = "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n";
  const std::string body = R"({"wait":"60s"})";
  for (const std::string& head :
       {"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + rest,
        "POST /v1/leases HTTP/1.0\r\n" + rest}) {
    for (int way = 0; way < 3; ++way) {
      wire w = connect();
      w.send(head + body);
      eventually([&] { return jobs().stats().waiting_leases == 1; });
      if (way == 0) w.close();
      if (way == 1) w.reset();
      if (way == 2) {
        w.send("bytes behind the last request are ignored");
        w.half_close();
        EXPECT_EQ(w.receive().status, 204);
      }
      eventually([&] { return jobs().stats().waiting_leases == 0; });
    }
  }
  push();
  EXPECT_EQ(lease().attempt, 1U);
}

TEST_F(HttpConnection, ReleasesJobsThatItCouldNotDeliver) {
  start({.unsent_bytes_max = 1u << 20}, {}, {.window_bytes_max = std::uint64_t{1} << 30U});
  const std::string text(3'000'000, 'x');
  for (int i = 0; i < 16; ++i) push(R"({"kind":"k","args":")" + text + "\"}");
  {
    wire w = connect();
    w.receive_buffer(4096);
    w.request("POST", "/v1/leases", R"({"max":16})");
    // 48 MB: more than any socket buffers. The jobs are leased, but the reply cannot be written.
    eventually([&] { return jobs().stats().running == 16; });
    w.reset();
  }
  eventually([&] { return jobs().stats().running == 0; });
  EXPECT_EQ(jobs().stats().given_back, 16U);
  EXPECT_EQ(lease().attempt, 1U);
}

TEST_F(HttpConnection, AnswersRequestsSentBeforeTheClientClosedItsSide) {
  start();
  wire w = connect();
  w.send(one_push + health + one_push);
  w.half_close();
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 200);
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_TRUE(w.ends());
  EXPECT_EQ(jobs().stats().pushed, 2U);
}

TEST_F(HttpConnection, IgnoresAnIncompleteRequest) {
  start();
  for (const std::size_t cut : {std::size_t{5}, std::size_t{40}, one_push.size() - 1}) {
    wire w = connect();
    w.send(health + one_push.substr(0, cut));
    w.half_close();
    EXPECT_EQ(w.receive().status, 200);
    EXPECT_TRUE(w.ends());
  }
  EXPECT_EQ(jobs().stats().pushed, 0U);
}

TEST_F(HttpConnection, DropsAClientThatLeavesWhileItsPushIsCommitted) {
  start({}, held_store());
  push();
  hold();
  for (int i = 0; i < 20; ++i) {
    wire w = connect();
    w.send(one_push);
    if (i == 0) until_held();
    w.reset();
  }
  release_commits();
  eventually([&] { return server().connections() == 0; });
}

// ---- the end of the server

TEST_F(HttpConnection, IsDrainedWhenIntakeCloses) {
  start();
  push();
  wire idle = connect();
  wire worker = connect();
  worker.request("POST", "/v1/leases", "{}");
  const auto leased = read<std::vector<leased_job>>(worker.receive());
  ASSERT_EQ(leased.size(), 1U);
  idle.send(health);
  EXPECT_EQ(idle.receive().header("connection"), "");

  server().close_intake();
  jobs().close();
  idle.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const reply not_ready = idle.receive();
  problem_of(not_ready, 503, error_code::shutting_down);
  EXPECT_EQ(not_ready.header("connection"), "close");
  EXPECT_TRUE(idle.ends());
  // A worker can still report the results of its jobs, several times.
  const std::string body = R"({"lease":)" + std::to_string(leased[0].key) + "}";
  const std::string path = "/v1/jobs/" + std::to_string(leased[0].job->id);
  worker.request("POST", path + "/extend", body);
  EXPECT_EQ(worker.receive().header("connection"), "");
  EXPECT_FALSE(jobs().drained().is_ready());
  // Also on a new connection: its own may be lost.
  worker.reset();
  wire again = connect();
  again.request("POST", path + "/extend", body);
  const reply extended = again.receive();
  EXPECT_EQ(extended.status, 200) << extended.body;
  EXPECT_EQ(extended.header("connection"), "");
  again.request("POST", path + "/ack", body);
  EXPECT_EQ(again.receive().status, 204);
  EXPECT_EQ(jobs().drained().get(), status::ok);
}

TEST_F(HttpConnection, IsAnsweredAndEndsWhileTheServerShutsDown) {
  start();
  push();
  server().close_intake();
  jobs().close();
  for (const auto& [method, target, status] : {std::tuple{"POST", "/v1/jobs", 201},
                                               {"POST", "/v1/leases", 503},
                                               {"GET", "/v1/jobs/1", 200},
                                               {"GET", "/v1/jobs", 200},
                                               {"POST", "/v1/queues/default/pause", 200},
                                               {"GET", "/v1/stats", 200},
                                               {"GET", "/readyz", 503}}) {
    wire w = connect();
    w.request(method, target,
              target == std::string_view("/v1/jobs") && status == 201 ? R"({"kind":"k"})"
              : target == std::string_view("/v1/leases")              ? "{}"
                                                                      : "");
    const reply r = w.receive();
    EXPECT_EQ(r.status, status) << target << r.body;
    if (status == 503) problem_of(r, 503, error_code::shutting_down);
    EXPECT_EQ(r.header("connection"), "close") << target;
    EXPECT_TRUE(w.ends());
  }
  EXPECT_EQ(jobs().stats().pushed, 2U);
  EXPECT_EQ(jobs().stats().leased, 0U);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("GET", "/metrics").status, 200);
}

TEST_F(HttpConnection, AnIdleClientIsAnsweredOnceMoreWhenTheServerStops) {
  start({.last_request_time = 60s});
  wire idle = connect();
  idle.send(health);
  EXPECT_EQ(idle.receive().header("connection"), "");
  wire fresh = connect();
  eventually([&] { return server().connections() == 2; });
  expect_alive_ = false;
  seam::thread stops([&] { server().stop(); });
  eventually([&] { return !connect().connected(); }, "the listener to close");
  idle.send(one_push);
  const reply pushed = idle.receive();
  EXPECT_EQ(pushed.status, 201) << pushed.body;
  EXPECT_EQ(pushed.header("connection"), "close");
  EXPECT_TRUE(idle.ends());
  fresh.send(one_push);
  EXPECT_EQ(fresh.receive().status, 201);
  EXPECT_TRUE(fresh.ends());
  stops.join();
  EXPECT_EQ(jobs().stats().pushed, 2U);
}

TEST_F(HttpConnection, IsAnsweredBeforeTheServerStops) {
  start({.linger_time = 50ms}, held_store());
  push();
  hold();
  wire w = connect();
  w.send(one_push + one_push + health);
  wire waits = connect();
  waits.request("POST", "/v1/leases", R"({"wait":"60s","queues":["none"]})");
  eventually([&] { return jobs().stats().waiting_leases == 1; });
  wire idle = connect();
  idle.send(health);
  EXPECT_EQ(idle.receive().status, 200);
  until_held();
  expect_alive_ = false;
  seam::thread stops([&] { server().stop(); });
  EXPECT_TRUE(idle.ends());
  release_commits();
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 200);
  EXPECT_TRUE(w.ends());
  const reply none = waits.receive();
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.header("connection"), "close");
  stops.join();
  EXPECT_EQ(server().connections(), 0U);
}

// The server reads nothing behind a held request, so it does not read the client's end either.
TEST_F(HttpConnection, EndsTheWaitsOfADeadClientBehindUnreadRequests) {
  const std::string lease =
      "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 14\r\n\r\n{\"wait\":\"10m\"}";
  start({.pipelined_max = 2});
  const std::string events =
      "GET /v1/events?wait=10m&types=dead HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const std::string& behind : {lease, events + events, health + health + health}) {
    wire w = connect();
    w.send(lease + behind);
    eventually([&] { return jobs().stats().waiting_leases == 1; }, "a lease that waits");
    w.close();
    eventually([&] { return jobs().stats().waiting_leases == 0; }, "the end to be seen");
  }
}

TEST_F(HttpConnection, GivesNoJobToADeadClientBehindUnreadRequests) {
  start({.pipelined_max = 1});
  wire w = connect();
  w.send(
      "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 14\r\n\r\n{\"wait\":\"10m\"}" +
      std::string(health));
  eventually([&] { return jobs().stats().waiting_leases == 1; }, "a lease that waits");
  w.close();
  const job_id id = push();
  eventually([&] { return jobs().get(id).get()->state == job_state::ready; }, "the job to be free");
  EXPECT_EQ(jobs().get(id).get()->attempts, 0U);
}

TEST_F(HttpConnection, AnswersRequestsThatWereSentBeforeTheClientsEnd) {
  start({.pipelined_max = 2});
  wire w = connect();
  w.send(
      "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 14\r\n\r\n{\"wait\":\"10m\"}");
  for (int i = 0; i < 5; ++i) w.send(health);
  eventually([&] { return jobs().stats().waiting_leases == 1; }, "a lease that waits");
  w.half_close();
  EXPECT_EQ(w.receive().status, 204);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(w.receive().status, 200);
  EXPECT_TRUE(w.ends());
}

TEST_F(HttpConnection, IsCutOffAtTheLimitOfStop) {
  start({}, held_store());
  push();
  hold();
  wire w = connect();
  w.send(one_push);
  until_held();
  expect_alive_ = false;
  seam::thread stops([&] { server().stop({deadline::after(20ms)}); });
  EXPECT_TRUE(w.ends());
  release_commits();
  stops.join();
  eventually([&] { return jobs().stats().pushed == 2; });  // pushed, but not answered
}

TEST_F(HttpConnection, NeedsNoRequestToStop) {
  start();
  expect_alive_ = false;
  const wire quiet = connect();
  server().stop();
  server().stop();
  http_server never({.port = 0});
  never.close_intake();
  never.stop();
}

}  // namespace
}  // namespace sluice::jobs::http_connection_test
