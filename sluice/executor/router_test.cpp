#include "sluice/executor/router.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing::router_test {
namespace {

using namespace std::chrono_literals;
using numbers = router<int>;

// Takes all items of a worker.
std::vector<int> all_of(numbers::worker& w) {
  std::vector<int> got;
  while (auto item = w.try_next()) got.push_back(*item);
  return got;
}
std::uint64_t key_of(const int& item) { return static_cast<std::uint64_t>(item % 100); }
std::int64_t priority_of(const int& item) { return item / 100; }

numbers::options keyed(std::size_t capacity = 64) {
  return {.rule = routing::by_key, .capacity = capacity, .key = key_of};
}
numbers::options urgent(std::size_t capacity = 64, overflow full = overflow::block) {
  return {.rule = routing::by_priority, .capacity = capacity, .overflow = full,
          .priority = priority_of};
}
void push_all(numbers& target, std::initializer_list<int> items) {
  for (const int item : items) ASSERT_EQ(target.try_push(item), status::ok) << item;
}
// Returns the n-th number whose key belongs to this worker.
int owned_by(const numbers& r, std::uint64_t worker, int n = 0) {
  for (int key = 0; key < 100; ++key) {
    if (r.owner_of(static_cast<std::uint64_t>(key)) == worker && n-- == 0) return key;
  }
  return -1;
}

// ---- the rules

TEST(router_test, RoundRobinGivesToEachInItsTurn) {
  numbers r({.rule = routing::round_robin});
  auto a = r.join();
  auto b = r.join();
  auto c = r.join();
  push_all(r, {1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(all_of(a), (std::vector<int>{1, 4, 7}));
  EXPECT_EQ(all_of(b), (std::vector<int>{2, 5}));
  EXPECT_EQ(all_of(c), (std::vector<int>{3, 6}));
}

TEST(router_test, RoundRobinPassesOverAFullInbox) {
  numbers r({.rule = routing::round_robin, .capacity = 2, .overflow = overflow::reject});
  auto a = r.join();
  auto b = r.join();
  push_all(r, {1, 2, 3, 4});
  EXPECT_EQ(r.try_push(5), status::full);
  EXPECT_EQ(*b.try_next(), 2);
  push_all(r, {5});
  EXPECT_EQ(r.try_push(6), status::full);
  EXPECT_EQ(all_of(b), (std::vector<int>{4, 5}));
  EXPECT_EQ(all_of(a), (std::vector<int>{1, 3}));
}

TEST(router_test, LeastLoadedCountsQueuedAndBegunItems) {
  numbers r({.rule = routing::least_loaded});
  auto a = r.join();
  auto b = r.join();
  push_all(r, {1, 2, 3});  // a: 1 3, b: 2
  ASSERT_EQ(*a.try_next(), 1);
  push_all(r, {4});  // a has one begun and one queued item: b is next
  EXPECT_EQ(b.stats().queued, 2u);
  EXPECT_EQ(all_of(b), (std::vector<int>{2, 4}));
  push_all(r, {5, 6});  // b is free
  EXPECT_EQ(b.stats().queued, 2u);
}

TEST(router_test, AKeyAlwaysGoesToItsOwner) {
  numbers r(keyed());
  auto a = r.join();
  auto b = r.join();
  const int for_a = owned_by(r, a.id());
  const int for_b = owned_by(r, b.id());
  push_all(r, {for_a, for_b, for_a + 100, for_b + 100, for_a + 200});
  EXPECT_EQ(all_of(a), (std::vector<int>{for_a, for_a + 100, for_a + 200}));
  EXPECT_EQ(all_of(b), (std::vector<int>{for_b, for_b + 100}));
}

TEST(router_test, ByPriorityAnyFreeWorkerGetsTheMostUrgent) {
  numbers r(urgent());
  auto a = r.join();
  auto b = r.join();
  push_all(r, {101, 900, 102, 500});
  EXPECT_EQ(*a.try_next(), 900);
  EXPECT_EQ(*b.try_next(), 500);
  EXPECT_EQ(*b.try_next(), 101) << "equals in order of arrival";
  EXPECT_EQ(*a.try_next(), 102);
  EXPECT_EQ(a.try_next().status(), status::empty);
}

TEST(router_test, AnIdleWorkerStealsFromTheLongestInbox) {
  numbers r({.rule = routing::work_stealing});
  auto a = r.join();
  auto b = r.join();
  push_all(r, {1, 2, 3, 4});  // a: 1 3, b: 2 4
  EXPECT_EQ(all_of(b), (std::vector<int>{2, 4, 1, 3}));
  EXPECT_EQ(b.stats().stolen, 2u);
  EXPECT_EQ(a.try_next().status(), status::empty);
}

TEST(router_test, WithStealingAnIdleWorkerIsGivenTheItemAtOnce) {
  numbers r({.rule = routing::work_stealing});
  auto busy = r.join();
  auto idle = r.join();
  std::vector<int> got;
  std::jthread loop([&] {
    while (auto item = idle.next()) got.push_back(*item);
  });
  for (int i = 0; i < 3; ++i) {
    // When all are finished, the loop is in `next` again and idle.
    eventually([&] { return r.stats().unfinished == 0; });
    ASSERT_TRUE(r.push(i));
  }
  r.drain();
  loop.join();
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2}));
}

