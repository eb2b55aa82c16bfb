#pragma once

// A server on a free port of loopback, with an engine whose store is memory.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/http/http_server.hpp"
#include "jobs/http/testing/wire.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::testing {

using sluice::testing::eventually;

// Every answer that a test had, so that the OpenAPI document can be held against them.
struct answer_seen {
  std::string method;
  std::string target;
  int status = 0;
};
inline guarded<std::vector<answer_seen>>& answers_seen() {
  static guarded<std::vector<answer_seen>> all;
  return all;
}

class HttpTest : public ::testing::Test {
 protected:
  void start(http_server_options o = {}, memory_options memory = {}, engine_options e = {}) {
    auto opened = engine::open(make_memory_store(std::move(memory)), std::move(e));
    ASSERT_TRUE(opened) << opened.error().message;
    engine_ = *std::move(opened);
    o.port = 0;
    server_ = std::make_unique<http_server>(std::move(o));
    const auto port = server_->start(*engine_);
    ASSERT_TRUE(port) << port.error().message;
    port_ = *port;
  }
  // Checks that the server still answers after the test.
  void TearDown() override {
    if (server_ == nullptr) return;
    if (expect_alive_ && is_impatient_) {
      eventually([&] { return ask("GET", "/healthz").status == 200; }, "a server that answers");
    } else if (expect_alive_) {
      EXPECT_EQ(ask("GET", "/healthz").status, 200);
    }
    server_->stop();
    engine_->stop();
    EXPECT_EQ(server_->connections(), 0U);
  }

  engine& jobs() { return *engine_; }
  http_server& server() { return *server_; }
  wire connect() const { return wire(port_); }
  std::uint16_t port() const { return port_; }

  // One request on a connection of its own.
  reply ask(std::string_view method, std::string_view target, std::string_view body = {},
            std::string_view headers = {}) const {
    wire w = connect();
    w.request(method, target, body, headers);
    reply r = w.receive(method == "HEAD");
    answers_seen().lock()->push_back({std::string(method), std::string(target), r.status});
    return r;
  }
  reply send(std::string_view bytes) const {
    wire w = connect();
    w.send(bytes);
    return w.receive();
  }
  job_id push(std::string_view body = R"({"kind":"k"})") const {
    const reply r = ask("POST", "/v1/jobs", body);
    EXPECT_EQ(r.status, 201) << r.body;
    return read<push_receipt>(r).id;
  }
  leased_job lease(std::string_view body = "{}") const {
    const reply r = ask("POST", "/v1/leases", body);
    EXPECT_EQ(r.status, 200) << r.body;
    auto jobs = read<std::vector<leased_job>>(r);
    EXPECT_EQ(jobs.size(), 1U);
    return jobs.empty() ? leased_job{} : jobs.front();
  }

  template <class T>
  static T read(const reply& r) {
    EXPECT_EQ(r.header("content-type"), "application/json") << r.body;
    auto value = json::read<T>(r.body);
    EXPECT_TRUE(value) << r.body << "\n" << value.error().message;
    return value ? *std::move(value) : T{};
  }
  // That an answer is a problem document, with this status and code; its detail.
  static std::string problem_of(const reply& r, int status, error_code code) {
    EXPECT_EQ(r.status, status) << r.body;
    EXPECT_EQ(r.header("content-type"), "application/problem+json");
    const auto p = json::read<json::problem>(r.body);
    EXPECT_TRUE(p) << r.body;
    if (!p) return "";
    EXPECT_EQ(p->status, status);
    EXPECT_EQ(p->error.code, code) << r.body;
    EXPECT_FALSE(p->title.empty());
    EXPECT_FALSE(p->error.message.empty());
    EXPECT_EQ(r.header("retry-after").empty(), status != 503) << r.body;
    return p->error.message;
  }

  bool expect_alive_ = true;
  bool is_impatient_ = false;  // cuts off also a test that stands still for a moment

 private:
  std::unique_ptr<engine> engine_;
  std::unique_ptr<http_server> server_;
  std::uint16_t port_ = 0;
};

}  // namespace sluice::jobs::testing
