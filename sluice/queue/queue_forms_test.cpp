// Further calls of every queue: range-for, emplace, close_and_drop, and options that are checked
// before a queue is constructed from them.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"

namespace sluice::queue_forms_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;

template <class Queue>
class QueueForms : public ::testing::Test {};
using queues = ::testing::Types<bounded_queue<int>, priority_queue<int>, spsc_ring<int>>;
TYPED_TEST_SUITE(QueueForms, queues);

TYPED_TEST(QueueForms, ARangeForEndsWhenTheQueueIsClosedAndDrained) {
  TypeParam q(4);
  std::vector<int> taken;
  std::jthread consumer([&] {
    for (int& item : q) taken.push_back(item);
  });
  eventually([&] { return q.waiting_to_pop() == 1; });
  for (const int item : {7, 6, 5}) ASSERT_TRUE(q.push(item));
  EXPECT_TRUE(q.close());
  consumer.join();
  EXPECT_EQ(taken.size(), 3U);
  EXPECT_TRUE(q.empty());
}

TYPED_TEST(QueueForms, ARangeForOverAClosedAndEmptyQueueHasNoTurn) {
  TypeParam q(1);
  q.close();
  for (const int item : q) FAIL() << item;
}

TEST(QueueEmplace, MakesTheItemFromItsArguments) {
  bounded_queue<std::string> texts(1);
  EXPECT_TRUE(texts.emplace(std::size_t{3}, 'x'));
  EXPECT_EQ(texts.try_emplace("more"), status::full);
  EXPECT_EQ(*texts.pop(), "xxx");

  delay_queue<std::string> later(1);  // an aggregate
  EXPECT_TRUE(later.emplace("now", std::chrono::steady_clock::now() - 1s));
  EXPECT_EQ(later.pop()->item, "now");
}

TEST(QueueCloseAndDrop, EndsADelayQueueAtOnce) {
  std::vector<int> dropped;
  delay_queue<int> later(
      {.capacity = 4, .on_drop = [&](delayed<int>&& d) { dropped.push_back(d.item); }});
  const auto far = std::chrono::steady_clock::now() + 1h;
  status ended = status::ok;
  std::jthread consumer([&] { ended = later.pop().status(); });
  for (const int item : {1, 2, 3}) ASSERT_TRUE(later.push({item, far}));
  eventually([&] { return later.waiting_to_pop() == 1; });
  EXPECT_EQ(later.close_and_drop(), 3U);
  consumer.join();
  EXPECT_EQ(ended, status::closed);
  EXPECT_EQ(dropped, (std::vector{1, 2, 3}));
  EXPECT_EQ(later.stats().dropped, 3U);
  EXPECT_TRUE(later.empty());
  EXPECT_EQ(later.push({4, far}), status::closed);
}

TEST(QueueCloseAndDrop, DropsTheItemsThatCloseLeftInside) {
  bounded_queue<int> q({.capacity = 2, .weight_max = 9, .weigh = [](const int&) { return 4; }});
  ASSERT_TRUE(q.push(1));
  ASSERT_TRUE(q.push(2));
  EXPECT_TRUE(q.close());
  EXPECT_EQ(q.close_and_drop(), 2U);
  EXPECT_EQ(q.weight(), 0U);
  EXPECT_EQ(q.pop().status(), status::closed);
  EXPECT_EQ(q.close_and_drop(), 0U);
}

TEST(QueueCloseAndDrop, EndsTheWaitOfAProducerAndLeavesItsItem) {
  bounded_queue<std::string> q(1);
  ASSERT_TRUE(q.push("inside"));
  std::string waits = "waits";
  status ended = status::ok;
  std::jthread producer([&] { ended = q.push(std::move(waits)); });
  eventually([&] { return q.waiting_to_push() == 1; });
  EXPECT_EQ(q.close_and_drop(), 1U);
  producer.join();
  EXPECT_EQ(ended, status::closed);
  EXPECT_EQ(waits, "waits");
}

TEST(QueueOptions, ProblemNamesAnInvalidOption) {
  EXPECT_STREQ(queue_options<int>().problem(), "a capacity of at least 1");
  EXPECT_STREQ((queue_options<int>{.capacity = 1, .overflow = overflow::caller_runs}).problem(),
               "a policy other than caller_runs, which is for executors");
  EXPECT_STREQ((queue_options<int>{.capacity = 1, .weight_max = 1}).problem(),
               "weight_max and weigh to be given together");
  EXPECT_EQ(queue_options<int>{.capacity = 1}.problem(), nullptr);
  EXPECT_STREQ(delay_queue_options<int>().problem(), "a capacity of at least 1");
  EXPECT_EQ(delay_queue_options<int>{.capacity = 1}.problem(), nullptr);
  EXPECT_STREQ((priority_queue_options<int>{.capacity = 1, .ageing = -1s}).problem(),
               "an ageing that is not negative");
  EXPECT_STREQ(spsc_ring_options().problem(), "a capacity of at least 1");
  EXPECT_STREQ((spsc_ring_options{.capacity = 1, .overflow = overflow::latest}).problem(),
               "overflow::block or overflow::reject");
  EXPECT_EQ(spsc_ring_options{.capacity = 1}.problem(), nullptr);
}

TEST(QueueOptionsDeathTest, TheConstructorNamesTheSameProblem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(bounded_queue<int>(queue_options<int>()), queue_options<int>().problem());
  EXPECT_DEATH(delay_queue<int>(0), delay_queue_options<int>().problem());
  EXPECT_DEATH(priority_queue<int>(0), priority_queue_options<int>().problem());
  EXPECT_DEATH(spsc_ring<int>(0), spsc_ring_options().problem());
}

}  // namespace
}  // namespace sluice::queue_forms_test
