#include <gtest/gtest.h>

#include <chrono>

#include "sluice/actor/actor_system.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::ask_deadline_test {
namespace {

using namespace std::chrono_literals;

struct question {
  using reply = int;
};

class silent : public actor<silent, question> {
 public:
  void on(question, responder<int> asker) { kept_ = std::move(asker); }

 private:
  responder<int> kept_;
};

class ask_deadline_test : public ::testing::Test {
 protected:
  ~ask_deadline_test() override {
    system_.stop();
    on_.run_all();
  }
  static actor_system_options with(clock& time) {
    actor_system_options o;
    o.time = &time;
    return o;
  }

  manual_clock time_;
  manual_executor on_;
  actor_system system_{on_, with(time_)};
};

TEST_F(ask_deadline_test, ADeadlineInThePastEndsTheAskAtOnce) {
  const auto receiver = system_.spawn<silent>();
  auto f = receiver.ask(question{}, {deadline::after(0s, time_)});
  EXPECT_TRUE(f.is_ready());
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(ask_deadline_test, ADeadlineWithoutAClockUsesTheRealClockNotTheSystems) {
  const auto receiver = system_.spawn<silent>();
  auto f = receiver.ask(question{}, {deadline::after(1ms)});
  EXPECT_EQ(time_.pending(), 0U);
  EXPECT_THROW(f.get(), future_error);
}

}  // namespace
}  // namespace sluice::ask_deadline_test