// ---- consistent hashing, measured

struct spread {
  std::map<std::uint64_t, int> share;  // keys of each worker
  std::vector<std::uint64_t> owner;    // of each key
};
spread look(const numbers& r, int keys) {
  spread s;
  for (int k = 0; k < keys; ++k) {
    s.owner.push_back(r.owner_of(static_cast<std::uint64_t>(k)));
    ++s.share[s.owner.back()];
  }
  return s;
}
int moved(const spread& before, const spread& after) {
  int count = 0;
  for (std::size_t k = 0; k < before.owner.size(); ++k) count += before.owner[k] != after.owner[k];
  return count;
}

TEST(router_test, FewKeysMoveWhenAWorkerJoinsOrLeavesAndTheLoadIsEven) {
  constexpr int keys = 100'000;
  constexpr int workers = 10;
  numbers r(keyed());
  std::vector<numbers::worker> all;
  for (int i = 0; i < workers; ++i) all.push_back(r.join());
  const auto before = look(r, keys);
  ASSERT_EQ(before.share.size(), 10u);
  for (const auto& [id, count] : before.share) {
    EXPECT_NEAR(count, keys / workers, keys / workers * 0.05) << "worker " << id;
  }
  auto eleventh = r.join();
  const auto more = look(r, keys);
  const int came = moved(before, more);
  EXPECT_EQ(came, more.share.at(eleventh.id())) << "only to the newcomer";
  EXPECT_NEAR(came, keys / 11.0, keys / 11.0 * 0.05);
  eleventh.leave();
  EXPECT_EQ(moved(before, look(r, keys)), 0) << "every key is where it was";
  const auto third = all[2].id();
  all.erase(all.begin() + 2);
  const auto fewer = look(r, keys);
  const int went = moved(before, fewer);
  EXPECT_EQ(went, before.share.at(third)) << "only the keys of the leaving worker";
  for (const auto& [id, count] : fewer.share) {
    EXPECT_NEAR(count, keys / 9.0, keys / 9.0 * 0.06) << "spread over all the others, " << id;
  }
  std::printf("of %d keys over 10 workers: %.2f%% moved to an 11th (ideal 9.09%%), %.2f%% when one "
              "left (ideal 10%%)\n",
              keys, 100.0 * came / keys, 100.0 * went / keys);
}

TEST(router_test, KeysThatDifferInOneBitAreSpreadToo) {
  numbers r(keyed());
  std::vector<numbers::worker> all;
  for (int i = 0; i < 4; ++i) all.push_back(r.join());
  std::map<std::uint64_t, int> share;
  for (int bit = 0; bit < 64; ++bit) ++share[r.owner_of(std::uint64_t{1} << bit)];
  EXPECT_EQ(share.size(), 4u);
  for (const auto& [id, count] : share) EXPECT_LT(count, 32) << id;
}

// ---- joining and leaving

TEST(router_test, UnbegunItemsOfALeavingWorkerGoToTheOthers) {
  for (const auto rule : {routing::round_robin, routing::least_loaded, routing::work_stealing}) {
    numbers r({.rule = rule, .capacity = 3});
    auto a = r.join();
    auto b = r.join();
    push_all(r, {1, 2, 3, 4, 5, 6});  // both are full
    b.leave();
    EXPECT_EQ(a.stats().queued, 6u) << to_string(rule) << ": also beyond its capacity";
    EXPECT_EQ(a.stats().moved_in, 3u);
    EXPECT_EQ(all_of(a), (std::vector<int>{1, 3, 5, 2, 4, 6})) << to_string(rule);
    EXPECT_EQ(b.try_next().status(), status::closed) << "it has left";
    b.leave();  // a second call does nothing
  }
}

