// The memory of connections: bounds of each connection, and of all of them together.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "jobs/http/testing/http_fixture.hpp"
#include "jobs/net/client_memory.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::http_memory_test {
namespace {

using testing::eventually;
using testing::reply;
using testing::wire;

constexpr std::size_t mb = std::size_t{1} << 20;

class HttpMemory : public testing::HttpTest {
 protected:
  static constexpr std::size_t head_max = 4096;

  void start_with(std::uint64_t budget, http_server_options o = {}) {
    memory_ = std::make_shared<net::client_memory>(budget);
    o.memory = memory_;
    o.tokens = tokens_;
    start(std::move(o));
  }
  void push_large(std::size_t bytes) {
    ASSERT_TRUE(jobs()
                    .push({.kind = "k",
                           .args = {'"' + std::string(bytes, 'x') + '"'},
                           .keep_for = std::chrono::hours(1)})
                    .get());
  }
  // Returns the number of successful replies of a route, sent or not.
  std::uint64_t answered(std::string_view route = "/v1/jobs/{id}") const {
    const std::string text = ask("GET", "/metrics", "", reader_).body;
    const std::string line = "route=\"" + std::string(route) + R"(",status="2xx"} )";
    const std::size_t at = text.find(line);
    return at == std::string::npos ? 0 : std::strtoull(&text[at + line.size()], nullptr, 10);
  }
  void expect_refused(const std::string& request, const std::string& rest) {
    SCOPED_TRACE(request + rest.substr(0, 20));
    for (const std::size_t piece : {rest.size(), std::size_t{1000}}) {
      wire w = connect();
      w.send(request + "Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (std::size_t at = 0; at < rest.size(); at += piece) w.send(rest.substr(at, piece));
      const std::string why = problem_of(w.receive(), 431, error_code::too_large);
      EXPECT_NE(why.find("chunk"), std::string::npos) << why;
      EXPECT_TRUE(w.ends());
    }
  }

  void use_token(role_set roles, std::vector<std::string> queues) {
    token_set all;
    const auto make = [&](role_set may, std::vector<std::string> where) {
      const auto made =
          all.create({.name = "t", .roles = may, .queues = std::move(where)}, real_time().now());
      return "Authorization: Bearer " + made.value().text + "\r\n";
    };
    token_ = make(roles, std::move(queues));
    reader_ = make({role::read}, {});
    tokens_ = std::move(all);
  }

  std::shared_ptr<net::client_memory> memory_;
  std::optional<token_set> tokens_;
  std::string token_;   // of the requests; empty: none are needed
  std::string reader_;  // of /metrics
};

const std::string get_job = "GET /v1/jobs/1 HTTP/1.1\r\nHost: localhost\r\n\r\n";

TEST_F(HttpMemory, RefusesChunkLinesAndTrailersBeyondMaxHead) {
  start({.head_bytes_max = head_max});
  const std::string much(head_max, 'a');
  const std::string zeros(head_max, '0');
  std::string fields;
  while (fields.size() < head_max) fields += "X-Field: some value\r\n";
  for (const std::string request :
       {"GET /healthz HTTP/1.1\r\n", "POST /v1/jobs HTTP/1.1\r\nContent-Type: application/json\r\n",
        "POST /v1/jobs HTTP/1.1\r\nContent-Type: application/x-ndjson\r\n"}) {
    // First without the end of the line or block, then with it.
    expect_refused(request, zeros + "1");
    expect_refused(request, "1;x=" + much);
    expect_refused(request, "1\r\n{\r\n0\r\nX: " + much);
    expect_refused(request, "1\r\n{\r\n0;x=" + much);
    expect_refused(request, zeros + "1\r\n{\r\n0\r\n\r\n");
    expect_refused(request, "1;x=" + much + "\r\n{\r\n0\r\n\r\n");
    expect_refused(request, "1\r\n{\r\n0\r\nX: " + much + "\r\n\r\n");
    expect_refused(request, "1\r\n{\r\n0\r\n" + fields + "\r\n");
  }
}

