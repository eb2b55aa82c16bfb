// Refs that are used after the end of their system.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::system_end_test {
namespace {

struct total {
  using reply = int;
};

class counter : public actor<counter, total> {
 public:
  int on(total) { return 1; }
};

// A destroyed system.
class system_end_test : public ::testing::Test {
 protected:
  system_end_test() {
    auto executor = std::make_unique<manual_executor>();
    std::optional<actor_system> system;
    actor_system_options o;
    o.on_dead_letter = [count = &dead_letters_](const dead_letter&) { ++*count; };
    system.emplace(*executor, std::move(o));
    actor_ = system->spawn<counter>();
    desk_.emplace(*system, actor_router_options{.members = 2});
    executor->run_all();
    system->stop();
    while (!system->join(deadline::after(std::chrono::nanoseconds(0)))) executor->run_all();
    system.reset();
    executor.reset();
  }

  int dead_letters_ = 0;
  ref<counter> actor_;
  std::optional<actor_router<counter>> desk_;
};

TEST_F(system_end_test, ARefReturnsClosedWithoutAReport) {
  EXPECT_EQ(actor_.send(total{}), status::closed);
  EXPECT_EQ(actor_.try_send(total{}), status::closed);
  EXPECT_EQ(recipient<total>(actor_).send(total{}, std::chrono::seconds(1)), status::closed);
  EXPECT_EQ(dead_letters_, 0);
}

TEST_F(system_end_test, AnAskGetsTerminated) {
  try {
    (void)actor_.ask(total{}).get();
    ADD_FAILURE() << "there was a reply";
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::terminated);
  }
}

TEST_F(system_end_test, ItCanBeStoppedInspectedAndWaitedFor) {
  actor_.stop();
  actor_.close();
  EXPECT_TRUE(actor_.is_terminated());
  EXPECT_EQ(actor_.queued(), 0U);
  EXPECT_FALSE(actor_.name().empty());
  EXPECT_EQ(actor_.ended().get().why, end_reason::stopped);
}

TEST_F(system_end_test, ARouterReturnsClosedToo) {
  EXPECT_EQ(desk_->send(total{}), status::closed);
  EXPECT_EQ(dead_letters_, 0);
}

}  // namespace
}  // namespace sluice::system_end_test
