// Server-sent events, and pages of the same, over a real socket.
#include <gtest/gtest.h>

#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_events_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::reply;
using testing::wire;

class HttpEvents : public testing::HttpTest {
 protected:
  // Opens an event stream, and reads the head of the reply.
  wire listen(std::string_view query = "", std::string_view headers = "") {
    wire w = connect();
    w.request("GET", "/v1/events" + std::string(query), "", headers);
    const reply head = w.receive_head();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.header("content-type"), "text/event-stream");
    EXPECT_EQ(head.header("transfer-encoding"), "chunked");
    EXPECT_EQ(head.header("content-length"), "");
    EXPECT_EQ(w.next_chunk(), "retry: 1000\n\n");
    return w;
  }
  // Reads until a text was received.
  static std::string receive_until(wire& w, std::string_view until) {
    std::string all;
    while (all.find(until) == std::string::npos) {
      const std::string more = w.next_chunk();
      if (more.empty()) {
        ADD_FAILURE() << "ended before '" << until << "': " << all;
        break;
      }
      all += more;
    }
    return all;
  }
  static std::string id_of(const std::string& received) {
    const std::size_t at = received.rfind("id: ");
    return received.substr(at + 4, received.find('\n', at) - at - 4);
  }
  std::string refused(std::string_view target, std::string_view headers = "") {
    return problem_of(ask("GET", target, "", headers), 400, error_code::invalid);
  }
};

TEST_F(HttpEvents, ReportTheChangesOfAJob) {
  start();
  wire w = listen();
  const job_id id = push(R"({"kind":"k","queue":"mail"})");
  std::string received = receive_until(w, "event: pushed\n");
  EXPECT_TRUE(received.starts_with("id: ")) << received;
  EXPECT_NE(received.find("\ndata: {\"number\":"), std::string::npos) << received;
  EXPECT_NE(received.find("\"job\":" + std::to_string(id) + ",\"queue\":\"mail\""),
            std::string::npos);
  const leased_job l = lease(R"({"queues":["mail"]})");
  received = receive_until(w, "event: started\n");
  ask("POST", "/v1/jobs/1/ack", "{\"lease\":" + std::to_string(l.key) + "}");
  received = receive_until(w, "event: done\n");
  EXPECT_TRUE(received.ends_with("\n\n"));
}

TEST_F(HttpEvents, ContinueAfterTheLastReceivedEvent) {
  start();
  wire first = listen();
  push(R"({"kind":"a"})");
  const std::string place = id_of(receive_until(first, "event: pushed\n"));
  first.close();
  push(R"({"kind":"b"})");
  push(R"({"kind":"c"})");
  const auto expect_rest = [&](wire w) {
    std::string received = receive_until(w, "\"job\":3");
    EXPECT_EQ(received.find("\"job\":1,"), std::string::npos) << received;
    EXPECT_NE(received.find("\"job\":2,"), std::string::npos) << received;
    EXPECT_EQ(received.find("event: missed"), std::string::npos) << received;
  };
  expect_rest(listen("?after=" + place));
  expect_rest(listen("", "Last-Event-ID: " + place + "\r\n"));
}

TEST_F(HttpEvents, ReportMissedEvents) {
  start({}, {}, {.events_kept = 4});
  wire first = listen();
  push();
  const std::string place = id_of(receive_until(first, "event: pushed\n"));
  first.close();
  for (int i = 0; i < 10; ++i) push();
  wire again = listen("?after=" + place);
  const std::string missed = receive_until(again, "event: pushed\n");
  EXPECT_TRUE(missed.starts_with("event: missed\ndata: {\"next\":\""));
  // An id of a previous process of the server.
  wire stranger = listen("?after=1-5");
  EXPECT_TRUE(receive_until(stranger, "event: pushed\n").starts_with("event: missed\n"));
}

TEST_F(HttpEvents, AreChosenByQueueJobAndType) {
  start();
  wire of_queue = listen("?queue=b");
  wire of_job = listen("?job=2");
  wire of_type = listen("?types=cancelled,dead");
  push(R"({"kind":"k","queue":"a"})");
  push(R"({"kind":"k","queue":"b"})");
  ask("POST", "/v1/jobs/1/cancel");
  ask("POST", "/v1/jobs/2/cancel");
  std::string received = receive_until(of_queue, "event: cancelled");
  EXPECT_EQ(received.find("\"queue\":\"a\""), std::string::npos) << received;
  received = receive_until(of_job, "event: cancelled");
  EXPECT_EQ(received.find("\"job\":1,"), std::string::npos) << received;
  received = receive_until(of_type, "\"job\":2");
  EXPECT_EQ(received.find("event: pushed"), std::string::npos) << received;
}

TEST_F(HttpEvents, SendHeartbeatsWithTheirPosition) {
  start();
  wire w = listen("?types=dead&heartbeat=100ms");
  push();
  const std::string received = receive_until(w, "\n\n");
  EXPECT_TRUE(received.starts_with(": still here\nid: ")) << received;
  const std::string place = id_of(received);
  EXPECT_TRUE(json::event_place_from(place)) << place;
}

