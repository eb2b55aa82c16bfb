// Forwarded requests, and the errors that the asker gets.
#include <gtest/gtest.h>

#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::forward_test {
namespace {

struct total {
  using reply = int;
};

class answering : public actor<answering, total> {
 public:
  int on(total) { return 42; }
};

class handing_on : public actor<handing_on, total> {
 public:
  explicit handing_on(ref<answering> receiver) : receiver_(std::move(receiver)) {}
  void on(total m, responder<int> who) { (void)forward(receiver_, m, std::move(who)); }

 private:
  const ref<answering> receiver_;
};

actor_error::reason why_of(future<int> f) {
  try {
    (void)f.get();
  } catch (const actor_error& e) {
    return e.why();
  }
  ADD_FAILURE() << "there was a reply";
  return actor_error::unanswered;
}

class forward_test : public ::testing::Test {
 protected:
  void TearDown() override {
    kit.system().stop();
    while (kit.settle() + not_now.run_all() > 0) {
    }
  }

  manual_executor not_now;
  actor_test_kit kit;
};

TEST_F(forward_test, TheOtherActorRepliesInItsPlace) {
  const auto last = kit.spawn<answering>();
  const auto first = kit.spawn<handing_on>(last);
  auto answer = first.ask(total{});
  kit.settle();
  EXPECT_EQ(answer.get(), 42);
}

TEST_F(forward_test, TheAskerGetsFull) {
  actor_options o;
  o.mailbox = {.capacity = 1, .overflow = overflow::reject};
  o.on = &not_now;
  const auto last = kit.spawn_with<answering>(o);
  const auto first = kit.spawn<handing_on>(last);
  ASSERT_TRUE(last.send(total{}));
  auto answer = first.ask(total{});
  kit.settle();
  EXPECT_EQ(why_of(std::move(answer)), actor_error::full);
  EXPECT_EQ(kit.system().stats().dead_letters, 0U);
}

TEST_F(forward_test, TheAskerGetsTerminated) {
  const auto last = kit.spawn<answering>();
  const auto first = kit.spawn<handing_on>(last);
  last.stop();
  kit.settle();
  auto answer = first.ask(total{});
  kit.settle();
  EXPECT_EQ(why_of(std::move(answer)), actor_error::terminated);
}

}  // namespace
}  // namespace sluice::forward_test
