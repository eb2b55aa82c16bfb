#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/channel/channel.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/flow/fan_in.hpp"
#include "sluice/flow/fan_out.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::fan_test {
namespace {

using numbers = bounded_queue<int>;

std::vector<int> rest_of(numbers& q) {
  std::vector<int> got;
  while (auto item = q.try_pop()) got.push_back(*item);
  return got;
}
void fill(numbers& q, std::initializer_list<int> items) {
  for (const int item : items) ASSERT_TRUE(q.try_push(item));
}

void throw_it(int&&) { throw std::runtime_error("undelivered"); }

// Throws from its copy constructor after a number of copies.
struct fragile {
  explicit fragile(int n) noexcept : copies_left(n) {}
  fragile(const fragile& other) : copies_left(other.copies_left - 1) {
    --other.copies_left;
    if (copies_left < 0) throw std::runtime_error("copy");
  }
  fragile(fragile&&) noexcept = default;
  fragile& operator=(fragile&&) noexcept = default;

  mutable int copies_left;
};

// ---- broadcast

TEST(fan_out_test, BroadcastSendsEveryItemToEveryConsumer) {
  numbers source(8);
  numbers a(8);
  numbers b(8);
  fill(source, {1, 2, 3});
  source.close();
  EXPECT_EQ(sync_wait(broadcast(&source, std::vector{&a, &b})), flow_ended::source_ended);
  EXPECT_TRUE(a.is_closed()) << "the ends are closed when the source has ended";
  EXPECT_EQ(rest_of(a), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(rest_of(b), (std::vector<int>{1, 2, 3}));
}

TEST(fan_out_test, BroadcastIsAsSlowAsTheSlowestBlockingConsumer) {
  numbers source(8);
  numbers slow(1);
  numbers quick(8);
  fill(source, {1, 2, 3, 4});
  source.close();
  std::jthread flow([&] { (void)sync_wait(broadcast(&source, std::vector{&slow, &quick})); });
  eventually([&] { return slow.waiting_to_push() == 1; });
  EXPECT_LE(quick.size(), 2u) << "it does not run ahead";
  std::vector<int> got;
  while (auto item = slow.pop()) got.push_back(*item);
  flow.join();
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(rest_of(quick), (std::vector<int>{1, 2, 3, 4}));
}

TEST(fan_out_test, AConsumerThatDropsLosesOnlyItsOwnItems) {
  numbers source(8);
  numbers a({.capacity = 2, .overflow = overflow::drop_oldest});
  numbers b(8);
  fill(source, {1, 2, 3, 4});
  source.close();
  EXPECT_EQ(sync_wait(broadcast(&source, std::vector{&a, &b})), flow_ended::source_ended);
  EXPECT_EQ(rest_of(a), (std::vector<int>{3, 4}));
  EXPECT_EQ(rest_of(b), (std::vector<int>{1, 2, 3, 4}));
}

TEST(fan_out_test, AConsumerThatClosesIsSkippedAndTheLastEndsIt) {
  numbers source(8);
  numbers a(8);
  numbers b(8);
  a.close();
  fill(source, {1, 2});
  std::vector<int> undelivered;
  std::jthread ends([&] {
    eventually([&] { return b.size() == 2; });
    b.close();
    fill(source, {3});
  });
  EXPECT_EQ(sync_wait(broadcast(&source, std::vector{&a, &b},
                                [&](int&& item) { undelivered.push_back(item); })),
            flow_ended::no_consumer);
  EXPECT_EQ(rest_of(b), (std::vector<int>{1, 2}));
  EXPECT_EQ(undelivered, (std::vector<int>{3}));
}

TEST(fan_out_test, CancellingEndsIt) {
  numbers source(8);
  numbers a(8);
  std::stop_source stop;
  std::jthread ends([&] {
    eventually([&] { return source.waiting_to_pop() == 1; });
    stop.request_stop();
  });
  const auto result = sync_wait(broadcast(&source, std::vector{&a}), stop.get_token());
  EXPECT_EQ(result.status(), status::stopped);
  EXPECT_TRUE(a.is_closed());
}

TEST(fan_out_test, AnItemThatEveryQueueRejectsOrDropsIsUndelivered) {
  numbers source(8);
  numbers rejects({.capacity = 1, .overflow = overflow::reject});
  numbers drops({.capacity = 2, .overflow = overflow::drop_newest});
  fill(source, {1, 2, 3, 4});
  source.close();
  std::vector<int> undelivered;
  EXPECT_EQ(sync_wait(broadcast(&source, std::vector{&rejects, &drops},
                                [&](int&& item) { undelivered.push_back(item); })),
            flow_ended::source_ended);
  EXPECT_EQ(rest_of(rejects), (std::vector<int>{1}));
  EXPECT_EQ(rest_of(drops), (std::vector<int>{1, 2}));
  EXPECT_EQ(undelivered, (std::vector<int>{3, 4})) << "one consumer got 2";
}

TEST(fan_out_test, ACopyThatThrowsClosesTheEndsAndIsThrown) {
  for (const int copies : {0, 1}) {
    bounded_queue<fragile> source(8);
    bounded_queue<fragile> a(8);
    bounded_queue<fragile> b(8);
    ASSERT_TRUE(source.try_push(fragile(copies)));
    int undelivered = 0;
    EXPECT_THROW((void)sync_wait(broadcast(&source, std::vector{&a, &b},
                                           [&](fragile&&) { ++undelivered; })),
                 std::runtime_error);
    EXPECT_TRUE(a.is_closed());
    EXPECT_TRUE(b.is_closed());
    EXPECT_EQ(a.size(), static_cast<std::size_t>(copies));
    EXPECT_EQ(undelivered, 1 - copies) << "an item that no consumer got is not lost";
  }
}

TEST(fan_out_test, OnUndeliveredThatThrowsIsReportedAndChangesNothing) {
  for (const bool to_all : {true, false}) {
    numbers source(8);
    numbers a({.capacity = 1, .overflow = overflow::reject});
    numbers b({.capacity = 1, .overflow = overflow::reject});
    fill(source, {1, 2, 3});
    const std::vector both{&a, &b};
    source.close();
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(sync_wait(to_all ? broadcast(&source, both, throw_it)
                               : distribute(&source, both, throw_it)),
              flow_ended::source_ended);
    const auto text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find(to_all ? "sluice: on_undelivered of broadcast threw: undelivered\n"
                               : "sluice: on_undelivered of distribute threw: undelivered\n"),
              std::string::npos)
        << text;
    EXPECT_TRUE(a.is_closed());
    EXPECT_TRUE(b.is_closed());
  }
}

// ---- distribute

TEST(fan_out_test, DistributeSendsEachItemToOneConsumer) {
  channel<int> source(8);
  channel<int> a(8);
  channel<int> b(8);
  for (int i = 1; i <= 6; ++i) ASSERT_TRUE(source.try_send(i));
  source.close();
  EXPECT_EQ(sync_wait(distribute(source.receiver(), std::vector{a.sender(), b.sender()})),
            flow_ended::source_ended);
  std::vector<int> got;
  for (const int item : a) got.push_back(item);
  for (const int item : b) got.push_back(item);
  std::ranges::sort(got);
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

TEST(fan_out_test, AnItemThatAConsumerRefusesGoesToAnother) {
  numbers source(8);
  numbers a(8);
  numbers b(8);
  a.close();
  fill(source, {1, 2, 3, 4});
  source.close();
  EXPECT_EQ(sync_wait(distribute(&source, std::vector{&a, &b})), flow_ended::source_ended);
  EXPECT_EQ(rest_of(b).size(), 4u);
}

TEST(fan_out_test, DistributeEndsWhenTheLastConsumerHasClosed) {
  numbers source(8);
  numbers a(8);
  numbers b(8);
  a.close();
  b.close();
  fill(source, {1});
  std::vector<int> undelivered;
  EXPECT_EQ(sync_wait(distribute(&source, std::vector{&a, &b},
                                 [&](int&& item) { undelivered.push_back(item); })),
            flow_ended::no_consumer)
      << "the coroutine that waited for an item has ended too";
  EXPECT_EQ(undelivered, (std::vector<int>{1}));
}

// ---- fan_in

TEST(fan_in_test, MergesAllSourcesAndEndsWhenAllHaveEnded) {
  numbers a(8);
  numbers b(8);
  numbers all(16);
  fill(a, {1, 2, 3});
  fill(b, {11, 12});
  a.close();
  std::jthread ends([&] {
    eventually([&] { return all.size() == 5; });
    EXPECT_FALSE(all.is_closed()) << "one source is still open";
    b.close();
  });
  EXPECT_EQ(sync_wait(fan_in(std::vector{&a, &b}, &all)), flow_ended::source_ended);
  EXPECT_TRUE(all.is_closed());
  std::vector<int> low;
  std::vector<int> high;
  for (const int item : rest_of(all)) (item < 10 ? low : high).push_back(item);
  EXPECT_EQ(low, (std::vector<int>{1, 2, 3})) << "the order of each source is kept";
  EXPECT_EQ(high, (std::vector<int>{11, 12}));
}

TEST(fan_in_test, NoSourcesEndAtOnce) {
  numbers all(1);
  EXPECT_EQ(sync_wait(fan_in(std::vector<numbers*>(), &all)), flow_ended::source_ended);
  EXPECT_TRUE(all.is_closed());
}

TEST(fan_in_test, EndsWhenTheConsumerHasClosed) {
  numbers a(8);
  numbers b(8);
  numbers all(1);
  fill(a, {1, 2, 3});
  std::vector<int> undelivered;
  std::jthread ends([&] {
    eventually([&] { return all.waiting_to_push() == 1; });
    all.close();
  });
  EXPECT_EQ(sync_wait(fan_in(std::vector{&a, &b}, &all,
                             [&](int&& item) { undelivered.push_back(item); })),
            flow_ended::no_consumer);
  EXPECT_EQ(undelivered, (std::vector<int>{2}));
  EXPECT_EQ(a.size(), 1u) << "no further item is taken";
}

TEST(fan_in_test, OnUndeliveredThatThrowsIsReportedAndChangesNothing) {
  numbers a(8);
  numbers b(8);
  numbers all({.capacity = 1, .overflow = overflow::reject});
  fill(a, {1, 2, 3});
  a.close();
  b.close();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(sync_wait(fan_in(std::vector{&a, &b}, &all, throw_it)), flow_ended::source_ended);
  const std::string line = "sluice: on_undelivered of fan_in threw: undelivered\n";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), line + line);
  EXPECT_TRUE(all.is_closed());
}

