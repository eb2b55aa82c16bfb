#include "sluice/flow/bulkhead.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::bulkhead_test {
namespace {

using namespace std::chrono_literals;

// Shut: the only place is taken. A released waiter leaves at once, for the next.
class bulkhead_gate {
 public:
  bulkhead_gate() : held_(std::move(*bulkhead_.try_enter())) {}
  status wait(const wait_limits& limits) { return bulkhead_.enter(limits).status(); }
  template <class Where>
  static detached await(bulkhead_gate& gate, Where&, wait_limits limits, ending& ended) {
    status result = status::ok;
    {
      const auto entered = co_await gate.bulkhead_.async_enter(std::move(limits));
      result = entered.status();
    }
    ended.set(result);
  }
  void open() { held_.leave(); }
  std::size_t waiting() const { return bulkhead_.waiting(); }

 private:
  bulkhead bulkhead_{{.active_max = 1, .waiting_max = 100}};
  bulkhead::permit held_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(bulkhead, waiting_suite, bulkhead_gate);

detached ask(bulkhead& at, int number, std::vector<int>& order,
             std::deque<bulkhead::permit>& inside) {
  auto entered = co_await at.async_enter();
  order.push_back(entered ? number : -number);
  if (entered) inside.push_back(std::move(*entered));
}

TEST(bulkhead_test, BoundsTheCallsInsideAndTheWaitersAndRefusesTheRest) {
  bulkhead rooms({.active_max = 2, .waiting_max = 2});
  std::vector<int> order;
  std::deque<bulkhead::permit> inside;
  for (int i = 1; i <= 5; ++i) ask(rooms, i, order, inside);
  EXPECT_EQ(order, (std::vector{1, 2, -5}));
  EXPECT_EQ(rooms.active(), 2U);
  EXPECT_EQ(rooms.waiting(), 2U);
  EXPECT_EQ(rooms.enter().status(), status::full);
  EXPECT_EQ(rooms.enter(1h).status(), status::full) << "refused although it has time";
  EXPECT_EQ(rooms.try_enter().status(), status::full);
  inside.pop_front();
  inside.pop_front();
  EXPECT_EQ(order, (std::vector{1, 2, -5, 3, 4})) << "in order of arrival";
  inside.clear();
  EXPECT_EQ(rooms.active(), 0U);
  const auto stats = rooms.stats();
  EXPECT_EQ(stats.entered, 4U);
  EXPECT_EQ(stats.waited, 2U);
  EXPECT_EQ(stats.refused, 4U);
  EXPECT_EQ(stats.active_most, 2U);
}

TEST(bulkhead_test, WithoutAWaitingListItReturnsAPlaceOrFull) {
  bulkhead room({.active_max = 1});
  auto place = room.enter();
  EXPECT_TRUE(place);
  EXPECT_EQ(room.enter().status(), status::full);
  place->leave();
  EXPECT_TRUE(room.try_enter());
}

TEST(bulkhead_test, AWaiterThatGivesUpFreesItsPlaceInTheList) {
  bulkhead room({.active_max = 1, .waiting_max = 1});
  auto place = room.enter();
  manual_clock time;
  std::stop_source source;
  for (const status result : {status::timed_out, status::stopped, status::timed_out}) {
    std::jthread waits([&] {
      const wait_limits limits{deadline::after(1h, time), source.get_token()};
      EXPECT_EQ(room.enter(limits).status(), result);
    });
    eventually([&] { return room.waiting() == 1; });
    EXPECT_EQ(room.enter(1h).status(), status::full);
    if (result == status::stopped) {
      std::exchange(source, std::stop_source()).request_stop();
    } else {
      time.advance(1h);
    }
  }
  EXPECT_EQ(room.stats().gave_up, 3U);
}

TEST(bulkhead_test, AWaitEndsAtItsTime) {
  bulkhead room({.active_max = 1, .waiting_max = 1});
  const auto place = room.enter();
  EXPECT_EQ(room.enter(1ms).status(), status::timed_out);
  EXPECT_EQ(room.enter(std::chrono::steady_clock::now() + 1ms).status(), status::timed_out);
  EXPECT_EQ(room.waiting(), 0U);
}

TEST(bulkhead_test, APermitMovesAndLeavesOnce) {
  bulkhead room({.active_max = 2});
  auto first = std::move(*room.enter());
  auto second = std::move(*room.enter());
  first = std::move(second);
  EXPECT_EQ(room.active(), 1U);
  first.leave();
  first.leave();
  EXPECT_EQ(room.active(), 0U);
}

TEST(bulkhead_test, WrapsAFunction) {
  bulkhead room({.active_max = 1, .name = "printer"});
  EXPECT_EQ(room.call([&] { return room.active(); }), 1U);
  EXPECT_THROW(room.call([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(room.active(), 0U) << "left in every case";
  const auto place = room.enter();
  try {
    room.call([] {});
    FAIL() << "it is full";
  } catch (const refused_error& e) {
    EXPECT_EQ(e.why(), refused_error::reason::full);
    EXPECT_STREQ(e.what(), "sluice: the call was refused by printer: full");
  }
}

TEST(bulkhead_test, ACallWaitsWithinItsLimits) {
  bulkhead room({.active_max = 1, .waiting_max = 1});
  const auto place = room.enter();
  const auto why = [&](wait_limits limits) {
    try {
      room.call([] {}, std::move(limits));
    } catch (const refused_error& e) {
      return e.why();
    }
    return refused_error::reason::open;
  };
  EXPECT_EQ(why(deadline::after(1ms)), refused_error::reason::timed_out);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(why(source.get_token()), refused_error::reason::stopped);
}

TEST(bulkhead_test, WrapsAFunctionThatReturnsAFuture) {
  bulkhead room({.active_max = 1});
  promise<int> answer;
  auto result = room.call([&] { return answer.get_future(); });
  EXPECT_EQ(room.active(), 1U) << "until the result is there";
  EXPECT_THROW(room.call([]() -> future<int> { return promise<int>().get_future(); }).get(),
               refused_error);
  answer.set_value(3);
  EXPECT_EQ(room.active(), 0U);
  EXPECT_EQ(result.get(), 3);
  EXPECT_THROW(room.call([]() -> future<int> { throw std::logic_error("at once"); }).get(),
               std::logic_error);
  EXPECT_EQ(room.active(), 0U);
}

TEST(bulkhead_test, WrapsAFunctionThatReturnsATask) {
  bulkhead room({.active_max = 1});
  const auto look = [&room]() -> task<std::size_t> { co_return room.active(); };
  EXPECT_EQ(sync_wait(room.call([&] { return look(); })), 1U);
  EXPECT_EQ(room.active(), 0U);
  const auto place = room.enter();
  EXPECT_THROW(sync_wait(room.call([&] { return look(); })), refused_error);
}

TEST(bulkhead_stress_test, NeverMoreInsideThanAllowedAndNoPlaceIsLost) {
  stress run;
  bulkhead rooms({.active_max = 3, .waiting_max = 2});
  std::atomic<int> inside{0};
  std::atomic<std::uint64_t> entered{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        auto choose = run.generator(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 1'000; ++i) {
          const auto place = choose.below(2) == 0
                                 ? rooms.enter(std::chrono::microseconds(choose.below(60)))
                                 : rooms.enter();
          if (!place) continue;
          ++entered;
          EXPECT_LE(inside.fetch_add(1) + 1, 3);
          if (choose.below(4) == 0) std::this_thread::yield();
          inside.fetch_sub(1);
        }
        run.did(1'000);
      });
    }
  }
  EXPECT_EQ(rooms.active(), 0U);
  EXPECT_EQ(rooms.waiting(), 0U);
  EXPECT_EQ(rooms.stats().entered, entered.load());
  EXPECT_LE(rooms.stats().active_most, 3U);
}

TEST(bulkhead_DeathTest, MisuseIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(bulkhead({}), "sluice::bulkhead.*at least 1");
  EXPECT_DEATH(
      {
        auto* room = new bulkhead({.active_max = 1, .name = "printer"});
        const auto place = room->enter();
        delete room;
      },
      "sluice::bulkhead.*printer.*no calls inside");
}

}  // namespace
}  // namespace sluice::testing::bulkhead_test