TEST_F(HttpMemory, TakesChunkLinesAndTrailersUpToMaxHead) {
  start({.head_bytes_max = head_max});
  const std::string some(head_max - 100, 'a');
  wire w = connect();
  for (int i = 0; i < 3; ++i) {
    w.send(
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    for (const char c : std::string_view(R"({"kind":"k"})")) {
      w.send("1;x=" + some + "\r\n" + c + "\r\n");
    }
    w.send("0\r\nX: " + some + "\r\n\r\n");
    EXPECT_EQ(w.receive().status, 201);
  }
}

TEST_F(HttpMemory, StopsDispatchingWhileAnswersAreUnread) {
  start_with(1000 * mb, {.unsent_bytes_max = mb});
  push_large(4 * mb - 2);
  wire w = connect();
  std::string gets;
  for (int i = 0; i < 16; ++i) gets += get_job;
  w.send(gets);
  eventually([&] { return answered() > 0; }, "the first answer");
  // The sockets buffer some; beyond that there is one reply.
  for (int i = 0; i < 50; ++i) EXPECT_LE(answered(), 5U);
  EXPECT_LT(memory_->bytes(), 25 * mb);
  for (int i = 0; i < 16; ++i) EXPECT_GT(w.receive().body.size(), 4 * mb - 2);
  eventually([&] { return memory_->bytes() < mb; }, "its memory to be free");
}

TEST_F(HttpMemory, HoldsBackLongAnswersWithoutLosingTheirRequests) {
  start_with(1000 * mb);
  push_large(1000);
  wire w = connect();
  const std::string change =
      "PATCH /v1/queues/default HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 14\r\n\r\n{\"weight\": 17}";
  w.send(get_job + change + get_job + "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n" + change);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(w.receive().status, 200);
  // The same with requests in two parts.
  for (int i = 0; i < 5; ++i) {
    w.send(get_job + change.substr(0, change.size() - 5));
    w.send(change.substr(change.size() - 5));
    EXPECT_EQ(w.receive().status, 200);
    EXPECT_EQ(w.receive().body.find("error"), std::string::npos);
  }
  EXPECT_EQ(jobs().queue("default")->options.weight, 17U);
}

TEST_F(HttpMemory, ClosesTheLargestIdleConnectionsWhenTheBudgetIsExceeded) {
  start_with(24 * mb);
  push_large(4 * mb - 2);
  wire honest = connect();
  honest.request("GET", "/healthz");
  EXPECT_EQ(honest.receive().status, 200);
  std::vector<wire> hostile;
  for (int i = 0; i < 20; ++i) {
    hostile.push_back(connect());
    hostile.back().receive_buffer(4096);
    hostile.back().send(get_job + get_job + get_job);
  }
  eventually([&] { return memory_->closed() > 0; }, "a connection to be closed");
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  honest.request("GET", "/healthz");
  EXPECT_EQ(honest.receive().status, 200) << "it held next to nothing";
}

TEST_F(HttpMemory, EventStreamsContinueAfterTheBudgetWasExceeded) {
  start_with(8 * mb);
  wire w = connect();
  w.request("GET", "/v1/events?heartbeat=100ms", "");
  EXPECT_EQ(w.receive_head().status, 200);
  {
    net::client_memory::account other(*memory_);
    other.open(false, [](auto) {});
    other.report({.output = 100 * mb});
    ASSERT_TRUE(jobs().push({.kind = "before"}).get());
  }
  ASSERT_TRUE(jobs().push({.kind = "after"}).get());
  std::string received;
  while (received.find("\"job\":2") == std::string::npos) {
    const std::string more = w.next_chunk();
    ASSERT_FALSE(more.empty());
    received += more;
  }
  EXPECT_LT(received.find("\"job\":1"), received.find("\"job\":2"));
}

// All waits for a job end at once, and each reply is as long as the job.
TEST_F(HttpMemory, AnswersAllThatWaitedForALongJob) {
  use_token({role::admin}, {});
  start_with(24 * mb);
  push_large(4 * mb - 2);
  constexpr std::size_t count = 50;
  std::vector<wire> waiters;
  for (std::size_t i = 0; i < count; ++i) {
    waiters.push_back(connect());
    waiters.back().request("GET", "/v1/jobs/1?wait=10m", "", token_);
  }
  eventually([&] { return server().open_grants() == count; }, "all to wait");
  const auto leased = jobs().lease({}).get();
  ASSERT_TRUE(leased);
  ASSERT_TRUE(jobs().ack(leased->front().ref()).get());
  std::vector<seam::thread> readers;
  for (wire& w : waiters) {
    readers.emplace_back([&] {
      const reply r = w.receive();
      EXPECT_EQ(r.status, 200) << r.body.substr(0, 200);
      EXPECT_LE(memory_->bytes(), 40 * mb);
    });
  }
}

TEST_F(HttpMemory, AWaitForEventsTakesAWholePage) {
  start_with(24 * mb);
  wire w = connect();
  w.request("GET", "/v1/events?wait=10m&types=pushed&limit=3", "");
  std::vector<job_spec> specs(5, {.kind = "k"});
  eventually(
      [&] {
        // Wait for a commit after the wait began.
        (void)jobs().push_many(specs).get();
        return answered("/v1/events") > 0;
      },
      "the page");
  const auto page = read<event_page>(w.receive());
  ASSERT_EQ(page.events.size(), 3U);
  EXPECT_EQ(page.events[1].number, page.events[0].number + 1);
}

// The other connection's replies of unknown length delay only the look-ups.
TEST_F(HttpMemory, CountsTheRequestOfAScopedTokenUntilItsJobsAreLookedUp) {
  use_token({role::push, role::work}, {"mine"});
  start_with(64 * mb);
  const job_id id =
      jobs().push({.queue = "mine", .kind = "k", .retry = {.attempts_max = 1}}).get().value().id;
  const auto leased = jobs().lease({.queues = {"mine"}}).get();
  ASSERT_TRUE(leased);
  const std::string job = std::to_string(id);
  const std::string lease = std::to_string(leased->front().key);
  const std::string text = '"' + std::string(std::size_t{50} << 10, 'x') + '"';
  net::client_memory::account other(*memory_);
  other.open(false, [](auto) {});
  std::uint64_t checks = 0;
  for (const auto& [target, body, status] :
       {std::tuple("/v1/jobs",
                   R"({"kind":"k","queue":"mine","after":[)" + job + R"(],"args":)" + text + "}",
                   201),
        std::tuple("/v1/acks",
                   R"({"acks":[{"id":)" + job + R"(,"lease":1,"result":)" + text + "}]}", 200),
        std::tuple("/v1/jobs/1/ack", R"({"lease":)" + lease + R"(,"result":)" + text + "}", 204)}) {
    SCOPED_TRACE(target);
    other.report({.expected = 100 * mb});
    wire w = connect();
    w.request("POST", target, body, token_);
    w.request("GET", "/healthz");
    ++checks;
    eventually([&] { return answered("/healthz") == checks; }, "the request behind it");
    EXPECT_GE(memory_->bytes(), text.size());
    other.report({});
    EXPECT_EQ(w.receive().status, status);
    EXPECT_EQ(w.receive().status, 200);
    eventually([&] { return memory_->bytes() < text.size(); }, "its memory to be free");
  }
}

TEST_F(HttpMemory, KeepsTheReservationOfABodyUntilItsJobsAreLookedUp) {
  use_token({role::push}, {"mine"});
  start_with(64 * mb);
  ASSERT_TRUE(jobs().push({.queue = "mine", .kind = "k"}).get());
  net::client_memory::account other(*memory_);
  other.open(false, [](auto) {});
  other.report({.expected = 100 * mb});
  wire w = connect();
  const std::string body =
      R"({"kind":"k","queue":"mine","after":[1],"args":")" + std::string(3 * mb, 'x') + "\"}";
  w.request("POST", "/v1/jobs", body, token_);
  w.request("GET", "/healthz");
  eventually([&] { return memory_->bytes() >= body.size() && answered("/v1/jobs") == 0; });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(answered("/healthz"), 0U) << "nothing is read beside a long body";
    EXPECT_GE(memory_->bytes(), body.size());
  }
  // Of the 32 MiB for reservations, 3 are taken.
  net::client_memory::account large(*memory_);
  large.open(false, [](auto) {});
  EXPECT_FALSE(large.reserve(30 * mb));
  other.report({});
  EXPECT_EQ(w.receive().status, 201);
  EXPECT_EQ(w.receive().status, 200);
  EXPECT_TRUE(large.has_reservation());
  large.close();
  eventually([&] { return memory_->bytes() < mb; }, "its memory to be free");
}