TEST_F(HttpEvents, ArriveAsAPageOnRequest) {
  start();
  const auto now = read<event_page>(ask("GET", "/v1/events?wait=0"));
  EXPECT_TRUE(now.events.empty());
  const std::string place = json::to_string(json::event_place{now.epoch, now.next});
  push();
  push();
  auto page = read<event_page>(ask("GET", "/v1/events?format=json&limit=1&after=" + place));
  ASSERT_EQ(page.events.size(), 1U);
  EXPECT_EQ(page.events[0].type, event_type::pushed);
  EXPECT_EQ(page.events[0].job, 1U);
  EXPECT_FALSE(page.missed);
  page =
      read<event_page>(ask("GET", "/v1/events?wait=10s&after=" +
                                      json::to_string(json::event_place{page.epoch, page.next})));
  ASSERT_EQ(page.events.size(), 1U);
  EXPECT_EQ(page.events[0].job, 2U);
  wire w = connect();
  w.request("GET", "/v1/events?wait=20s&after=" +
                       json::to_string(json::event_place{page.epoch, page.next}));
  push();
  EXPECT_EQ(read<event_page>(w.receive()).events.at(0).job, 3U);
}

TEST_F(HttpEvents, RefuseInvalidParameters) {
  start();
  const std::string why = refused("/v1/events?types=done,gone");
  EXPECT_NE(why.find("there is no event 'gone'; there are pushed, released, started"),
            std::string::npos)
      << why;
  EXPECT_NE(refused("/v1/events?after=12").find("expected the id of an event"), std::string::npos);
  EXPECT_NE(refused("/v1/events", "Last-Event-ID: x\r\n").find("the header Last-Event-ID"),
            std::string::npos);
  EXPECT_NE(refused("/v1/events?job=x").find("job"), std::string::npos);
  EXPECT_NE(refused("/v1/events?format=xml").find("sse or json"), std::string::npos);
  EXPECT_NE(refused("/v1/events?heartbeat=1ms").find("100ms to 10m"), std::string::npos);
  EXPECT_NE(refused("/v1/events?colour=red").find("known are after, queue"), std::string::npos);
  EXPECT_EQ(ask("HEAD", "/v1/events").status, 200);
}

TEST_F(HttpEvents, EndCleanlyWhenTheServerDoes) {
  start();
  wire w = listen();
  expect_alive_ = false;
  server().close_intake();
  jobs().close();
  server().stop();
  std::string all;
  for (;;) {
    const std::string more = w.next_chunk();
    if (more.empty()) break;
    all += more;
  }
  EXPECT_TRUE(w.clean_end()) << all;
  EXPECT_TRUE(w.ends());
}

TEST_F(HttpEvents, CloseTheConnectionWhenTheClientCloses) {
  start();
  {
    wire w = listen();
    EXPECT_EQ(server().connections(), 1U);
    w.reset();
  }
  wire half = listen();
  half.half_close();
  while (!half.next_chunk().empty()) {
  }
  EXPECT_TRUE(half.clean_end());
  eventually([&] { return server().connections() == 0; }, "the connections to end");
}

TEST_F(HttpEvents, HoldLittleForAClientThatDoesNotRead) {
  constexpr std::size_t unsent = 16 << 10;
  start({.unsent_bytes_max = unsent}, {}, {.events_kept = 64});
  wire w = connect();
  w.receive_buffer(4096);
  w.request("GET", "/v1/events", "");
  EXPECT_EQ(w.receive_head().status, 200);
  // Far more than sockets buffer; events dropped from the ring meanwhile are reported as missed.
  for (int i = 0; i < 60; ++i) {
    std::vector<job_spec> many(500, job_spec{.queue = std::string(100, 'q'), .kind = "k"});
    ASSERT_TRUE(jobs().push_many(std::move(many)).get().front());
  }
  // The stream continues, and reports the missed events.
  std::string received;
  while (received.find("event: missed") == std::string::npos) {
    const std::string more = w.next_chunk();
    ASSERT_FALSE(more.empty());
    received += more;
  }
}

TEST_F(HttpEvents, AreAnsweredInTurnOnAConnectionOfSeveralRequests) {
  start();
  wire w = connect();
  w.request("GET", "/healthz");
  w.request("GET", "/v1/events", "");
  EXPECT_EQ(w.receive().status, 200);
  EXPECT_EQ(w.receive_head().header("content-type"), "text/event-stream");
  w.next_chunk();
  push();
  receive_until(w, "event: pushed");
}

TEST_F(HttpEvents, EndTheConnectionOfAnOldClient) {
  start();
  wire w = connect();
  w.send("GET /v1/events HTTP/1.0\r\nHost: localhost\r\n\r\n");
  const reply head = w.receive_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("transfer-encoding"), "");
  EXPECT_EQ(head.header("connection"), "close");
}

}  // namespace
}  // namespace sluice::jobs::http_events_test