TEST(router_test, ByPriorityALeavingWorkerWhoseTurnHasNotBegunPassesItOn) {
  manual_executor behind;
  manual_executor free;
  numbers r(urgent());
  std::vector<int> got;
  auto a = r.join(behind, [](int&) {});
  auto b = r.join(free, [&](int& item) { got.push_back(item); });
  push_all(r, {1});
  ASSERT_EQ(behind.pending(), 1u) << "worker a is scheduled for the item";
  std::jthread leaves([&] { a.leave(); });
  eventually([&] { return r.stats().workers == 1; });
  behind.run_all();
  leaves.join();
  EXPECT_EQ(got, std::vector<int>()) << "worker a has left";
  free.run_all();
  EXPECT_EQ(got, (std::vector<int>{1}));
}

TEST(router_test, TheRestOfAKeyMovesToItsNewOwnerInOrder) {
  numbers r(keyed());
  auto a = r.join();
  std::vector<int> pushed;
  for (int i = 0; i < 60; ++i) {
    pushed.push_back(i % 20 + 100 * (i / 20));  // 20 keys, three items each
    ASSERT_TRUE(r.push(pushed.back()));
  }
  auto b = r.join();
  EXPECT_GT(b.stats().moved_in, 0u);
  EXPECT_EQ(a.stats().queued + b.stats().queued, 60u);
  for (auto* w : {&a, &b}) {
    std::map<int, int> last;
    for (const int item : all_of(*w)) {
      EXPECT_EQ(r.owner_of(key_of(item)), w->id());
      EXPECT_EQ(item / 100, last[item % 100]++) << "in order per key";
    }
  }
}

TEST(router_test, NoWorkerBeginsAKeyWhileItsFormerOwnerHandlesIt) {
  numbers r(keyed());
  auto a = r.join();
  const int k = 7;
  push_all(r, {k, k + 100});
  ASSERT_EQ(*a.try_next(), k);
  auto b = std::make_unique<numbers::worker>(r.join());
  while (r.owner_of(k) != b->id()) {  // until a joining worker owns the key
    auto another = std::make_unique<numbers::worker>(r.join());
    b = std::move(another);
  }
  EXPECT_EQ(b->stats().queued, 1u) << "the second item has moved";
  EXPECT_EQ(b->try_next().status(), status::empty) << "the first is not finished";
  int other = 0;
  while (r.owner_of(key_of(other)) != b->id() || other == k) ++other;
  push_all(r, {other});
  EXPECT_EQ(*b->try_next(), other) << "another key is not blocked";
  EXPECT_EQ(b->try_next().status(), status::empty);
  std::optional<outcome<int>> got;
  std::jthread waits([&] { got.emplace(b->next()); });
  (void)a.try_next();  // finishes the first item
  waits.join();
  ASSERT_TRUE(*got);
  EXPECT_EQ(**got, k + 100);
}

TEST(router_test, AWorkerThatLeavesInTheMiddleHoldsItsKeyUntilItsHandleIsGone) {
  numbers r(keyed());
  auto a = std::make_unique<numbers::worker>(r.join());
  push_all(r, {7, 107});
  ASSERT_EQ(*a->try_next(), 7);
  auto b = r.join();
  a->leave();
  EXPECT_EQ(b.try_next().status(), status::empty);
  a.reset();
  EXPECT_EQ(*b.try_next(), 107);
}

TEST(router_test, WithoutWorkersItIsFullAndAcceptedItemsWaitForTheNextToJoin) {
  for (auto o : {numbers::options{.overflow = overflow::reject}, keyed(), urgent()}) {
    const auto rule = o.rule;
    o.overflow = overflow::reject;
    numbers r(std::move(o));
    EXPECT_EQ(r.push(1), status::full);
    {
      auto a = r.join();
      push_all(r, {1, 2});
    }
    EXPECT_EQ(r.stats().workers, 0u);
    EXPECT_EQ(r.stats().queued, 2u) << to_string(rule);
    EXPECT_EQ(r.push(3), status::full);
    auto b = r.join();
    EXPECT_EQ(all_of(b), (std::vector<int>{1, 2})) << to_string(rule);
  }
}