// ---- all of it, on a pool

TEST(fan_in_test, OutAndInAgainLosesNothingUnderStress) {
  stress run;
  constexpr int count = 20'000;
  thread_pool pool(3);
  bounded_queue<std::unique_ptr<int>> source(16);
  bounded_queue<std::unique_ptr<int>> left(4);
  bounded_queue<std::unique_ptr<int>> right(4);
  bounded_queue<std::unique_ptr<int>> all(8);
  std::jthread maker([&] {
    for (int i = 0; i < count; ++i) EXPECT_TRUE(source.push(std::make_unique<int>(i)));
    source.close();
  });
  auto out = spawn(pool, distribute(&source, std::vector{&left, &right}));
  auto in = spawn(pool, fan_in(std::vector{&left, &right}, &all));
  std::vector<int> times(count);
  while (auto item = all.pop()) ++times[static_cast<std::size_t>(**item)];
  for (const int each : times) EXPECT_EQ(each, 1);
  EXPECT_EQ(out.get(), flow_ended::source_ended);
  EXPECT_EQ(in.get(), flow_ended::source_ended);
  run.did(count);
}

TEST(fan_DeathTest, NoConsumerIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  numbers source(1);
  EXPECT_DEATH((void)sync_wait(broadcast(&source, std::vector<numbers*>())),
               "at least one consumer");
  EXPECT_DEATH((void)sync_wait(distribute(&source, std::vector<numbers*>())),
               "at least one consumer");
}

}  // namespace
}  // namespace sluice::testing::fan_test
