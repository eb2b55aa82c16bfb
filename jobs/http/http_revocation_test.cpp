// Tokens that are revoked or changed while a request is in progress.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <set>

#include "jobs/http/detail/openapi.hpp"
#include "jobs/http/detail/router.hpp"
#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_revocation_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::reply;
using testing::wire;

struct waiting_call {
  std::string_view label;
  std::string_view method;
  std::string_view route;
  std::string_view target;
  role needs;
  std::string_view body = "";
  std::string_view media = "application/json";
};

constexpr std::string_view line = R"({"kind":"k","queue":"mail"})";
constexpr std::string_view list = R"({"jobs":[{"kind":"k","queue":"mail"}]})";
constexpr std::string_view ndjson = "application/x-ndjson";

// All waiting calls. The queue "mail" is full and paused, and contains job 1.
constexpr auto waiting_calls = std::to_array<waiting_call>({
    {"a lease", "POST", "/v1/leases", "/v1/leases", role::work,
     R"({"queues":["mail"],"wait":"10m"})"},
    {"the end of a job", "GET", "/v1/jobs/{id}", "/v1/jobs/1?wait=10m", role::read},
    {"a page of events", "GET", "/v1/events", "/v1/events?queue=mail&format=json&wait=10m",
     role::read},
    {"a page of all events", "GET", "/v1/events", "/v1/events?format=json&wait=10m", role::read},
    {"a push", "POST", "/v1/jobs", "/v1/jobs?wait=10m", role::push, line},
    {"a push of many", "POST", "/v1/jobs", "/v1/jobs?wait=10m&mode=each", role::push, list},
    {"a push of all or nothing", "POST", "/v1/jobs", "/v1/jobs?wait=10m&mode=all_or_nothing",
     role::push, list},
    {"a push of lines", "POST", "/v1/jobs", "/v1/jobs?wait=10m", role::push, line, ndjson},
    {"a push of all lines or nothing", "POST", "/v1/jobs", "/v1/jobs?wait=10m&mode=all_or_nothing",
     role::push, line, ndjson},
    {"a batch", "POST", "/v1/batches", "/v1/batches?wait=10m", role::push, list},
    {"a workflow", "POST", "/v1/workflows", "/v1/workflows?wait=10m", role::push, list},
});

std::string replaced(std::string text, std::string_view from, std::string_view replacement) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), replacement);
}

class HttpRevocation : public testing::HttpTest {
 protected:
  using change = std::function<void(HttpRevocation&)>;
  struct named_change {
    std::string_view label;
    change make;
  };

  // The ways in which a token for the queue "mail" loses the right to a call.
  static std::vector<named_change> withdrawals() {
    return {
        {"revoked", [](auto& t) { ASSERT_TRUE(t.tokens_.revoke(t.made_.info.id)); }},
        {"removed", [](auto& t) { ASSERT_TRUE(t.tokens_.remove(t.made_.info.id)); }},
        {"for another queue", [](auto& t) { t.edit(R"(["mail"])", R"(["other"])"); }},
        {"for another role",
         [](auto& t) {
           const bool works = t.made_.info.roles.names(role::work);
           t.edit("[\"" + to_string(t.made_.info.roles) + "\"]",
                  works ? R"(["push"])" : R"(["work"])");
         }},
        {"with another secret",
         [](auto& t) {
           const std::string text = t.tokens_.text();
           const std::size_t at = text.find("\"sha256\":\"") + 10;
           t.edit(text.substr(at, 64), std::string(64, 'a'));
         }},
    };
  }

  void serve(http_server_options o = {}) {
    o.tokens = tokens_;
    o.wrong_token_delay = 0ms;
    start(std::move(o));
  }
  // The only token from now on.
  void make_token(role_set roles, std::vector<std::string> queues = {"mail"}) {
    tokens_ = {};
    made_ =
        tokens_
            .create({.name = "t", .roles = roles, .queues = std::move(queues)}, real_time().now())
            .value();
    if (is_serving_) server().use_tokens(tokens_);
  }
  void edit(std::string_view from, std::string_view replacement) {
    tokens_ = token_set::parse(replaced(tokens_.text(), from, replacement)).value();
  }
  std::string header() const { return "Authorization: Bearer " + made_.text + "\r\n"; }
  std::string header(std::string_view media) const {
    return header() + "Content-Type: " + std::string(media) + "\r\n";
  }

  void fill_queue() {
    ASSERT_TRUE(
        jobs()
            .configure("mail", {.capacity_jobs = 1, .when_full = overflow::block, .paused = true})
            .get());
    ASSERT_EQ(jobs().push({.queue = "mail", .kind = "k"}).get().value().id, 1U);
  }
  wire begin(const waiting_call& call) {
    wire w = connect();
    w.request(call.method, call.target, call.body, header(call.media));
    eventually([&] { return server().open_grants() == 1; }, "a call that waits");
    return w;
  }
  std::uint64_t ready(const std::string& queue = "mail") {
    const auto info = jobs().queue(queue);
    return info ? info->counts.ready : 0;
  }