TEST(router_test, RemainingItemsAreDestroyedWithIt) {
  const auto canary = std::make_shared<int>(0);
  {
    router<std::shared_ptr<int>> r({.overflow = overflow::reject});
    {
      auto a = r.join();
      ASSERT_TRUE(r.push(canary));
    }
    EXPECT_EQ(canary.use_count(), 2);
  }
  EXPECT_EQ(canary.use_count(), 1);
}

// ---- a loop

TEST(router_test, ALoopEndsWhenItIsClosedAndAllHasBeenBegun) {
  numbers r({});
  auto w = r.join();
  std::vector<int> got;
  std::jthread loop([&] {
    while (auto item = w.next()) got.push_back(*item);
  });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(r.push(i));
  r.drain();
  loop.join();
  EXPECT_EQ(got.size(), 100u);
  EXPECT_EQ(r.push(1), status::closed);
  EXPECT_EQ(w.stats().handled, 100u);
}

TEST(router_test, LeavingEndsTheLoop) {
  numbers r({});
  auto w = r.join();
  std::optional<status> result;
  std::jthread loop([&] { result = w.next().status(); });
  w.leave();
  loop.join();
  EXPECT_EQ(*result, status::closed);
}

TEST(router_test, LimitsEndTheWaitForAnItem) {
  numbers r({});
  auto w = r.join();
  manual_clock clock;
  std::stop_source source;
  EXPECT_EQ(w.next(-1s).status(), status::timed_out);
  EXPECT_EQ(w.next(1ms).status(), status::timed_out);
  std::optional<status> timed;
  std::jthread waits([&] { timed = w.next(deadline::after(1h, clock)).status(); });
  eventually([&] { return clock.pending() == 1; });
  clock.advance(1h);
  waits.join();
  EXPECT_EQ(*timed, status::timed_out);
  source.request_stop();
  ASSERT_TRUE(r.push(1));
  EXPECT_EQ(w.next(source.get_token()).status(), status::stopped);
  EXPECT_EQ(*w.next(), 1) << "no item was taken";
}

detached collect(numbers::worker* w, std::vector<int>* got, ending* ended) {
  for (;;) {
    auto item = co_await w->async_next();
    if (!item) {
      ended->set(item.status());
      co_return;
    }
    got->push_back(*item);
  }
}

detached push_and_tell(numbers* r, int item, wait_limits limits, ending& ended) {
  ended.set(co_await r->async_push(item, std::move(limits)));
}

TEST(router_test, ACoroutineMayBeTheLoop) {
  numbers r({});
  auto w = r.join();
  std::vector<int> got;
  ending ended;
  collect(&w, &got, &ended);
  push_all(r, {1, 2, 3});
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3}));
  r.close();
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::closed);
}

TEST(router_test, WaitingProducersDoNotGetBetweenTheItemsOfALeavingWorker) {
  numbers r(keyed(2));
  auto a = r.join();
  auto b = r.join();
  const int k = owned_by(r, a.id());
  std::vector<int> got;
  ending ended;
  collect(&b, &got, &ended);
  push_all(r, {k, k + 100});
  ending third;
  push_and_tell(&r, k + 200, {}, third);
  EXPECT_EQ(r.waiting_to_push(), 1u);
  a.leave();
  EXPECT_EQ(got, (std::vector<int>{k, k + 100, k + 200}));
  EXPECT_TRUE(third.is_set());
  r.close();
  EXPECT_TRUE(ended.is_set());
}

// ---- a handler

TEST(router_test, AHandlerIsCalledOnItsExecutorInTurns) {
  manual_executor later;
  numbers r({.per_turn = 2});
  std::string order;
  auto a = r.join(later, [&](int& item) {
    EXPECT_EQ(executor::current(), &later);
    order += std::to_string(item);
  });
  push_all(r, {1, 2, 3});
  EXPECT_EQ(order, "");
  EXPECT_EQ(later.pending(), 1u) << "it is queued once";
  EXPECT_TRUE(later.run_one());
  EXPECT_EQ(order, "12");
  later.run_all();
  EXPECT_EQ(order, "123");
  EXPECT_EQ(a.stats().handled, 3u);
  EXPECT_FALSE(a.stats().busy);
}

