#include "sluice/sync/event.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::event_test {
namespace {

using namespace std::chrono_literals;

class event_gate {
 public:
  status wait(const wait_limits& limits) { return event_.wait(limits); }
  template <class Where>
  static detached await(event_gate& gate, Where&, wait_limits limits, ending& ended) {
    ended.set(co_await gate.event_.async_wait(std::move(limits)));
  }
  void open() { event_.set(); }
  std::size_t waiting() const { return event_.waiting(); }

 private:
  event event_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(event, waiting_suite, event_gate);

TEST(event_test, ASignalBeforeTheWaitIsNotLost) {
  event e;
  std::jthread([&] { e.set(); }).join();
  e.wait();
  EXPECT_TRUE(e.try_wait());
  EXPECT_EQ(e.wait(-1s), status::ok);
  EXPECT_EQ(e.wait(std::chrono::system_clock::now()), status::ok);
  EXPECT_TRUE(e.is_set()) << "it stays set after any number of waits";
}

TEST(event_test, SettingItTwiceIsHarmless) {
  event e;
  e.set();
  e.set();
  EXPECT_TRUE(e.is_set());
}

TEST(event_test, ResetClosesIt) {
  event e;
  e.set();
  e.reset();
  EXPECT_FALSE(e.is_set());
  EXPECT_FALSE(e.try_wait());
  EXPECT_EQ(e.wait(1ms), status::timed_out);
}

TEST(event_test, AResetDoesNotBlockReleasedWaiters) {
  event e;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { e.wait(); });
  eventually([&] { return e.waiting() == 4; });
  e.set();
  e.reset();  // most of them have not run yet
  threads.clear();
  EXPECT_FALSE(e.is_set());
}

TEST(event_test, AReleasedWaiterMayDestroyItWhileSetReturns) {
  stress run;
  for (int i = 0; i < 2'000; ++i) {
    auto e = std::make_unique<event>();
    std::jthread sets([raw = e.get()] { raw->set(); });
    if (i % 2 == 0) {
      e->wait();
    } else {
      while (!e->is_set()) std::this_thread::yield();
    }
    e.reset();
    run.did();
  }
}

TEST(event_test, AllSeeTheWritesBeforeSet) {
  stress run;
  for (int i = 0; i < 300; ++i) {
    event e;
    int data = 0;  // no atomic: the event must be enough
    std::vector<std::jthread> readers;
    for (int r = 0; r < 3; ++r) {
      readers.emplace_back([&] {
        e.wait();
        EXPECT_EQ(data, 42);
      });
    }
    data = 42;
    e.set();
    run.did(4);
  }
}

TEST(event_DeathTest, DestroyingItWithWaitersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* const e = new event;
        std::jthread waits([e] { e->wait(); });
        eventually([&] { return e->waiting() == 1; });
        delete e;
      },
      "sluice::event.*no waiters at its destruction");
}

}  // namespace
}  // namespace sluice::testing::event_test
