#include "jobs/deliver/detail/outgoing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <random>

#include "jobs/deliver/testing/receiver.hpp"
#include "jobs/deliver/testing/test_authority.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/temporary_folder.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::detail::outgoing_test {
namespace {

using namespace std::chrono_literals;
using namespace sluice::jobs::testing;
using fault = outgoing_end::fault;

class outgoing_test : public ::testing::Test {
 protected:
  ~outgoing_test() override {
    on.post([this] {
      if (sender) sender->close();
    });
    on.end();
  }

  outgoing& o() {
    if (sender == nullptr) {
      auto opened = outgoing::open(on, options);
      check(opened.has_value(), "test", "an outgoing");
      sender = *std::move(opened);
    }
    return *sender;
  }

  struct sent {
    std::future<outgoing_end> end;
    std::future<outgoing::request_id> id;
  };
  sent begin(const std::string& url, std::string body = "{}", milliseconds timeout = 30s) {
    outgoing& through = o();
    auto end = std::make_shared<std::promise<outgoing_end>>();
    auto id = std::make_shared<std::promise<outgoing::request_id>>();
    sent made{end->get_future(), id->get_future()};
    outgoing_request request{.url = parse_web_url(url).value(),
                             .headers = {{"Content-Type", "application/json"}},
                             .body = std::move(body),
                             .timeout = timeout};
    on.post([&through, end, id, request = std::move(request)]() mutable {
      id->set_value(through.send(
          std::move(request), [end](outgoing_end result) { end->set_value(std::move(result)); }));
    });
    return made;
  }
  outgoing_end post(const std::string& url, std::string body = "{}") {
    return begin(url, std::move(body)).end.get();
  }
  std::size_t idle() {
    const auto count = std::make_shared<std::promise<std::size_t>>();
    auto counted = count->get_future();
    on.post([this, count] { count->set_value(o().idle()); });
    return counted.get();
  }