TEST(router_test, AWorkersHandlerNeverRunsTwiceAtOnce) {
  thread_pool pool(4);
  router<int> r({.rule = routing::least_loaded, .capacity = 8});
  int plain[3] = {};  // one of each worker: no atomic
  std::vector<numbers::worker> all;
  for (int i = 0; i < 3; ++i) all.push_back(r.join(pool, [&plain, i](int&) { ++plain[i]; }));
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(r.push(i));
  r.drain();
  EXPECT_EQ(plain[0] + plain[1] + plain[2], 3000);
}

TEST(router_test, AHandlerThatThrowsIsReportedAndTheWorkerContinues) {
  manual_executor later;
  int errors = 0;
  numbers r({.on_error = [&](const std::exception_ptr&) { ++errors; }});
  int handled = 0;
  auto a = r.join(later, [&](int& item) {
    if (item == 1) throw std::runtime_error("one");
    ++handled;
  });
  push_all(r, {1, 2});
  later.run_all();
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(a.stats().failed, 1u);
  EXPECT_EQ(a.stats().handled, 2u);
}

TEST(router_test, AHandlerMayPush) {
  inline_executor here;
  numbers r({});
  std::vector<int> got;
  auto a = r.join(here, [&](int& item) {
    got.push_back(item);
    if (item < 5) {
      EXPECT_EQ(r.try_push(item + 1), status::ok);
    }
  });
  ASSERT_TRUE(r.push(1));
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST(router_test, LeaveWaitsForTheHandlerAtWork) {
  thread_pool pool(2);
  numbers r({});
  std::atomic<bool> inside{false};
  std::atomic<bool> go{false};
  int done = 0;  // plain: leave must be enough
  auto a = r.join(pool, [&](int&) {
    inside = true;
    go.wait(false);
    ++done;
  });
  ASSERT_TRUE(r.push(1));
  eventually([&] { return inside.load(); });
  std::jthread helper([&] {
    go = true;
    go.notify_all();
  });
  a.leave();
  EXPECT_EQ(done, 1);
}

// ---- full

TEST(router_test, APushWaitsForCapacity) {
  numbers r(keyed(1));
  auto a = r.join();
  auto b = r.join();
  const int for_a = owned_by(r, a.id());
  const int for_b = owned_by(r, b.id());
  push_all(r, {for_a, for_b});
  std::optional<status> first;
  std::optional<status> second;
  std::jthread one([&] { first = r.push(for_a + 100); });
  eventually([&] { return r.waiting_to_push() == 1; });
  std::jthread two([&] { second = r.push(for_b + 100); });
  eventually([&] { return r.waiting_to_push() == 2; });
  EXPECT_EQ(*b.try_next(), for_b);
  two.join();
  EXPECT_EQ(*second, status::ok) << "another key's full inbox is not in its way";
  EXPECT_EQ(r.waiting_to_push(), 1u);
  EXPECT_EQ(*a.try_next(), for_a);
  one.join();
  EXPECT_EQ(*first, status::ok);
  EXPECT_EQ(all_of(a), (std::vector<int>{for_a + 100}));
}

TEST(router_test, AWorkerThatJoinsFreesCapacity) {
  numbers r({.capacity = 1});
  std::optional<status> result;
  std::jthread push([&] { result = r.push(1); });
  eventually([&] { return r.waiting_to_push() == 1; });
  auto a = r.join();
  push.join();
  EXPECT_EQ(*result, status::ok);
  EXPECT_EQ(*a.try_next(), 1);
}

TEST(router_test, LimitsAndCloseEndTheWaitForCapacity) {
  manual_clock clock;
  std::stop_source source;
  numbers r({.capacity = 1});
  auto a = r.join();
  push_all(r, {1});
  router<std::unique_ptr<int>> boxes({.capacity = 1});
  auto box = std::make_unique<int>(7);
  EXPECT_EQ(boxes.push(std::move(box), deadline::after(1ms)), status::timed_out);
  ASSERT_NE(box, nullptr) << "the item stays with the caller";
  EXPECT_EQ(boxes.stats().rejected, 1u);
  ending late;
  ending stopped;
  ending closed;
  push_and_tell(&r, 2, deadline::after(1h, clock), late);
  push_and_tell(&r, 3, source.get_token(), stopped);
  push_and_tell(&r, 4, {}, closed);
  EXPECT_EQ(r.waiting_to_push(), 3u);
  clock.advance(1h);
  EXPECT_EQ(late.result(), status::timed_out);
  source.request_stop();
  EXPECT_EQ(stopped.result(), status::stopped);
  r.close();
  EXPECT_EQ(closed.result(), status::closed);
  EXPECT_EQ(all_of(a), (std::vector<int>{1}));
}

TEST(router_test, ACoroutineThatWaitedForCapacityIsServed) {
  numbers r({.capacity = 1});
  auto a = r.join();
  push_all(r, {1});
  ending ended;
  push_and_tell(&r, 2, {}, ended);
  EXPECT_FALSE(ended.is_set());
  EXPECT_EQ(*a.try_next(), 1);
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::ok);
  EXPECT_EQ(*a.try_next(), 2);
}