  manual_time time_;
  token_set tokens_;
  token_set::created made_;
  bool is_serving_ = false;
};

TEST_F(HttpRevocation, EndsEveryCallThatWaitsWith401) {
  make_token({role::admin});
  serve();
  is_serving_ = true;
  fill_queue();
  for (const waiting_call& call : waiting_calls) {
    for (const named_change& each : withdrawals()) {
      SCOPED_TRACE(std::string(call.label) + ", a token that is " + std::string(each.label));
      make_token({call.needs});
      wire w = begin(call);
      each.make(*this);
      server().use_tokens(tokens_);
      const reply got = w.receive();
      const std::string why = problem_of(got, 401, error_code::unauthenticated);
      EXPECT_NE(why.find(made_.info.id), std::string::npos) << why;
      EXPECT_EQ(got.header("www-authenticate"), "Bearer error=\"invalid_token\"");
      eventually([&] { return server().open_grants() == 0; }, "no call that waits");
    }
  }
  EXPECT_EQ(ready(), 1U);
  EXPECT_EQ(jobs().stats().pushed, 1U);
  EXPECT_EQ(jobs().stats().leased, 0U);
}

TEST_F(HttpRevocation, OfOtherTokensEndsNoCallThatWaits) {
  make_token({role::admin});
  serve();
  is_serving_ = true;
  fill_queue();
  for (const waiting_call& call : waiting_calls) {
    SCOPED_TRACE(call.label);
    make_token({call.needs});
    const auto other = tokens_.create({.name = "o", .roles = {role::read}}, real_time().now());
    ASSERT_TRUE(other);
    server().use_tokens(tokens_);
    wire w = begin(call);
    ASSERT_TRUE(tokens_.revoke(other->info.id));
    server().use_tokens(tokens_);
    edit(R"(["mail"])", R"(["mail","more"])");
    server().use_tokens(tokens_);
    EXPECT_EQ(server().open_grants(), 1U);
    w.close();
    eventually([&] { return server().open_grants() == 0; }, "no call that waits");
  }
}

TEST_F(HttpRevocation, KnowsEveryCallThatWaits) {
  namespace bj = boost::json;
  const bj::value parsed = bj::parse(std::string(http::openapi_text()));
  const auto waits = [&](const bj::object& operation) {
    if (const auto* parameters = operation.if_contains("parameters")) {
      for (const bj::value& p : parameters->as_array()) {
        if (p.as_object().at("name").as_string() == "wait") return true;
      }
    }
    const auto* body = operation.if_contains("requestBody");
    if (body == nullptr) return false;
    const bj::object* in = &body->as_object();
    for (const auto* name : {"content", "application/json", "schema"}) {
      in = &in->at(name).as_object();
    }
    const auto* reference = in->if_contains("$ref");
    if (reference == nullptr) return false;
    const std::string path(reference->as_string());
    in = &parsed.as_object();
    for (const std::string& name :
         {std::string("components"), std::string("schemas"), path.substr(path.rfind('/') + 1)}) {
      in = &in->at(name).as_object();
    }
    const auto* properties = in->if_contains("properties");
    return properties != nullptr && properties->as_object().contains("wait");
  };
  std::set<std::string> documented;
  for (const auto& path : parsed.as_object().at("paths").as_object()) {
    for (const auto& operation : path.value().as_object()) {
      if (!waits(operation.value().as_object())) continue;
      std::string method(operation.key());
      std::ranges::transform(method, method.begin(),
                             [](char c) { return static_cast<char>(std::toupper(c)); });
      documented.insert(method + " " + std::string(path.key()));
    }
  }
  std::set<std::string> known;
  for (const waiting_call& call : waiting_calls) {
    known.insert(std::string(call.method) + " " + std::string(call.route));
  }
  EXPECT_EQ(known, documented);
}

TEST_F(HttpRevocation, EndsAStreamOfEventsWith401) {
  make_token({role::admin});
  serve();
  is_serving_ = true;
  for (const std::string_view target :
       {"/v1/events?queue=mail&heartbeat=10m", "/v1/events?heartbeat=10m"}) {
    for (const named_change& each : withdrawals()) {
      SCOPED_TRACE(std::string(target) + ", a token that is " + std::string(each.label));
      make_token({role::read});
      wire w = connect();
      w.request("GET", target, "", header());
      ASSERT_EQ(w.receive_head().status, 200);
      w.next_chunk();
      eventually([&] { return server().open_grants() == 1; }, "a stream that waits");
      each.make(*this);
      server().use_tokens(tokens_);
      std::string received;
      for (std::string more = w.next_chunk(); !more.empty(); more = w.next_chunk()) {
        received += more;
      }
      EXPECT_TRUE(w.clean_end());
      EXPECT_NE(received.find("event: error"), std::string::npos) << received;
      EXPECT_NE(received.find("\"status\":401"), std::string::npos) << received;
      eventually([&] { return server().open_grants() == 0; }, "no stream");
    }
  }
}

