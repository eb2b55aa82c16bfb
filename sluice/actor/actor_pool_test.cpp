#include "sluice/actor/actor_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::actor_pool_test {
namespace {

using namespace std::chrono_literals;

struct piece {
  int n;
};
struct keyed {
  int n;
  int key() const { return 7; }
};
struct leave {};

class worker : public actor<worker, piece, keyed, leave> {
 public:
  explicit worker(std::vector<int>* done) : done_(done) {}
  void on(piece m) { done_->push_back(m.n); }
  void on(keyed m) { done_->push_back(m.n); }
  void on(leave) { stop_self(); }

 private:
  std::vector<int>* done_;
};

// The members have their own executor: while it does not run, sent messages are load.
class actor_pool_test : public ::testing::Test {
 protected:
  ~actor_pool_test() override {
    system_.stop();
    run_all();
  }
  static actor_system_options with(clock& time) {
    actor_system_options o;
    o.time = &time;
    return o;
  }
  // Grows at 4 queued each, at most every 10 ms, up to 4 members; shrinks after a second.
  static actor_pool_options usual() {
    return {.members_max = 4, .grow_at = 4, .grow_pause = 10ms, .idle_for = 1s};
  }
  actor_pool<worker> make(actor_pool_options o) {
    o.member.on = &members_on_;
    actor_pool<worker> made(system_, std::move(o), &done_);
    keeper_on_.run_all();
    return made;
  }
  void send(const actor_pool<worker>& pool, int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(pool.try_send(piece{sent_++}));
    keeper_on_.run_all();
  }
  void run_all() {
    while (keeper_on_.run_all() + members_on_.run_all() > 0) {
    }
  }
  // Time passes, and the keeper runs; the members do not.
  void pass(std::chrono::nanoseconds by, std::chrono::nanoseconds step = 10ms) {
    for (std::chrono::nanoseconds gone{0}; gone < by; gone += step) {
      time_.advance(step);
      keeper_on_.run_all();
    }
  }
  // A pool with four members, which have handled all their messages.
  actor_pool<worker> grown() {
    actor_pool<worker> pool = make(usual());
    send(pool, 40);
    pass(50ms);
    run_all();
    return pool;
  }

  std::vector<int> done_;
  int sent_ = 0;
  manual_clock time_;
  manual_executor keeper_on_;
  manual_executor members_on_;
  actor_system system_{keeper_on_, with(time_)};
};

TEST_F(actor_pool_test, StartsWithTheMinimumAndGrowsByOneWhenQueuesAreLong) {
  const auto pool = make(usual());
  EXPECT_EQ(pool.size(), 1U);
  send(pool, 3);
  EXPECT_EQ(pool.size(), 1U);
  send(pool, 1);
  EXPECT_EQ(pool.size(), 2U);
  EXPECT_EQ(pool.stats().grown, 1U);
  EXPECT_EQ(pool.members()[1].name(), "pool/2");
}

TEST_F(actor_pool_test, DoesNotGrowAgainBeforeThePauseHasPassed) {
  const auto pool = make(usual());
  send(pool, 20);
  EXPECT_EQ(pool.size(), 2U);
  time_.advance(9ms);
  send(pool, 5);
  EXPECT_EQ(pool.size(), 2U);
  time_.advance(1ms);
  keeper_on_.run_all();
  EXPECT_EQ(pool.size(), 3U);
}

TEST_F(actor_pool_test, KeepsGrowingWhileQueuesAreLongWithoutNewMessages) {
  const auto pool = make(usual());
  send(pool, 40);
  pass(20ms);
  EXPECT_EQ(pool.size(), 4U);
  send(pool, 40);
  pass(200ms);
  EXPECT_EQ(pool.size(), 4U);
  EXPECT_EQ(pool.stats().grown, 3U);
}

TEST_F(actor_pool_test, StopsGrowingWhenQueuesAreShortOnAverage) {
  const auto pool = make(usual());
  send(pool, 7);
  EXPECT_EQ(pool.size(), 2U);
  pass(100ms);
  EXPECT_EQ(pool.size(), 2U);
}

TEST_F(actor_pool_test, DoesNotGrowForOneLongQueueAmongShortOnes) {
  actor_pool_options o = usual();
  o.rule = routing::by_key;
  o.members_min = 2;
  const auto pool = make(o);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(pool.try_send(keyed{i}));
  keeper_on_.run_all();
  pass(50ms);
  EXPECT_EQ(pool.size(), 2U);
  ASSERT_TRUE(pool.try_send(keyed{8}));
  keeper_on_.run_all();
  EXPECT_EQ(pool.size(), 3U);
}

TEST_F(actor_pool_test, AddedMembersTakeTheNextMessages) {
  const auto pool = make(usual());
  send(pool, 4);
  send(pool, 3);
  EXPECT_EQ(pool.members()[0].queued(), 4U);
  EXPECT_EQ(pool.members()[1].queued(), 3U);
}

TEST_F(actor_pool_test, ShrinksWhenMembersHaveDoneNothingForTheIdleTime) {
  const auto pool = grown();
  ASSERT_EQ(pool.size(), 4U);
  pass(900ms, 50ms);
  EXPECT_EQ(pool.size(), 4U);
  pass(400ms, 50ms);
  run_all();
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool.stats().drained, 3U);
  EXPECT_EQ(pool.stats().replaced, 0U);
  EXPECT_EQ(pool.members()[0].name(), "pool/1");
  EXPECT_EQ(system_.stats().dead_letters, 0U);
  EXPECT_EQ(done_.size(), 40U);
}