TEST(router_test, AnExceptionOfOnDropGoesToOnErrorAndTheItemIsTaken) {
  int errors = 0;
  numbers r({.capacity = 1,
             .overflow = overflow::drop_oldest,
             .on_drop = [](int&&) { throw 1; },
             .on_error = [&](const std::exception_ptr&) { ++errors; }});
  auto a = r.join();
  push_all(r, {1, 2, 3});
  EXPECT_EQ(errors, 2);
  EXPECT_EQ(all_of(a), (std::vector<int>{3}));
}

TEST(router_test, DroppingPoliciesDropFromTheInboxItWouldGoTo) {
  std::vector<int> dropped;
  const auto open = [&](overflow full) {
    dropped.clear();
    return numbers::options{.capacity = 2, .overflow = full,
                            .on_drop = [&](int&& item) { dropped.push_back(item); }};
  };
  {
    numbers r(open(overflow::drop_newest));
    auto a = r.join();
    push_all(r, {1, 2});
    EXPECT_EQ(r.push(3), status::dropped);
    EXPECT_EQ(dropped, (std::vector<int>{3}));
    EXPECT_EQ(all_of(a), (std::vector<int>{1, 2}));
  }
  {
    numbers r(open(overflow::drop_oldest));
    auto a = r.join();
    push_all(r, {1, 2, 3, 4});
    EXPECT_EQ(dropped, (std::vector<int>{1, 2}));
    EXPECT_EQ(all_of(a), (std::vector<int>{3, 4}));
    EXPECT_EQ(r.stats().dropped, 2u);
    r.drain();  // does not wait for dropped items
  }
  {
    numbers r(open(overflow::latest));
    auto a = r.join();
    push_all(r, {1, 2, 3, 4});
    EXPECT_EQ(dropped, (std::vector<int>{2, 3}));
    EXPECT_EQ(all_of(a), (std::vector<int>{1, 4}));
  }
}

TEST(router_test, ByPriorityTheLeastUrgentIsDropped) {
  numbers oldest(urgent(3, overflow::drop_oldest));
  auto a = oldest.join();
  push_all(oldest, {500, 101, 102, 901});
  EXPECT_EQ(oldest.push(50), status::dropped) << "it is less urgent than all items inside";
  EXPECT_EQ(all_of(a), (std::vector<int>{901, 500, 102}));
  numbers latest(urgent(3, overflow::latest));
  auto b = latest.join();
  push_all(latest, {500, 101, 102, 901});
  EXPECT_EQ(all_of(b), (std::vector<int>{901, 500, 101}));
}

// ---- shutdown

TEST(router_test, StopReturnsUnbegunItemsInTheOrderOfAcceptance) {
  for (auto o : {numbers::options{}, keyed(), urgent()}) {
    numbers r(std::move(o));
    auto a = r.join();
    auto b = r.join();
    push_all(r, {4, 3, 2, 1});
    EXPECT_EQ(r.stop(), (std::vector<int>{4, 3, 2, 1}));
    EXPECT_TRUE(r.stop_token().stop_requested());
    EXPECT_EQ(a.try_next().status(), status::closed);
    EXPECT_EQ(r.wait_ended(), status::ok);
  }
}

TEST(router_test, ShutdownWithinDrainsUntilItsLimitAndThenStops) {
  thread_pool pool(1);
  manual_clock clock;
  numbers r({});
  std::atomic<bool> inside{false};
  auto a = r.join(pool, [&](int&) {
    inside = true;
    eventually([&] { return r.stop_token().stop_requested(); });
  });
  push_all(r, {1, 2, 3});
  eventually([&] { return inside.load(); });
  std::vector<int> unstarted;
  std::jthread ends([&] { unstarted = r.shutdown(deadline::after(1min, clock)); });
  eventually([&] { return clock.pending() == 1; });
  EXPECT_EQ(r.wait_ended(deadline::after(-1s)), status::timed_out);
  clock.advance(1min);
  ends.join();
  EXPECT_EQ(unstarted, (std::vector<int>{2, 3}));
  EXPECT_EQ(a.stats().handled, 1u);
}