  manual_time time;
  outgoing_options options;
  loop on{time.timers(), "test"};
  std::unique_ptr<outgoing> sender;
};

std::string head(std::string_view more) {
  return "HTTP/1.1 200 OK\r\n" + std::string(more) + "\r\n";
}

TEST_F(outgoing_test, PostsAndReturnsTheResponse) {
  receiver endpoint([](const received&) {
    return answer(503, "not now", "Content-Type: text/plain\r\nRetry-After: 7\r\n");
  });
  const auto end = post(endpoint.url("/in?x=1"), R"({"a":1})");
  EXPECT_EQ(end.cause, fault::none) << end.message;
  EXPECT_EQ(end.status, 503);
  EXPECT_EQ(end.body, "not now");
  EXPECT_EQ(end.content_type, "text/plain");
  EXPECT_EQ(end.retry_after, "7");
  const auto came = endpoint.requests().at(0);
  EXPECT_EQ(came.method, "POST");
  EXPECT_EQ(came.target, "/in?x=1");
  EXPECT_EQ(came.body, R"({"a":1})");
  EXPECT_EQ(came.header("content-type"), "application/json");
  EXPECT_EQ(came.header("host"), "127.0.0.1:" + std::to_string(endpoint.port()));
}

TEST_F(outgoing_test, ReadsResponsesOfEveryLength) {
  receiver endpoint([](const received& r) -> reply_bytes {
    if (r.body == "chunked") {
      return {head("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"};
    }
    if (r.body == "none") return answer(204);
    if (r.body == "interim") {
      return {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
              answer(200, "at last").text};
    }
    return {head("") + "until the end", reply_bytes::then::close};
  });
  EXPECT_EQ(post(endpoint.url(), "chunked").body, "abcde");
  EXPECT_EQ(post(endpoint.url(), "none").status, 204);
  EXPECT_EQ(post(endpoint.url(), "interim").body, "at last");
  EXPECT_EQ(post(endpoint.url(), "until the end").body, "until the end");
}

TEST_F(outgoing_test, ReusesAConnection) {
  receiver endpoint([](const received&) { return answer(200, "ok"); });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(post(endpoint.url()).status, 200);
  EXPECT_EQ(endpoint.connections(), 1);
  EXPECT_EQ(idle(), 1U);
}

TEST_F(outgoing_test, ClosesAnIdleConnectionAfterItsTime) {
  receiver endpoint([](const received&) { return answer(200, "ok"); });
  EXPECT_EQ(post(endpoint.url()).status, 200);
  ASSERT_EQ(idle(), 1U);
  time.advance(options.keep_idle);
  endpoint.await_closed(1);
  EXPECT_EQ(idle(), 0U);
}

TEST_F(outgoing_test, LimitsItsIdleConnections) {
  options.idle_per_origin_max = 2;
  options.idle_max = 3;
  std::promise<void> all_came;
  std::atomic<int> came{0};
  const auto together = all_came.get_future().share();
  const auto wait = [&](const received&) {
    if (++came == 8) all_came.set_value();
    together.wait();
    return answer(200, "ok");
  };
  receiver a(wait);
  receiver b(wait);
  std::vector<sent> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(begin(a.url()));
    all.push_back(begin(b.url()));
  }
  for (sent& s : all) EXPECT_EQ(s.end.get().status, 200);
  EXPECT_EQ(idle(), 3U);
  a.await_closed(2);
  b.await_closed(2);
}

TEST_F(outgoing_test, DoesNotReuseAConnectionWithCloseOrExtraInput) {
  receiver endpoint([](const received& r) {
    auto reply = answer(200, "ok", r.body == "close" ? "Connection: close\r\n" : "");
    if (r.body == "more") reply.text += "HTTP/1.1 200 OK\r\n\r\nsmuggled";
    return reply;
  });
  EXPECT_EQ(post(endpoint.url(), "close").status, 200);
  EXPECT_EQ(post(endpoint.url(), "more").body, "ok");
  EXPECT_EQ(post(endpoint.url(), "plain").body, "ok");
  EXPECT_EQ(endpoint.connections(), 3);
}

TEST_F(outgoing_test, ReplacesAKeptConnectionThatWasClosedWhileIdle) {
  receiver endpoint([](const received& r) {
    auto reply = answer(200, "ok");
    if (r.connection == 1) reply.after = reply_bytes::then::close;
    return reply;
  });
  EXPECT_EQ(post(endpoint.url()).status, 200);
  ASSERT_EQ(idle(), 1U);
  endpoint.await_closed(1);
  EXPECT_EQ(post(endpoint.url()).status, 200);
  EXPECT_EQ(endpoint.connections(), 2);
  EXPECT_EQ(endpoint.requests().size(), 2U);
}

TEST_F(outgoing_test, NeverRepeatsARequestThatTheReceiverMayHaveRead) {
  for (const auto mode : {reply_bytes::then::close, reply_bytes::then::reset}) {
    receiver endpoint([mode](const received& r) {
      return r.number == 2 ? reply_bytes{"", mode} : answer(200, "ok");
    });
    EXPECT_EQ(post(endpoint.url()).status, 200);
    const auto lost = post(endpoint.url());
    EXPECT_EQ(to_string(lost.cause), "connection_lost") << lost.message;
    EXPECT_EQ(endpoint.requests().size(), 2U);
    EXPECT_EQ(endpoint.connections(), 1);
  }
}

TEST_F(outgoing_test, ReportsWhyThereIsNoResponse) {
  receiver endpoint([](const received& r) -> reply_bytes {
    if (r.body == "close") return {"", reply_bytes::then::close};
    if (r.body == "reset") return {"", reply_bytes::then::reset};
    if (r.body == "half") return {head("Content-Length: 10\r\n") + "abc", reply_bytes::then::close};
    if (r.body == "half a head") return {"HTTP/1.1 200 OK\r\nConte", reply_bytes::then::close};
    if (r.body == "large head") {
      return {head("X: " + std::string(17000, 'x') + "\r\n"), reply_bytes::then::close};
    }
    if (r.body == "switch") return {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"};
    return {"SSH-2.0-OpenSSH\r\n", reply_bytes::then::close};
  });
  const auto expect = [&](const std::string& body, fault cause, std::string_view words) {
    const auto end = post(endpoint.url(), body);
    EXPECT_EQ(to_string(end.cause), to_string(cause)) << body << ": " << end.message;
    EXPECT_NE(end.message.find(words), std::string::npos) << body << ": " << end.message;
  };
  expect("close", fault::connection_lost, "without a response");
  expect("reset", fault::connection_lost, "lost");
  expect("half", fault::bad_answer, "incomplete");
  expect("half a head", fault::bad_answer, "incomplete");
  expect("large head", fault::bad_answer, "larger than 16384 bytes");
  expect("switch", fault::bad_answer, "101");
  expect("nonsense", fault::bad_answer, "not HTTP");
}

TEST_F(outgoing_test, ReportsARefusedConnection) {
  std::string url;
  {
    url = receiver([](const received&) { return answer(200); }).url();
  }
  const auto end = post(url);
  EXPECT_EQ(end.cause, fault::connect_failed);
  EXPECT_NE(end.message.find("refused"), std::string::npos) << end.message;
}

TEST_F(outgoing_test, ReportsAHostWithoutAnAddress) {
  const auto end = post("http://nowhere.invalid/");
  EXPECT_EQ(to_string(end.cause), "host_not_found");
  EXPECT_NE(end.message.find("nowhere.invalid"), std::string::npos) << end.message;
}

TEST_F(outgoing_test, ResolvesAHostName) {
  receiver endpoint([](const received&) { return answer(200, "ok"); });
  EXPECT_EQ(post(endpoint.url("/", "localhost")).status, 200);
}

TEST_F(outgoing_test, CutsABodyThatIsTooLarge) {
  options.body_bytes_max = 1000;
  receiver endpoint([](const received& r) -> reply_bytes {
    if (r.body == "endless") {
      std::string text = head("Transfer-Encoding: chunked\r\n");
      for (int i = 0; i < 100; ++i) text += "64\r\n" + std::string(100, 'y') + "\r\n";
      return {text};
    }
    return answer(200, std::string(r.body == "fits" ? 1000 : 100'000, 'x'));
  });
  EXPECT_FALSE(post(endpoint.url(), "fits").is_cut);
  for (const char* const mode : {"long", "endless"}) {
    const auto end = post(endpoint.url(), mode);
    EXPECT_EQ(end.cause, fault::none) << end.message;
    EXPECT_TRUE(end.is_cut);
    EXPECT_EQ(end.status, 200);
    EXPECT_EQ(end.body.size(), 1000U);
  }
  EXPECT_EQ(idle(), 0U);
}

TEST_F(outgoing_test, TimesOutInEveryPhase) {
  event go;
  receiver endpoint([&](const received& r) -> reply_bytes {
    if (r.body == "silent") go.wait();
    if (r.body == "slow head") return {"HTTP/1.1 200 OK\r\n"};
    return {head("Content-Length: 10\r\n") + "abc"};
  });
  std::size_t count = 0;
  for (const char* const mode : {"silent", "slow head", "slow body"}) {
    auto s = begin(endpoint.url(), mode, 5s);
    endpoint.await(++count);
    time.advance(4999ms);
    EXPECT_EQ(s.end.wait_for(0s), std::future_status::timeout) << mode;
    time.advance(1ms);
    const auto end = s.end.get();
    EXPECT_EQ(end.cause, fault::timed_out) << mode << ": " << end.message;
    EXPECT_NE(end.message.find("5s"), std::string::npos) << end.message;
  }
  go.set();
}

TEST_F(outgoing_test, TimesOutWithoutAConnection) {
  // TLS to a server that waits for the end of a request in plain text.
  receiver plain([&](const received&) { return answer(200); });
  auto s = begin("https://127.0.0.1:" + std::to_string(plain.port()) + "/");
  sluice::testing::eventually([&] { return plain.connections() == 1; });
  time.advance(options.connect_timeout);
  const auto end = s.end.get();
  EXPECT_EQ(end.cause, fault::timed_out) << end.message;
  EXPECT_NE(end.message.find("no connection within 10s"), std::string::npos) << end.message;
  EXPECT_TRUE(plain.requests().empty());
}

TEST_F(outgoing_test, CancelEndsARequestAtOnce) {
  event go;
  receiver endpoint([&](const received&) {
    go.wait();
    return answer(200);
  });
  auto s = begin(endpoint.url());
  endpoint.await(1);
  const auto id = s.id.get();
  on.post([this, id] {  // by value: the first cancel ends the wait below
    o().cancel(id);
    o().cancel(id);
  });
  EXPECT_EQ(s.end.get().cause, fault::cancelled);
  go.set();
}

TEST_F(outgoing_test, GarbageIsAFault) {
  const auto seed = static_cast<unsigned>(sluice::testing::seed(sluice::testing::test_name(), 23));
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string good = answer(200, "0123456789", "Content-Type: text/plain\r\nX: y\r\n").text;
  const std::string chunked =
      head("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  receiver endpoint([&](const received&) -> reply_bytes {  // one request at a time
    std::string text = random() % 2 == 0 ? good : chunked;
    switch (random() % 4) {
      case 0:
        text.resize(random() % text.size());
        break;
      case 1:
        for (auto n = 1 + random() % 8; n > 0; --n) {
          text[random() % text.size()] = static_cast<char>(random());
        }
        break;
      case 2:
        text.insert(random() % text.size(), std::string(random() % 3000, char(random())));
        break;
      default:
        text.assign(random() % 500, ' ');
        for (char& c : text) c = static_cast<char>(random());
    }
    return {text, random() % 3 == 0 ? reply_bytes::then::reset : reply_bytes::then::close};
  });
  int answered = 0;
  int faults = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto end = post(endpoint.url());
    ++(end.cause == fault::none ? answered : faults);
    ASSERT_NE(end.cause, fault::timed_out);
    ASSERT_EQ(end.cause == fault::none, end.message.empty());
  }
  EXPECT_GT(answered, 50);
  EXPECT_GT(faults, 500);
}

// ---- TLS

class outgoing_tls_test : public outgoing_test {
 protected:
  receiver::script ok() {
    return [](const received&) { return answer(200, "ok"); };
  }
  sluice::testing::temporary_folder folder;
  test_authority ca{folder.file("ca.pem")};
};

TEST_F(outgoing_tls_test, ReusesAConnectionToATrustedServer) {
  options.ca_file = ca.file();
  receiver endpoint(ok(), ca.server_for("DNS:localhost,IP:127.0.0.1"));
  for (int i = 0; i < 3; ++i) {
    const auto end = post(endpoint.url("/in", "localhost"), std::string(200'000, 'x'));
    EXPECT_EQ(end.status, 200) << end.message;
  }
  EXPECT_EQ(endpoint.connections(), 1);
  EXPECT_EQ(post(endpoint.url("/in", "127.0.0.1")).status, 200);
}

TEST_F(outgoing_tls_test, RejectsAnUnknownAuthority) {
  receiver endpoint(ok(), ca.server_for("DNS:localhost"));
  const auto end = post(endpoint.url("/in", "localhost"));
  EXPECT_EQ(to_string(end.cause), "tls_failed");
  EXPECT_NE(end.message.find("not trusted"), std::string::npos) << end.message;
  EXPECT_TRUE(endpoint.requests().empty());
}

TEST_F(outgoing_tls_test, RejectsACertificateForAnotherHost) {
  options.ca_file = ca.file();
  receiver endpoint(ok(), ca.server_for("DNS:example.com,IP:127.0.0.2"));
  for (const char* const host : {"localhost", "127.0.0.1"}) {
    const auto end = post(endpoint.url("/in", host));
    EXPECT_EQ(to_string(end.cause), "tls_failed") << end.message;
    EXPECT_NE(end.message.find("does not name the host"), std::string::npos) << end.message;
  }
  EXPECT_TRUE(endpoint.requests().empty());
}

TEST_F(outgoing_tls_test, NamesAnInvalidFileOfAuthorities) {
  options.ca_file = folder.file("none.pem");
  const auto opened = outgoing::open(on, options);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("none.pem"), std::string::npos) << opened.error().message;
}

}  // namespace
}  // namespace sluice::jobs::detail::outgoing_test
