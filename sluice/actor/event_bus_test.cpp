#include "sluice/actor/event_bus.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::event_bus_test {
namespace {

struct placed {
  int order;
};
struct cancelled {
  int order;
};

class listener : public actor<listener, placed, cancelled> {
 public:
  explicit listener(std::vector<int>* handled) : handled_(handled) {}
  void on(placed m) { handled_->push_back(m.order); }
  void on(cancelled m) { handled_->push_back(-m.order); }

 private:
  std::vector<int>* handled_;
};

using numbers = std::vector<int>;

class event_bus_test : public ::testing::Test {
 protected:
  ~event_bus_test() override {
    system_.stop();
    on_.run_all();
  }
  ref<listener> listen(numbers& handled, mailbox_options m = {}) {
    return system_.spawn_with<listener>({.mailbox = m}, &handled);
  }

  numbers ann_;
  numbers bob_;
  manual_executor on_;
  actor_system system_{on_};
  event_bus bus_;
};

TEST_F(event_bus_test, DeliversToSubscribersOfTheTopicAndReturnsTheirNumber) {
  (void)bus_.subscribe<placed>("orders", listen(ann_));
  (void)bus_.subscribe<placed>("orders", listen(bob_));
  EXPECT_EQ(bus_.publish("orders", placed{1}), 2U);
  EXPECT_EQ(bus_.publish("order", placed{2}), 0U);
  EXPECT_EQ(bus_.publish("orders.eu", placed{3}), 0U);
  on_.run_all();
  EXPECT_EQ(ann_, numbers{1});
  EXPECT_EQ(bob_, numbers{1});
  EXPECT_EQ(bus_.stats().published, 3U);
  EXPECT_EQ(bus_.stats().delivered, 2U);
}

TEST_F(event_bus_test, AStarMatchesTheRestOfATopic) {
  (void)bus_.subscribe<placed>("orders.*", listen(ann_));
  EXPECT_EQ(bus_.publish("orders.eu", placed{1}), 1U);
  EXPECT_EQ(bus_.publish("orders.eu.placed", placed{2}), 1U);
  EXPECT_EQ(bus_.publish("orders", placed{3}), 0U);
  EXPECT_EQ(bus_.publish("orders.", placed{4}), 0U);
  EXPECT_EQ(bus_.publish("ordersx.eu", placed{5}), 0U);
  EXPECT_EQ(bus_.publish("x.orders.eu", placed{6}), 0U);
  (void)bus_.subscribe<placed>("orders.eu.*", listen(bob_));
  EXPECT_EQ(bus_.publish("orders.eu.placed", placed{7}), 2U);
  EXPECT_EQ(bus_.publish("orders.us.placed", placed{8}), 1U);
  on_.run_all();
  EXPECT_EQ(ann_, (numbers{1, 2, 7, 8}));
  EXPECT_EQ(bob_, numbers{7});
}

TEST_F(event_bus_test, AStarAloneMatchesEveryTopic) {
  (void)bus_.subscribe<placed>("*", listen(ann_));
  EXPECT_EQ(bus_.publish("orders", placed{1}), 1U);
  EXPECT_EQ(bus_.publish("a.b.c", placed{2}), 1U);
  EXPECT_EQ(bus_.publish("", placed{3}), 1U);
}

TEST_F(event_bus_test, RecognisesPatterns) {
  for (const char* const good : {"", "*", "a", "a.b", "a.*", "a.b.*"}) {
    EXPECT_TRUE(event_bus::is_pattern(good)) << good;
  }
  for (const char* const bad : {"**", "a*", "*.a", "a.*.b", "a.**", "*a", "a.*."}) {
    EXPECT_FALSE(event_bus::is_pattern(bad)) << bad;
  }
}

TEST_F(event_bus_test, AnInvalidPatternIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ann = listen(ann_);
  EXPECT_DEATH((void)bus_.subscribe<placed>("a.*.b", ann), "a pattern");
}

TEST_F(event_bus_test, ASubscriptionIsForOneTypeOfMessage) {
  const auto ann = listen(ann_);
  (void)bus_.subscribe<placed>("orders", ann);
  EXPECT_EQ(bus_.publish("orders", cancelled{1}), 0U);
  (void)bus_.subscribe<cancelled>("orders", ann);
  EXPECT_EQ(bus_.publish("orders", cancelled{2}), 1U);
  on_.run_all();
  EXPECT_EQ(ann_, numbers{-2});
}

TEST_F(event_bus_test, AnActorGetsAnEventOnceForSeveralMatchingPatterns) {
  const auto ann = listen(ann_);
  const auto all = bus_.subscribe<placed>("*", ann);
  const auto one = bus_.subscribe<placed>("orders.eu", ann);
  (void)bus_.subscribe<placed>("orders.*", ann);
  EXPECT_EQ(bus_.publish("orders.eu", placed{1}), 1U);
  on_.run_all();
  EXPECT_EQ(ann_, numbers{1});
  for (const subscription_stats& s : bus_.subscriptions()) {
    EXPECT_EQ(s.delivered, s.which == one ? 1U : 0U) << s.pattern;
  }
  EXPECT_NE(all, one);
}

TEST_F(event_bus_test, ARepeatedSubscriptionIsTheExistingOne) {
  const auto ann = listen(ann_);
  const auto first = bus_.subscribe<placed>("orders", ann);
  EXPECT_EQ(bus_.subscribe<placed>("orders", ann), first);
  EXPECT_EQ(bus_.publish("orders", placed{1}), 1U);
  EXPECT_EQ(bus_.stats().subscriptions, 1U);
}

TEST_F(event_bus_test, UnsubscribeEndsTheDelivery) {
  const auto ann = listen(ann_);
  const auto subscribed = bus_.subscribe<placed>("orders", ann);
  const auto other = bus_.subscribe<placed>("*", listen(bob_));
  EXPECT_TRUE(bus_.unsubscribe(subscribed));
  EXPECT_FALSE(bus_.unsubscribe(subscribed));
  EXPECT_EQ(bus_.publish("orders", placed{1}), 1U);
  on_.run_all();
  EXPECT_TRUE(ann_.empty());
  EXPECT_EQ(bob_, numbers{1});
  EXPECT_TRUE(bus_.unsubscribe(other));
  EXPECT_EQ(bus_.publish("orders", placed{2}), 0U);
}

TEST_F(event_bus_test, ASubscriberThatEndedIsRemoved) {
  const auto ann = listen(ann_);
  (void)bus_.subscribe<placed>("orders", ann);
  (void)bus_.subscribe<cancelled>("*", ann);
  (void)bus_.subscribe<placed>("orders", listen(bob_));
  ann.stop();
  on_.run_all();
  EXPECT_EQ(bus_.stats().subscriptions, 1U);
  EXPECT_EQ(bus_.publish("orders", placed{1}), 1U);
  EXPECT_EQ(system_.stats().dead_letters, 0U);
  (void)bus_.subscribe<placed>("orders", ann);
  EXPECT_EQ(bus_.stats().subscriptions, 1U);
}

TEST_F(event_bus_test, AClosingSubscriberIsRemovedWhenItRejects) {
  const auto ann = system_.spawn_with<listener>({.per_turn = 1}, &ann_);
  (void)bus_.subscribe<placed>("orders", ann);
  on_.run_all();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ann.try_send(placed{i}));
  ann.close();
  ASSERT_TRUE(on_.run_one());  // it has processed the close, and has two messages left
  ASSERT_FALSE(ann.is_terminated());
  EXPECT_EQ(bus_.stats().subscriptions, 1U);
  EXPECT_EQ(bus_.publish("orders", placed{9}), 0U);
  EXPECT_EQ(bus_.stats().subscriptions, 0U);
  EXPECT_EQ(bus_.stats().missed, 0U);
}