TEST(router_test, DrainWaitsForTheBegunItemOfALoop) {
  numbers r({});
  auto a = r.join();
  push_all(r, {1});
  ASSERT_EQ(*a.try_next(), 1);
  ending ended;
  [](numbers* on, ending& out) -> detached {
    out.set(co_await on->async_wait_ended());
  }(&r, ended);
  r.close();
  EXPECT_FALSE(ended.is_set()) << "it is not finished";
  EXPECT_EQ(a.try_next().status(), status::closed);
  EXPECT_TRUE(ended.is_set());
}

TEST(router_test, CountsItsWork) {
  numbers r({.capacity = 1, .overflow = overflow::reject, .name = "desk"});
  auto a = r.join();
  auto b = r.join();
  push_all(r, {1, 2});
  EXPECT_EQ(r.push(3), status::full);
  ASSERT_EQ(*a.try_next(), 1);
  const auto now = r.stats();
  EXPECT_EQ(now.workers, 2u);
  EXPECT_EQ(now.queued, 1u);
  EXPECT_EQ(now.unfinished, 2u);
  EXPECT_EQ(now.pushed, 2u);
  EXPECT_EQ(now.rejected, 1u);
  const auto workers = r.workers();
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].id, a.id());
  EXPECT_TRUE(workers[0].busy);
  EXPECT_EQ(workers[1].queued, 1u);
  EXPECT_EQ(r.name(), "desk");
}

// ---- misuse

class router_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(router_DeathTest, OptionsThatMakeNoSenseAreBrokenContracts) {
  EXPECT_DEATH(numbers({.capacity = 0}), "router \"router\": expected a capacity of at least 1");
  EXPECT_DEATH(numbers({.overflow = overflow::caller_runs}), "other than caller_runs");
  EXPECT_DEATH(numbers({.per_turn = 0}), "at least one item a turn");
  EXPECT_DEATH(numbers({.rule = routing::by_key}), "a key exactly when it routes by key");
  EXPECT_DEATH(numbers({.key = key_of}), "a key exactly when it routes by key");
  EXPECT_DEATH(numbers({.rule = routing::by_priority}), "a priority exactly when");
}

TEST_F(router_DeathTest, EndingItInAHandlerIsABrokenContract) {
  const auto in_handler = [](auto&& end) {
    inline_executor here;
    numbers r({});
    std::optional<numbers::worker> a;
    a.emplace(r.join(here, [&](int&) { end(r, *a); }));
    (void)r.push(1);
  };
  EXPECT_DEATH(in_handler([](numbers& r, auto&) { r.drain(); }), "would wait for itself");
  EXPECT_DEATH(in_handler([](numbers& r, auto&) { (void)r.stop(); }), "would wait for itself");
  EXPECT_DEATH(in_handler([](numbers& r, auto&) { (void)r.wait_ended(); }),
               "would wait for itself");
  EXPECT_DEATH(in_handler([](numbers&, auto& a) { a.leave(); }), "not to leave in a handler");
}

TEST_F(router_DeathTest, MisuseOfAWorkerIsABrokenContract) {
  EXPECT_DEATH(
      {
        inline_executor here;
        numbers r({});
        auto a = r.join(here, [](int&) {});
        (void)a.try_next();
      },
      "`next` to be called on a worker without a handler");
  EXPECT_DEATH(
      {
        auto r = std::make_unique<numbers>(numbers::options{});
        auto a = r->join();
        r.reset();
      },
      "all its workers to be destroyed before it");
  EXPECT_DEATH(
      {
        numbers r({});
        auto a = r.join();
        std::jthread other([&] { (void)a.next(); });
        (void)a.next();
      },
      "one call of `next` at a time on a worker");
  EXPECT_DEATH(
      {
        numbers r({});
        auto a = r.join();
        auto b = std::move(a);
        a.leave();
      },
      "a worker that was not moved from");
}

}  // namespace
}  // namespace sluice::testing::router_test
