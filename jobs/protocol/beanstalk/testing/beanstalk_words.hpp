#pragma once

// A fixture for tests of the beanstalk protocol: send bytes, expect replies, byte for byte. It
// includes the functions of engine_words, for jobs that cross protocols, and a manual clock.
//
//     say("put 0 0 10 5\r\nhello\r\n");
//     expect("INSERTED 1\r\n");

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/engine/testing/engine_words.hpp"
#include "jobs/protocol/beanstalk/detail/beanstalk_session.hpp"
#include "jobs/protocol/testing/fake_client.hpp"

namespace sluice::jobs::testing {

class beanstalk_words : public engine_words {
 protected:
  void TearDown() override {
    for (const auto& each : clients_) each->close();
    if (engine_ != nullptr) {
      quiet();
      engine_words::TearDown();
      quiet();
      EXPECT_EQ(server().reserved.load(), 0U);
      EXPECT_EQ(server().waiting.load(), 0U);
      EXPECT_EQ(server().connections.load(), 0U);
      engine_.reset();
    }
    later_.run_all();
  }

  beanstalk::server_state& server() {
    if (server_ == nullptr) {
      server_options.time = &time;
      server_ = std::make_unique<beanstalk::server_state>(e(), server_options);
    }
    return *server_;
  }

  // The client side of a connection.
  class talk {
   public:
    talk(beanstalk_words& test, fake_client& wire) : test_(&test), wire_(&wire) {}

    void say(std::string_view bytes) { wire_->send(bytes); }
    void expect(std::string_view answer) {
      await([&] { return wire_->received() >= answer.size() || wire_->is_ended(); });
      EXPECT_EQ(wire_->take(answer.size()), answer);
    }
    // Sends a command and expects its reply.
    void ask(std::string_view bytes, std::string_view answer) {
      say(bytes);
      expect(answer);
    }
    // Expects no further reply, after all pending calls.
    void expect_nothing() {
      test_->quiet();
      EXPECT_EQ(wire_->take(), "");
    }
    void expect_end() {
      await([&] { return wire_->is_ended(); });
      EXPECT_EQ(wire_->take(), "");
    }
    // Waits for all replies, and returns them.
    std::string rest() {
      await([&] { return wire_->unread() == 0 && wire_->open_replies() == 0; });
      return wire_->take();
    }
    // Sends a command and returns the text of its reply `OK <bytes>\r\n<text>\r\n`.
    std::string text(std::string_view asked) {
      say(asked);
      await([&] { return is_whole(); });
      std::string all = wire_->take();
      EXPECT_TRUE(all.starts_with("OK ")) << all;
      const std::size_t head = all.find("\r\n");
      if (head == std::string::npos) return all;
      EXPECT_EQ(std::to_string(all.size() - head - 4), all.substr(3, head - 3));
      return all.substr(head + 2, all.size() - head - 4);
    }
    // Puts a job and returns its id.
    job_id put(std::string_view arguments, std::string_view body) {
      say("put " + std::string(arguments) + " " + std::to_string(body.size()) + "\r\n" +
          std::string(body) + "\r\n");
      await([&] { return is_whole(); });
      const std::string all = wire_->take();
      EXPECT_TRUE(all.starts_with("INSERTED ")) << all;
      return all.size() > 9 ? std::stoull(all.substr(9)) : 0;
    }
    std::string value(std::string_view asked, std::string_view field) {
      const std::string all = text(asked);
      const std::string wanted = "\n" + std::string(field) + ": ";
      const std::size_t at = all.find(wanted);
      if (at == std::string::npos) return "no " + std::string(field);
      const std::size_t from = at + wanted.size();
      return all.substr(from, all.find('\n', from) - from);
    }
    fake_client& wire() { return *wire_; }

   private:
    bool is_whole() const { return wire_->open_replies() == 0 && wire_->received() > 0; }
    template <class Condition>
    void await(Condition&& holds) {
      while (!holds()) {
        if (!test_->later_.run_next(deadline::after(20s))) {
          ADD_FAILURE() << "no answer came";
          return;
        }
      }
    }

    beanstalk_words* test_;
    fake_client* wire_;
  };

  talk connect(std::size_t replies_max = 1024) {
    clients_.push_back(fake_client::connect(
        later_,
        [&](protocol::client& client) {
          return std::make_unique<beanstalk::beanstalk_session>(client, server());
        },
        replies_max));
    return {*this, *clients_.back()};
  }
  talk& first() {
    if (!first_) first_ = connect();
    return *first_;
  }
  void say(std::string_view bytes) { first().say(bytes); }
  void expect(std::string_view answer) { first().expect(answer); }
  void ask(std::string_view bytes, std::string_view answer) { first().ask(bytes, answer); }
  job_id put(std::string_view arguments, std::string_view body) {
    return first().put(arguments, body);
  }

  // Runs the engine and the clients until neither has work.
  void quiet() {
    for (int i = 0; i < 3; ++i) {
      settle();
      later_.run_all();
    }
  }
  void pass(std::chrono::nanoseconds by) {
    quiet();
    time.advance(by);
    quiet();
  }
  static std::string line(std::string_view word, job_id id) {
    return std::string(word) + " " + std::to_string(id) + "\r\n";
  }
  static std::string with_body(std::string_view word, job_id id, std::string_view body) {
    return std::string(word) + " " + std::to_string(id) + " " + std::to_string(body.size()) +
           "\r\n" + std::string(body) + "\r\n";
  }

  beanstalk_options server_options;
  manual_executor later_;

 private:
  std::unique_ptr<beanstalk::server_state> server_;
  std::vector<std::shared_ptr<fake_client>> clients_;
  std::optional<talk> first_;
};

}  // namespace sluice::jobs::testing