TEST_F(event_bus_test, AFullMailboxMissesEventsWhichAreCountedAndReported) {
  std::vector<std::string> missed;
  event_bus bus({.on_drop = [&](const missed_event& m) {
    missed.push_back(std::string(m.topic) + " " + std::string(to_string(m.why)));
  }});
  const auto slow = listen(ann_, {.capacity = 1});
  const auto picky = listen(bob_, {.capacity = 1, .overflow = overflow::drop_newest});
  (void)bus.subscribe<placed>("orders", slow);
  (void)bus.subscribe<placed>("orders", picky);
  EXPECT_EQ(bus.publish("orders", placed{1}), 2U);
  EXPECT_EQ(bus.publish("orders", placed{2}), 0U);
  EXPECT_EQ(missed, (std::vector<std::string>{"orders full", "orders dropped"}));
  for (const subscription_stats& s : bus.subscriptions()) {
    EXPECT_EQ(s.delivered, 1U);
    EXPECT_EQ(s.missed, 1U);
  }
  EXPECT_EQ(bus.stats().missed, 2U);
  on_.run_all();
  EXPECT_EQ(ann_, numbers{1});
  EXPECT_EQ(bob_, numbers{1});
}

TEST_F(event_bus_test, ASubscriberThatKeepsTheLatestGetsEveryEvent) {
  const auto ann = listen(ann_, {.capacity = 1, .overflow = overflow::latest});
  (void)bus_.subscribe<placed>("orders", ann);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bus_.publish("orders", placed{i}), 1U);
  on_.run_all();
  EXPECT_EQ(ann_, numbers{2});
  EXPECT_EQ(bus_.stats().missed, 0U);
  EXPECT_EQ(system_.stats().dropped, 2U);
}

