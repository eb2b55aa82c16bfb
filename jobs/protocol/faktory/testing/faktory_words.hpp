#pragma once

// A fixture for tests of this protocol: clients that send lines and read replies, on an engine with
// a manual clock.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/engine/testing/engine_words.hpp"
#include "jobs/protocol/faktory/detail/faktory_session.hpp"
#include "jobs/protocol/testing/fake_client.hpp"

namespace sluice::jobs::testing {

class faktory_words : public engine_words {
 protected:
  class speaker {
   public:
    speaker(faktory_words& in, std::shared_ptr<fake_client> wire)
        : in_(in), wire_(std::move(wire)) {}

    void send(std::string_view line) { wire_->send(std::string(line) + "\r\n"); }
    // Returns the next reply; waits for the engine.
    std::string hear() {
      for (;;) {
        if (auto reply = wire_->try_read()) return *std::move(reply);
        if (in_.loop.run_next(deadline::after(20s)) != status::ok) return "(nothing)";
      }
    }
    std::string ask(std::string_view line) {
      send(line);
      return hear();
    }
    bool has_heard() {
      in_.loop.run_all();
      return wire_->try_read().has_value();
    }
    // Runs until all its engine calls are done.
    void settle() {
      while (wire_->calls() > 0 && in_.loop.run_next(deadline::after(20s)) == status::ok) {
      }
    }
    // Sends a FETCH, and returns when the engine counts it as waiting.
    void begin_fetch(std::string_view line = "FETCH default") {
      const std::uint64_t before = in_.e().stats().waiting_leases;
      send(line);
      sluice::testing::eventually([&] {
        in_.loop.run_all();
        return in_.e().stats().waiting_leases == before + 1;
      });
    }
    fake_client& wire() { return *wire_; }

   private:
    faktory_words& in_;
    std::shared_ptr<fake_client> wire_;
  };

  ~faktory_words() override { loop.run_all(); }
  void TearDown() override {
    for (auto& s : speakers) s->wire().close();
    settle_all();
    engine_words::TearDown();
  }
  void settle_all() {
    for (auto& s : speakers) s->settle();
  }

  faktory::shared_state& all() {
    if (shared == nullptr) {
      wire_options.time = &time;
      shared = std::make_unique<faktory::shared_state>(wire_options, e());
    }
    return *shared;
  }
  // Connects a client, which receives the greeting.
  speaker& connect() {
    speakers.push_back(
        std::make_unique<speaker>(*this, fake_client::connect(loop, [&](protocol::client& client) {
          return std::make_unique<faktory::faktory_session>(all(), client);
        })));
    return *speakers.back();
  }
  speaker& client() {
    speaker& s = connect();
    EXPECT_EQ(s.hear(), R"(+HI {"v":2})");
    EXPECT_EQ(s.ask(R"(HELLO {"v":2})"), "+OK");
    return s;
  }
  speaker& worker(const std::string& wid = "worker-1") {
    speaker& s = connect();
    EXPECT_EQ(s.hear(), R"(+HI {"v":2})");
    EXPECT_EQ(s.ask(R"(HELLO {"v":2,"hostname":"h","pid":7,"labels":["a"],"wid":")" + wid + "\"}"),
              "+OK");
    return s;
  }

  // Returns the JSON of a job.
  static std::string job_text(std::string_view jid, std::string_view more = "") {
    return R"({"jid":")" + std::string(jid) + R"(","jobtype":"mail","args":[1])" +
           (more.empty() ? "" : "," + std::string(more)) + "}";
  }
  static std::string push_line(std::string_view jid, std::string_view more = "") {
    return "PUSH " + job_text(jid, more);
  }
  // Returns the JSON text of a member's value, with its quotes if it has some.
  static std::string member(const std::string& text, const std::string& name) {
    const std::size_t at = text.find("\"" + name + "\":");
    if (at == std::string::npos) return "(none)";
    const std::size_t from = at + name.size() + 3;
    std::size_t end = from;
    int depth = 0;
    bool quoted = false;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (c == '"' && text[end - 1] != '\\') quoted = !quoted;
      if (quoted) continue;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']' || c == ',') && depth == 0) break;
      if (c == '}' || c == ']') --depth;
    }
    return text.substr(from, end - from);
  }
  static std::string jid_in(const std::string& text) { return member(text, "jid"); }

  // Advances the clock, and wakes the sessions.
  void pass(std::chrono::nanoseconds by) {
    advance(by);
    for (auto& s : speakers) s->wire().wake(time.timers().now());
    settle();
  }

  manual_executor loop{{.capacity = 100'000}};
  faktory_options wire_options;
  std::unique_ptr<faktory::shared_state> shared;
  std::vector<std::unique_ptr<speaker>> speakers;
};

}  // namespace sluice::jobs::testing
