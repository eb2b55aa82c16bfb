// Audited requests and their callers.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "jobs/http/detail/router.hpp"
#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_audit_test {
namespace {

using testing::reply;

struct written {
  std::string who, from, act;
  int status = 0;

  friend bool operator==(const written&, const written&) = default;
  friend std::ostream& operator<<(std::ostream& out, const written& w) {
    return out << w.who << " from " << w.from << ": " << w.act << " (" << w.status << ")";
  }
};

// A request. The table is executed in order; later requests use the results of earlier ones.
struct attempt {
  std::string method, path, body;
  int status;
};

class HttpAudit : public testing::HttpTest {
 protected:
  // Starts a server with a ready job in `q`, and a batch.
  void SetUp() override {
    const auto made = tokens_.create({.name = "t", .roles = {role::admin}}, time_.now()).value();
    who_ = made.info.id;
    header_ = "Authorization: Bearer " + made.text + "\r\n";
    http_server_options o;
    o.tokens = tokens_;
    o.time = &time_;
    o.wrong_token_delay = milliseconds(0);
    o.on_audit = [this](const audit_entry& e) {
      lines_.lock()->push_back(
          {std::string(e.who), std::string(e.from), std::string(e.act), e.status});
    };
    o.faktory =
        faktory_port{.list = [](const std::string&, std::size_t) { return faktory_worker_page{}; },
                     .set_state = [](const std::string& wid,
                                     worker_state state) -> std::optional<faktory_worker> {
                       return faktory_worker{.wid = wid, .state = state};
                     }};
    start(std::move(o));
    job_ = std::to_string(jobs().push({.queue = "q", .kind = "k"}).get().value().id);
    batch_ =
        std::to_string(jobs().push_batch({.jobs = {{.queue = "b", .kind = "k"}}}).get().value().id);
  }
  // Returns the audit lines of a request.
  std::vector<written> of(const attempt& a) {
    lines_.lock()->clear();
    const reply got = ask(a.method, a.path, a.body, header_);
    EXPECT_EQ(got.status, a.status) << a.method << " " << a.path << ": " << got.body;
    const auto lines = lines_.lock();
    return *lines;
  }

  std::vector<attempt> administrative() const {
    return {
        {"PATCH", "/v1/queues/q", R"({"weight":2})", 200},
        {"POST", "/v1/queues/q/pause", "", 200},
        {"POST", "/v1/queues/q/resume", "", 200},
        {"POST", "/v1/jobs/" + job_ + "/cancel", "", 200},
        {"POST", "/v1/jobs/" + job_ + "/retry", "", 200},
        {"DELETE", "/v1/jobs/" + job_, "", 204},
        {"POST", "/v1/queues/q/purge", "", 200},
        {"POST", "/v1/batches/" + batch_ + "/cancel", "", 200},
        {"POST", "/v1/batches/" + batch_ + "/retry", "", 200},
        {"PUT", "/v1/crons/c", R"({"schedule":"@daily","job":{"kind":"k"}})", 200},
        {"PATCH", "/v1/crons/c", R"({"paused":true})", 200},
        {"POST", "/v1/crons/c/pause", "", 200},
        {"POST", "/v1/crons/c/resume", "", 200},
        {"POST", "/v1/crons/c/run", "", 200},
        {"DELETE", "/v1/crons/c", "", 204},
        {"POST", "/v1/faktory/workers/w/quiet", "", 200},
        {"POST", "/v1/faktory/workers/w/terminate", "", 200},
        // Requests without an effect are audited, too.
        {"DELETE", "/v1/crons/c", "", 404},
        {"POST", "/v1/jobs/999/cancel", "", 404},
        {"PATCH", "/v1/queues/q", R"({"weight":0})", 400},
    };
  }
  std::vector<attempt> others() const {
    return {
        {"POST", "/v1/jobs", R"({"kind":"k"})", 201},
        {"POST", "/v1/batches", R"({"jobs":[{"kind":"k"}]})", 201},
        {"POST", "/v1/workflows", R"({"jobs":[{"kind":"k"}]})", 201},
        {"POST", "/v1/batches/" + batch_ + "/close", "", 200},
        {"POST", "/v1/crons/check", R"({"schedule":"@daily"})", 200},
        {"POST", "/v1/leases", R"({"queues":["q"]})", 200},
        {"POST", "/v1/jobs/" + job_ + "/extend", R"({"lease":1})", 409},
        {"POST", "/v1/jobs/" + job_ + "/progress", R"({"lease":1,"percent":1})", 409},
        {"POST", "/v1/jobs/" + job_ + "/logs", R"({"lease":1,"lines":["a"]})", 409},
        {"POST", "/v1/jobs/" + job_ + "/ack", R"({"lease":1})", 409},
        {"POST", "/v1/jobs/" + job_ + "/fail", R"({"lease":1})", 409},
        {"POST", "/v1/jobs/" + job_ + "/release", R"({"lease":1})", 409},
        {"POST", "/v1/acks", R"({"acks":[]})", 200},
        {"GET", "/v1/jobs", "", 200},
        {"GET", "/v1/jobs/" + job_, "", 200},
        {"GET", "/v1/jobs/" + job_ + "/logs", "", 200},
        {"GET", "/v1/queues", "", 200},
        {"GET", "/v1/queues/q", "", 200},
        {"GET", "/v1/batches", "", 200},
        {"GET", "/v1/batches/" + batch_, "", 200},
        {"GET", "/v1/batches/" + batch_ + "/graph", "", 200},
        {"GET", "/v1/crons", "", 200},
        {"GET", "/v1/crons/none", "", 404},
        {"GET", "/v1/faktory/workers", "", 200},
        {"GET", "/v1/events?format=json", "", 200},
        {"GET", "/v1/stats", "", 200},
        {"GET", "/v1/openapi.json", "", 200},
        {"GET", "/metrics", "", 200},
        {"GET", "/healthz", "", 200},
        {"GET", "/readyz", "", 200},
        {"GET", "/", "", 200},
    };
  }

  manual_time time_;
  token_set tokens_;
  guarded<std::vector<written>> lines_;
  std::string who_, header_, job_, batch_;
};

TEST_F(HttpAudit, HasOneLineForEveryAdministrativeRequest) {
  for (const attempt& a : administrative()) {
    EXPECT_EQ(of(a), (std::vector<written>{{who_, "127.0.0.1", a.method + " " + a.path, a.status}}))
        << a.method << " " << a.path;
  }
}

TEST_F(HttpAudit, HasNoLineForRequestsOfProducersWorkersAndReaders) {
  for (const attempt& a : others()) {
    EXPECT_EQ(of(a), std::vector<written>{}) << a.method << " " << a.path;
  }
}

// A new route must be added to one of the two tables.
TEST_F(HttpAudit, IsTestedForEveryRoute) {
  auto all = administrative();
  for (const attempt& a : others()) all.push_back(a);
  for (const http::route& r : http::routes()) {
    EXPECT_TRUE(std::ranges::any_of(all,
                                    [&](const attempt& a) {
                                      const std::string path = a.path.substr(0, a.path.find('?'));
                                      return a.method == to_string(r.method) &&
                                             http::find_route(r.method, path).target == &r;
                                    }))
        << to_string(r.method) << " " << r.path;
  }
}

}  // namespace
}  // namespace sluice::jobs::http_audit_test