// A client with Expect: 100-continue gets its reply when its token was checked.
TEST_F(HttpRevocation, BeforeTheEndOfABodyIsSeenOnEveryRouteWithABody) {
  make_token({role::admin}, {});
  serve();
  is_serving_ = true;
  for (const http::route& r : http::routes()) {
    if (r.body == http::body_rule::none) continue;
    std::string path(r.path);
    for (const std::string_view variable : {"{id}", "{name}"}) {
      if (path.find(variable) != std::string::npos) path = replaced(path, variable, "1");
    }
    SCOPED_TRACE(std::string(to_string(r.method)) + " " + path);
    make_token({role::admin}, {});
    wire w = connect();
    w.send(std::string(to_string(r.method)) + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" +
           header("application/json") + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    ASSERT_EQ(w.receive().status, 100);
    ASSERT_TRUE(tokens_.revoke(made_.info.id));
    server().use_tokens(tokens_);
    w.send("{}");
    problem_of(w.receive(), 401, error_code::unauthenticated);
  }
}

TEST_F(HttpRevocation, EndsAnOpenPushOfLinesBeforeItsNextCommit) {
  make_token({role::admin});
  serve();
  is_serving_ = true;
  for (const named_change& each : withdrawals()) {
    SCOPED_TRACE(each.label);
    make_token({role::push});
    const std::uint64_t before = ready();
    wire w = connect();
    w.send("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + header(ndjson) +
           "Content-Length: 1000\r\n\r\n" + std::string(line) + "\n");
    eventually([&] { return ready() == before + 1; }, "the first job");
    each.make(*this);
    server().use_tokens(tokens_);
    w.send(std::string(line) + "\n");
    const std::string why = problem_of(w.receive(), 401, error_code::unauthenticated);
    EXPECT_NE(why.find("; 1 jobs before it were pushed"), std::string::npos) << why;
    EXPECT_EQ(ready(), before + 1);
  }
}

TEST_F(HttpRevocation, EndsAnOpenPushOfAllLinesOrNothingWithNothing) {
  make_token({role::push});
  serve();
  wire w = connect();
  const std::string body = std::string(line) + "\n";
  w.send("POST /v1/jobs?mode=all_or_nothing HTTP/1.1\r\nHost: localhost\r\n" + header(ndjson) +
         "Content-Length: " + std::to_string(2 * body.size()) + "\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_EQ(w.receive().status, 100);
  w.send(body);
  ASSERT_TRUE(tokens_.revoke(made_.info.id));
  server().use_tokens(tokens_);
  w.send(body);
  const std::string why = problem_of(w.receive(), 401, error_code::unauthenticated);
  EXPECT_NE(why.find("; nothing was pushed"), std::string::npos) << why;
  EXPECT_EQ(jobs().stats().pushed, 0U);
}

// Only the server's clock advances, so the wait continues; its job arrives too late.
TEST_F(HttpRevocation, IsSeenWhenALeaseHasItsJob) {
  made_ = tokens_
              .create({.name = "t",
                       .roles = {role::work},
                       .queues = {"mail"},
                       .expires_at = time_.now() + 10min},
                      time_.now())
              .value();
  serve({.time = &time_});
  wire w = begin(waiting_calls.front());
  eventually([&] { return jobs().stats().waiting_leases == 1; }, "a lease that waits");
  time_.advance(10min);
  ASSERT_TRUE(jobs().push({.queue = "mail", .kind = "k"}).get());
  problem_of(w.receive(), 401, error_code::unauthenticated);
  eventually([&] { return ready() == 1; }, "the job to be given back");
  EXPECT_EQ(jobs().get(1).get()->attempts, 0U);
}

TEST_F(HttpRevocation, OfNoTokenIsTheFirstTokenOfAServer) {
  start();
  wire w = connect();
  w.request("POST", "/v1/leases", R"({"queues":["mail"],"wait":"10m"})");
  eventually([&] { return jobs().stats().waiting_leases == 1; }, "a lease that waits");
  make_token({role::work});
  server().use_tokens(tokens_);
  ASSERT_TRUE(jobs().push({.queue = "mail", .kind = "k"}).get());
  problem_of(w.receive(), 401, error_code::unauthenticated);
  eventually([&] { return ready() == 1; }, "the job to be given back");
}

TEST_F(HttpRevocation, IsNotNeededToEndAWaitWhenTheTokenExpires) {
  made_ = tokens_
              .create({.name = "t",
                       .roles = {role::work},
                       .queues = {"mail"},
                       .expires_at = real_time().now() + 50ms},
                      real_time().now())
              .value();
  serve();
  wire w = connect();
  w.request("POST", "/v1/leases", R"({"queues":["mail"],"wait":"10m"})", header());
  problem_of(w.receive(), 401, error_code::unauthenticated);
}

}  // namespace
}  // namespace sluice::jobs::http_revocation_test
