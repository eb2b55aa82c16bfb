#include "sluice/queue/priority_queue.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::priority_queue_test {
namespace {

using namespace std::chrono_literals;
using testing::detached;
using testing::eventually;

struct mail {
  int priority = 0;
  int number = 0;
};

template <class Queue>
std::vector<int> drain(Queue& q) {
  std::vector<int> numbers;
  while (auto item = q.try_pop()) numbers.push_back(item->number);
  return numbers;
}

TEST(PriorityQueue, LargerPriorityComesFirst) {
  priority_queue<mail> q(10);
  for (const int p : {3, 9, 1, 7, 5}) ASSERT_EQ(q.push({p, p}), status::ok);
  EXPECT_EQ(drain(q), (std::vector{9, 7, 5, 3, 1}));
}

TEST(PriorityQueue, EqualsComeOutInOrderOfArrival) {
  priority_queue<mail> q(100);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(q.push({i % 3, i}), status::ok);
  std::vector<int> expected;
  for (const int p : {2, 1, 0}) {
    for (int i = p; i < 100; i += 3) expected.push_back(i);
  }
  EXPECT_EQ(drain(q), expected);
}

TEST(PriorityQueue, NumberIsItsOwnPriority) {
  priority_queue<double> q(4);
  for (const double d : {0.5, -1.0, std::numeric_limits<double>::infinity()}) {
    ASSERT_EQ(q.push(d), status::ok);
  }
  ASSERT_EQ(q.push(std::numeric_limits<double>::quiet_NaN()), status::ok);
  EXPECT_EQ(*q.pop(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(*q.pop(), 0.5);
  EXPECT_EQ(*q.pop(), -1.0);
  EXPECT_NE(*q.pop(), 0.0) << "not-a-number is the least urgent";
}

TEST(PriorityQueue, LargestIntegersAreDistinguished) {
  priority_queue<std::uint64_t> q(3);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (const auto n : {most - 1, most, most - 2}) ASSERT_EQ(q.push(n), status::ok);
  EXPECT_EQ(*q.pop(), most);
  EXPECT_EQ(*q.pop(), most - 1);
  EXPECT_EQ(*q.pop(), most - 2);
}

TEST(PriorityQueue, PriorityMayComeFromAFunctionOrAnEnumeration) {
  const auto by_length = [](const std::string& s) { return s.size(); };
  priority_queue<std::string, decltype(by_length)> q({.capacity = 3}, by_length);
  for (const char* s : {"a", "ccc", "bb"}) ASSERT_EQ(q.push(s), status::ok);
  EXPECT_EQ(*q.pop(), "ccc");
  EXPECT_EQ(*q.pop(), "bb");

  enum class level : std::uint8_t { low, high };
  struct job {
    level priority;
    int number;
  };
  priority_queue<job> jobs(2);
  ASSERT_EQ(jobs.push({level::low, 1}), status::ok);
  ASSERT_EQ(jobs.push({level::high, 2}), status::ok);
  EXPECT_EQ(jobs.pop()->number, 2);
}

TEST(PriorityQueue, MoreUrgentItemOvertakesWhileAConsumerIsBusy) {
  priority_queue<mail> q(2);
  ASSERT_EQ(q.push({1, 1}), status::ok);
  ASSERT_EQ(q.push({1, 2}), status::ok);
  std::jthread producer([&] { EXPECT_EQ(q.push({5, 3}), status::ok); });
  eventually([&] { return q.waiting_to_push() == 1; });
  EXPECT_EQ(q.pop()->number, 1);
  producer.join();
  EXPECT_EQ(q.pop()->number, 3);
  EXPECT_EQ(q.pop()->number, 2);
}

// ---- ageing

TEST(PriorityQueueAgeing, WaitingMakesAnItemMoreUrgent) {
  manual_clock clock;
  priority_queue<mail> q({.capacity = 10, .ageing = 10s, .clock = &clock});
  ASSERT_EQ(q.push({0, 1}), status::ok);
  clock.advance(29s);
  ASSERT_EQ(q.push({3, 2}), status::ok);  // the first item has urgency 2.9 now
  EXPECT_EQ(q.pop()->number, 2);
  clock.advance(2s);
  ASSERT_EQ(q.push({3, 3}), status::ok);  // 3.1
  EXPECT_EQ(q.pop()->number, 1);
  EXPECT_EQ(q.pop()->number, 3);
}

TEST(PriorityQueueAgeing, EqualUrgencyComesOutInOrderOfArrival) {
  manual_clock clock;
  priority_queue<mail> q({.capacity = 10, .ageing = 10s, .clock = &clock});
  ASSERT_EQ(q.push({0, 1}), status::ok);
  clock.advance(30s);
  ASSERT_EQ(q.push({3, 2}), status::ok);
  EXPECT_EQ(drain(q), (std::vector{1, 2}));
}

TEST(PriorityQueueAgeing, LowPriorityIsNotStarvedByAStreamOfUrgentItems) {
  manual_clock clock;
  priority_queue<mail> q({.capacity = 10, .ageing = 1s, .clock = &clock});
  ASSERT_EQ(q.push({0, -1}), status::ok);
  int overtaken = 0;
  for (;; ++overtaken) {
    ASSERT_LT(overtaken, 1000) << "starved";
    ASSERT_EQ(q.push({9, overtaken}), status::ok);
    if (q.pop()->number == -1) break;
    clock.advance(100ms);
  }
  EXPECT_EQ(overtaken, 90) << "overtaken for nine times the ageing and no longer";
}

TEST(PriorityQueueAgeing, WithoutItPrioritiesAreAbsolute) {
  manual_clock clock;
  priority_queue<mail> q({.capacity = 10, .clock = &clock});
  ASSERT_EQ(q.push({0, 1}), status::ok);
  clock.advance(1000h);
  ASSERT_EQ(q.push({1, 2}), status::ok);
  EXPECT_EQ(drain(q), (std::vector{2, 1}));
}

// ---- overflow policies

TEST(PriorityQueue, DropOldestDropsTheOldestOfTheLowestPriority) {
  std::vector<int> dropped;
  priority_queue<mail> q({.capacity = 4,
                          .overflow = overflow::drop_oldest,
                          .on_drop = [&](mail&& m) { dropped.push_back(m.number); }});
  ASSERT_EQ(q.push({5, 1}), status::ok);
  ASSERT_EQ(q.push({2, 2}), status::ok);
  ASSERT_EQ(q.push({2, 3}), status::ok);
  ASSERT_EQ(q.push({9, 4}), status::ok);
  EXPECT_EQ(q.push({2, 5}), status::ok) << "of equal items the oldest is dropped";
  EXPECT_EQ(q.push({7, 6}), status::ok);
  EXPECT_EQ(q.push({1, 7}), status::dropped) << "it ranks below all items inside";
  EXPECT_EQ(dropped, (std::vector{2, 3, 7}));
  EXPECT_EQ(q.stats().dropped, 3u);
  EXPECT_EQ(drain(q), (std::vector{4, 6, 1, 5}));
}

TEST(PriorityQueueAgeing, DropOldestUsesThePriorityWithoutAgeing) {
  manual_clock clock;
  priority_queue<mail> q(
      {.capacity = 2, .overflow = overflow::drop_oldest, .ageing = 1s, .clock = &clock});
  ASSERT_EQ(q.push({1, 1}), status::ok);
  clock.advance(100s);  // now the first item is the most urgent by far
  ASSERT_EQ(q.push({2, 2}), status::ok);
  EXPECT_EQ(q.push({2, 3}), status::ok);
  EXPECT_EQ(drain(q), (std::vector{2, 3}));
}

TEST(PriorityQueue, LatestReplacesTheItemPushedLast) {
  priority_queue<mail> q({.capacity = 2, .overflow = overflow::latest});
  ASSERT_EQ(q.push({1, 1}), status::ok);
  ASSERT_EQ(q.push({9, 2}), status::ok);
  EXPECT_EQ(q.push({0, 3}), status::ok);
  EXPECT_EQ(drain(q), (std::vector{1, 3}));
}

TEST(PriorityQueue, DropNewestDropsEvenAnUrgentItem) {
  priority_queue<mail> q({.capacity = 1, .overflow = overflow::drop_newest});
  ASSERT_EQ(q.push({1, 1}), status::ok);
  EXPECT_EQ(q.push({9, 2}), status::dropped);
  EXPECT_EQ(drain(q), std::vector{1});
}

TEST(PriorityQueue, WeightIsIndependentOfTheOrder) {
  priority_queue<mail> q({.capacity = 10,
                          .overflow = overflow::drop_oldest,
                          .weight_max = 10,
                          .weigh = [](const mail& m) { return static_cast<size_t>(m.number); }});
  ASSERT_EQ(q.push({1, 4}), status::ok);
  ASSERT_EQ(q.push({2, 3}), status::ok);
  ASSERT_EQ(q.push({3, 2}), status::ok);
  EXPECT_EQ(q.weight(), 9u);
  EXPECT_EQ(q.push({5, 8}), status::ok) << "the two lowest priorities are evicted";
  EXPECT_EQ(q.weight(), 10u);
  EXPECT_EQ(drain(q), (std::vector{8, 2}));
  EXPECT_EQ(q.weight(), 0u);
}

TEST(PriorityQueue, DropOldestNeverEvictsAMoreUrgentItemForItsWeight) {
  std::vector<int> dropped;
  priority_queue<mail> q({.capacity = 10,
                          .overflow = overflow::drop_oldest,
                          .weight_max = 10,
                          .weigh = [](const mail& m) { return static_cast<size_t>(m.number); },
                          .on_drop = [&](mail&& m) { dropped.push_back(m.number); }});
  ASSERT_EQ(q.push({1, 1}), status::ok);
  ASSERT_EQ(q.push({9, 9}), status::ok);
  EXPECT_EQ(q.push({5, 5}), status::dropped);
  EXPECT_EQ(dropped, (std::vector{1, 5})) << "the lower priorities did not suffice";
  EXPECT_EQ(drain(q), (std::vector{9}));
}

// ---- exceptions

TEST(PriorityQueue, PriorityFunctionThatThrowsChangesNothing) {
  struct picky {
    int operator()(const std::unique_ptr<int>& p) const {
      if (*p < 0) throw std::runtime_error("no priority");
      return *p;
    }
  };
  for (const auto policy : {overflow::block, overflow::drop_oldest}) {
    priority_queue<std::unique_ptr<int>, picky> q({.capacity = 2, .overflow = policy});
    ASSERT_EQ(q.push(std::make_unique<int>(1)), status::ok);
    auto bad = std::make_unique<int>(-1);
    EXPECT_THROW((void)q.push(std::move(bad)), std::runtime_error);
    ASSERT_NE(bad, nullptr);
    ASSERT_EQ(q.push(std::make_unique<int>(2)), status::ok);
    if (policy == overflow::drop_oldest) {
      EXPECT_THROW((void)q.push(std::move(bad)), std::runtime_error);
      EXPECT_EQ(q.stats().dropped, 0u);
    }
    EXPECT_EQ(q.size(), 2u);
    EXPECT_EQ(**q.pop(), 2);
    EXPECT_EQ(**q.pop(), 1);
  }
}

struct brittle {
  brittle(int p, bool* t) : priority(p), throws(t) {}
  brittle(brittle&& from) : priority(from.priority), throws(from.throws) {
    if (*throws) throw std::runtime_error("move");
    from.priority = -1;
  }
  int priority;
  bool* throws;
};

TEST(PriorityQueue, ThrowingMoveLosesNothingAndKeepsTheOrder) {
  bool throws = false;
  priority_queue<brittle> q({.capacity = 3, .overflow = overflow::drop_oldest});
  for (const int p : {2, 3, 1}) ASSERT_EQ(q.push(brittle(p, &throws)), status::ok);
  brittle item(7, &throws);
  throws = true;
  EXPECT_THROW((void)q.push(std::move(item)), std::runtime_error);
  EXPECT_THROW((void)q.try_pop(), std::runtime_error);
  EXPECT_THROW((void)q.pop_some(3), std::runtime_error);
  throws = false;
  EXPECT_EQ(item.priority, 7);
  EXPECT_EQ(q.size(), 3u);
  for (const int p : {3, 2, 1}) EXPECT_EQ(q.pop()->priority, p);
}

// ---- against a model

struct model_item {
  mail m;
  time_point arrival;
};

class PriorityModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(PriorityModel, AgreesWithALinearSearch) {
  random r(GetParam());
  constexpr int operations = 20'000;
  const overflow policies[] = {overflow::block, overflow::drop_newest, overflow::drop_oldest,
                               overflow::latest};
  const auto policy = policies[r.below(4)];
  const auto ageing = std::chrono::milliseconds(r.below(2) * 700);
  const std::size_t capacity = 1 + r.below(20);
  manual_clock clock;
  std::vector<int> dropped;
  priority_queue<mail> q({.capacity = capacity,
                          .overflow = policy,
                          .on_drop = [&](mail&& m) { dropped.push_back(m.number); },
                          .ageing = ageing,
                          .clock = &clock});
  std::vector<model_item> model;  // in order of arrival
  std::vector<int> model_dropped;
  const auto worth = [&](const model_item& i) {
    const auto waited = std::chrono::duration<double, std::milli>(clock.now() - i.arrival).count();
    return i.m.priority + (ageing > 0ms ? waited / static_cast<double>(ageing.count()) : 0.0);
  };
  const auto drop = [&](std::vector<model_item>::iterator it) {
    model_dropped.push_back(it->m.number);
    model.erase(it);
  };
  for (int n = 0; n < operations; ++n) {
    switch (r.below(5)) {
      case 0:
      case 1: {
        const mail m{static_cast<int>(r.below(6)), n};
        const auto done = q.try_push(m);
        if (model.size() < capacity) {
          ASSERT_EQ(done, status::ok);
          model.push_back({m, clock.now()});
        } else if (policy == overflow::block) {
          ASSERT_EQ(done, status::full);
        } else {
          const auto least = std::min_element(
              model.begin(), model.end(),
              [](auto& a, auto& b) { return a.m.priority < b.m.priority; });
          const bool goes_itself =
              policy == overflow::drop_newest ||
              (policy == overflow::drop_oldest && m.priority < least->m.priority);
          ASSERT_EQ(done, goes_itself ? status::dropped : status::ok);
          if (goes_itself) {
            model_dropped.push_back(n);
          } else {
            drop(policy == overflow::latest ? model.end() - 1 : least);
            model.push_back({m, clock.now()});
          }
        }
        break;
      }
      case 2:
      case 3: {
        auto got = q.try_pop();
        ASSERT_EQ(got.has_value(), !model.empty());
        if (model.empty()) break;
        // Greater by more than the model's rounding error; the first item wins among equals.
        auto best = model.begin();
        for (auto it = model.begin(); it != model.end(); ++it) {
          if (worth(*it) > worth(*best) + 1e-7) best = it;
        }
        ASSERT_EQ(got->number, best->m.number) << "operation " << n;
        model.erase(best);
        break;
      }
      default: clock.advance(std::chrono::milliseconds(r.below(100))); break;
    }
    ASSERT_EQ(q.size(), model.size());
  }
  EXPECT_EQ(dropped, model_dropped);
  std::printf("%d operations, seed %llu, capacity %zu, %.*s, ageing %lld ms\n", operations,
              static_cast<unsigned long long>(GetParam()), capacity,
              static_cast<int>(to_string(policy).size()), to_string(policy).data(),
              static_cast<long long>(ageing.count()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, PriorityModel, ::testing::Range<std::uint64_t>(1, 13));

// ---- misuse

TEST(PriorityQueueDeathTest, MisuseIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(priority_queue<int>({.capacity = 0, .name = "mail"}),
               "sluice::priority_queue \"mail\": expected a capacity of at least 1");
  EXPECT_DEATH(priority_queue<int>({.capacity = 1, .overflow = overflow::caller_runs}),
               "sluice::priority_queue: expected a policy other than caller_runs");
  EXPECT_DEATH(priority_queue<int>({.capacity = 1, .name = "mail", .ageing = -1s}),
               "sluice::priority_queue \"mail\": expected an ageing that is not negative");
  EXPECT_DEATH(
      {
        auto q = std::make_unique<priority_queue<int>>(
            priority_queue<int>::options{.capacity = 1, .name = "mail"});
        std::jthread consumer([&from = *q] { (void)from.pop(); });
        eventually([&] { return q->waiting_to_pop() == 1; });
        q.reset();
      },
      "sluice::priority_queue \"mail\": expected no consumers waiting inside");
}

}  // namespace
}  // namespace sluice::priority_queue_test