TEST_F(event_bus_test, MayBeDestroyedBeforeItsSubscribers) {
  const auto ann = listen(ann_);
  {
    event_bus brief;
    (void)brief.subscribe<placed>("orders", ann);
  }
  ann.stop();
  on_.run_all();
  EXPECT_TRUE(ann.is_terminated());
}

// Counts events, and checks the order of each publisher's events.
struct news {
  int by;
  int n;
};
struct event_counts {
  std::atomic<std::uint64_t> handled{0};
  std::atomic<bool> in_order{true};
};
class counter : public actor<counter, news> {
 public:
  explicit counter(event_counts* h) : counts_(h) {}
  void on(news m) {
    if (m.n <= last_[m.by]) counts_->in_order = false;
    last_[m.by] = m.n;
    ++counts_->handled;
  }

 private:
  event_counts* counts_;
  int last_[4] = {-1, -1, -1, -1};
};

TEST(event_bus_stress, SubscribersStartAndEndWhileThreadsPublish) {
  constexpr int publishers = 3;
  constexpr int rounds = 2000;
  event_counts h;
  event_bus bus;
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const auto stays = system.spawn<counter>(&h);
  (void)bus.subscribe<news>("news.*", stays);
  std::atomic<std::uint64_t> accepted{0};
  std::vector<seam::thread> threads;
  for (int t = 0; t < publishers; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) accepted += bus.publish("news.local", news{t, i});
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 200; ++i) {
      const auto guest = system.spawn<counter>(&h);
      const auto one = bus.subscribe<news>("news.local", guest);
      (void)bus.subscribe<news>("*", guest);
      if (i % 2 == 0) (void)bus.unsubscribe(one);
      guest.close();
    }
  });
  for (auto& t : threads) t.join();
  system.close();
  (void)system.join();
  // Accepted events were handled: all subscribers were closed, and none was stopped.
  EXPECT_EQ(h.handled.load(), accepted.load());
  EXPECT_TRUE(h.in_order.load());
  EXPECT_EQ(bus.stats().subscriptions, 0U);
  EXPECT_EQ(bus.stats().delivered, accepted.load());
}

}  // namespace
}  // namespace sluice::event_bus_test