TEST_F(actor_pool_test, AMemberThatHandledAMessageStays) {
  const auto pool = grown();
  const auto third = pool.members()[2];
  for (int i = 0; i < 26; ++i) {
    ASSERT_TRUE(third.try_send(piece{i}));
    members_on_.run_all();
    pass(50ms, 50ms);
  }
  run_all();
  ASSERT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool.members()[0], third);
}

TEST_F(actor_pool_test, ABusyMemberStays) {
  actor_pool_options o = usual();
  o.rule = routing::round_robin;
  const auto pool = make(o);
  send(pool, 16);
  pass(50ms);
  const std::size_t most = pool.size();
  ASSERT_GT(most, 1U);
  pass(3s, 50ms);  // no member has begun its messages
  EXPECT_EQ(pool.size(), 4U);
}

TEST_F(actor_pool_test, ALoadThatChangesFasterThanTheIdleTimeKeepsTheNumber) {
  const auto pool = grown();
  for (int i = 0; i < 10; ++i) {
    send(pool, 16);
    run_all();
    pass(800ms, 50ms);
    ASSERT_EQ(pool.size(), 4U);
  }
  EXPECT_EQ(pool.stats().grown, 3U);
  EXPECT_EQ(pool.stats().drained, 0U);
}

TEST_F(actor_pool_test, ARemovedMemberFinishesItsMailboxAndTakesNothingNew) {
  const auto pool = grown();
  const auto last = pool.members().back();
  pass(1300ms, 50ms);
  ASSERT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool.stats().draining, 3U);
  // A sender that kept its ref can still send, until it is closed.
  ASSERT_TRUE(last.try_send(piece{1000}));
  run_all();
  EXPECT_EQ(done_.back(), 1000);
  EXPECT_TRUE(last.is_terminated());
  EXPECT_EQ(pool.stats().draining, 0U);
  EXPECT_EQ(pool.stats().drained, 3U);
}

TEST_F(actor_pool_test, DrainingMembersCountAgainstTheMaximum) {
  const auto pool = grown();
  pass(1300ms, 50ms);
  ASSERT_EQ(pool.size(), 1U);
  send(pool, 40);  // three still drain
  pass(100ms);
  EXPECT_EQ(pool.size(), 1U);
  run_all();
  send(pool, 40);
  pass(100ms);
  EXPECT_EQ(pool.size(), 4U);
}

TEST_F(actor_pool_test, AnAddedMemberDoesNotGetTheNameOfADrainingOne) {
  actor_pool_options o = usual();
  o.members_max = 6;
  const auto pool = make(o);
  send(pool, 12);
  pass(50ms);
  run_all();
  const auto before = pool.members();
  ASSERT_GT(before.size(), 2U);
  pass(1300ms, 50ms);  // all but the first begin to drain, and get no turn
  ASSERT_EQ(pool.size(), 1U);
  send(pool, 40);
  pass(100ms);
  ASSERT_GT(pool.size(), 1U);
  std::set<std::string> names;
  for (const auto& m : before) names.insert(m.name());
  for (const auto& m : pool.members()) {
    if (m == before[0]) continue;
    EXPECT_TRUE(names.insert(m.name()).second) << m.name();
  }
}

TEST_F(actor_pool_test, HasNoTimerWhileItIsAtTheMinimumAndIdle) {
  auto pool = make(usual());
  EXPECT_EQ(time_.pending(), 0U);
  send(pool, 40);
  EXPECT_GT(time_.pending(), 0U);
  pass(50ms);
  run_all();
  pass(3s, 50ms);
  run_all();
  ASSERT_EQ(pool.size(), 1U);
  EXPECT_EQ(time_.pending(), 0U);
}

TEST_F(actor_pool_test, AMemberThatEndedIsReplacedAtAnySize) {
  const auto pool = grown();
  pool.members()[2].stop();
  run_all();
  EXPECT_EQ(pool.size(), 4U);
  EXPECT_EQ(pool.stats().replaced, 1U);
  EXPECT_EQ(pool.members()[2].name(), "pool/3");
}

TEST_F(actor_pool_test, CloseFinishesEverything) {
  const auto pool = make(usual());
  send(pool, 40);
  pool.close();
  auto ended = pool.ended();
  run_all();
  EXPECT_TRUE(ended.is_ready());
  EXPECT_EQ(done_.size(), 40U);
  EXPECT_EQ(system_.stats().live, 0U);
  EXPECT_EQ(time_.pending(), 0U);
}

}  // namespace
}  // namespace sluice::actor_pool_test
