// A callback of the actors that throws is reported on standard error and changes nothing.

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/event_bus.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::callback_errors_test {
namespace {

struct ping {};
struct fall {};
class worker : public actor<worker, ping, fall> {
 public:
  void on(const ping&) {}
  void on(const fall&) { throw std::runtime_error("no ink"); }
};

[[noreturn]] void fails() { throw std::runtime_error("log is full"); }

class callback_errors_test : public ::testing::Test {
 protected:
  callback_errors_test() { ::testing::internal::CaptureStderr(); }
  static std::string written() { return ::testing::internal::GetCapturedStderr(); }
  manual_executor ex;
};

TEST_F(callback_errors_test, OnDeadLetter) {
  actor_system system(ex, {.name = "shop", .on_dead_letter = [](const dead_letter&) { fails(); }});
  const auto a = system.spawn<worker>();
  a.stop();
  ex.run_all();
  EXPECT_EQ(a.send(ping{}), status::closed);
  EXPECT_EQ(system.stats().dead_letters, 1U);
  EXPECT_EQ(written(), "sluice: on_dead_letter of actor_system 'shop' threw: log is full\n");
  system.stop();
  ex.run_all();
}

TEST_F(callback_errors_test, OnFailureAndTheFailureItselfAreReported) {
  actor_system system(ex, {.name = "shop", .on_failure = [](const actor_failure&) { fails(); }});
  const auto a = system.spawn_with<worker>({.name = "ann"});
  ASSERT_TRUE(a.send(fall{}));
  ASSERT_TRUE(a.send(ping{}));
  ex.run_all();
  const std::string text = written();
  EXPECT_NE(text.find("on_failure of actor_system 'shop' threw: log is full\n"), std::string::npos);
  EXPECT_NE(text.find("actor 'ann' failed: no ink"), std::string::npos) << text;
  EXPECT_EQ(system.stats().failures, 1U);
  system.stop();
  ex.run_all();
}

TEST_F(callback_errors_test, OnDropOfABus) {
  actor_system system(ex);
  event_bus bus({.on_drop = [](const missed_event&) { fails(); }});
  const mailbox_options one{.capacity = 1, .overflow = overflow::reject};
  const auto a = system.spawn_with<worker>({.mailbox = one});
  (void)bus.subscribe<ping>("*", a);
  EXPECT_EQ(bus.publish("x", ping{}), 1U);
  EXPECT_EQ(bus.publish("x", ping{}), 0U);
  EXPECT_EQ(written(), "sluice: on_drop of event_bus threw: log is full\n");
  system.stop();
  ex.run_all();
}

}  // namespace
}  // namespace sluice::callback_errors_test