TEST_F(HttpMemory, EndsTheReservationOfABodyThatIsRefusedAfterTheLookUp) {
  use_token({role::push}, {"mine"});
  start_with(64 * mb);
  ASSERT_TRUE(jobs().push({.queue = "other", .kind = "k"}).get());
  wire w = connect();
  w.request("POST", "/v1/jobs",
            R"({"kind":"k","queue":"mine","after":[1],"args":")" + std::string(3 * mb, 'x') + "\"}",
            token_);
  EXPECT_EQ(w.receive().status, 404);
  eventually([&] { return memory_->bytes() < mb; }, "its memory to be free");
}

// A body longer than the whole budget must not wait for its own reservation.
TEST_F(HttpMemory, LooksUpTheJobsOfABodyThatExceedsTheBudget) {
  use_token({role::push}, {"mine"});
  start_with(2 * mb);
  ASSERT_TRUE(jobs().push({.queue = "mine", .kind = "k"}).get());
  for (const std::string_view target : {"/v1/jobs", "/v1/batches"}) {
    const std::string job =
        R"({"kind":"k","queue":"mine","after":[1],"args":")" + std::string(3 * mb, 'x') + "\"}";
    const bool is_batch = target == "/v1/batches";
    EXPECT_EQ(ask("POST", target, is_batch ? R"({"jobs":[)" + job + "]}" : job, token_).status,
              201);
  }
}

TEST_F(HttpMemory, IsInTheMetrics) {
  start_with(8 * mb);
  const std::string text = ask("GET", "/metrics").body;
  EXPECT_NE(text.find("\nsluice_client_memory_limit_bytes 8388608\n"), std::string::npos);
  EXPECT_NE(text.find("\nsluice_client_memory_closed_total 0\n"), std::string::npos);
  EXPECT_NE(text.find("\nsluice_client_memory_bytes "), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::http_memory_test
