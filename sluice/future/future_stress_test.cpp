#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/from_callback.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::future_stress_test {
namespace {

using namespace std::chrono_literals;

// Two parties that start each round together, so that their actions race.
class future_stress_test : public leak_checked {
 protected:
  static constexpr int rounds = 3'000;

  // In each round `prepare` creates the shared objects, then the two run concurrently.
  template <class Prepare, class One, class Other, class Check>
  void race(Prepare prepare, One one, Other other, Check check) {
    stress run;
    std::barrier meet(2);
    std::jthread second([&] {
      auto choose = run.generator(1);
      for (int i = 0; i < rounds; ++i) {
        meet.arrive_and_wait();
        spin(choose.below(30));
        other(choose);
        meet.arrive_and_wait();
      }
    });
    auto choose = run.generator(2);
    for (int i = 0; i < rounds; ++i) {
      prepare();
      meet.arrive_and_wait();
      spin(choose.below(30));
      one(choose);
      meet.arrive_and_wait();
      check();
      run.did(2);
    }
  }
  static void spin(std::uint64_t pauses) {
    for (; pauses > 0; --pauses) seam::pause();
  }
};

TEST_F(future_stress_test, SettingRacesWithAttaching) {
  std::unique_ptr<promise<tracked>> p;
  future<tracked> f;
  future<int> g;
  std::atomic<int> ran{0};
  race(
      [&] {
        p = std::make_unique<promise<tracked>>();
        f = p->get_future();
        ran = 0;
      },
      [&](random&) { p->set_value(7); },
      [&](random& choose) {
        auto next = std::move(f).then([&](tracked t) {
          ++ran;
          return t.value;
        });
        if (choose.below(2) == 0) {
          next = std::move(next).and_then([](int n) { return make_ready_future(n); });
        }
        g = std::move(next);
      },
      [&] {
        EXPECT_EQ(ran.load(), 1);
        EXPECT_EQ(g.get(), 7);
        p.reset();
      });
}

TEST_F(future_stress_test, SettingBreakingAndDroppingRaceWithEachOther) {
  std::unique_ptr<promise<tracked>> p;
  future<tracked> f;
  race(
      [&] {
        p = std::make_unique<promise<tracked>>();
        f = p->get_future();
      },
      [&](random& choose) {
        if (choose.below(2) == 0) p->set_value(7);
        p.reset();
      },
      [&](random& choose) {
        switch (choose.below(3)) {
          case 0: f = future<tracked>(); break;
          case 1: (void)std::move(f).then([](tracked) {}); break;
          default:
            try {
              EXPECT_EQ(f.get().value, 7);
            } catch (const future_error& e) {
              EXPECT_EQ(e.why(), future_error::broken_promise);
            }
        }
      },
      [&] { f = future<tracked>(); });
}

TEST_F(future_stress_test, LimitedWaitsRaceWithTheValueAndLoseNothing) {
  std::unique_ptr<promise<tracked>> p;
  future<tracked> f;
  race(
      [&] {
        p = std::make_unique<promise<tracked>>();
        f = p->get_future();
      },
      [&](random&) { p->set_value(7); },
      [&](random& choose) {
        std::stop_source stop;
        for (;;) {
          ASSERT_TRUE(f.valid());
          auto got = choose.below(2) == 0
                         ? f.get(std::chrono::microseconds(choose.below(20)))
                         : f.get(stop.get_token());
          if (!got) continue;
          EXPECT_EQ(got->value, 7);
          return;
        }
      },
      [&] { EXPECT_FALSE(f.valid()); });
}

detached await_within(future<tracked>& f, wait_limits limits, std::atomic<int>& ended) {
  auto got = co_await f.async_get(std::move(limits));
  if (got) {
    EXPECT_EQ(got->value, 7);
  }
  ended.store(got ? 1 : 2);
}

TEST_F(future_stress_test, AwaitsRaceWithTheValueAndWithTheirStop) {
  std::unique_ptr<promise<tracked>> p;
  future<tracked> f;
  std::stop_source stop;
  std::atomic<int> ended{0};
  race(
      [&] {
        p = std::make_unique<promise<tracked>>();
        f = p->get_future();
        stop = std::stop_source();
        ended = 0;
        await_within(f, stop.get_token(), ended);
      },
      [&](random&) { p->set_value(7); }, [&](random&) { stop.request_stop(); },
      [&] {
        eventually([&] { return ended.load() != 0; });
        EXPECT_EQ(f.valid(), ended.load() == 2) << "stopped, it took nothing";
        if (f.valid()) {
          EXPECT_EQ(f.get().value, 7);
        }
      });
}

TEST_F(future_stress_test, CancelRacesWithTheValueAndTheAttaching) {
  std::unique_ptr<promise<int>> p;
  std::unique_ptr<promise<tracked>> inner;
  future<tracked> f;
  race(
      [&] {
        p = std::make_unique<promise<int>>();
        inner = std::make_unique<promise<tracked>>();
        f = p->get_future().and_then([&](int) { return inner->get_future(); }).then([](tracked t) {
          return t;
        });
      },
      [&](random&) {
        const auto asked = p->stop_token();
        p->set_value(1);
        inner->set_value(asked.stop_requested() ? 7 : 8);
      },
      [&](random&) { f.cancel(); }, [&] { EXPECT_GE(f.get().value, 7); });
}

TEST_F(future_stress_test, ACancelIsNeverLostWhileAnAndThenChangesItsSource) {
  std::unique_ptr<promise<int>> first;
  std::unique_ptr<promise<int>> second;
  std::stop_token asked;
  future<int> f;
  race(
      [&] {
        first = std::make_unique<promise<int>>();
        second = std::make_unique<promise<int>>();
        asked = second->stop_token();
        f = first->get_future().and_then([&](int) { return second->get_future(); });
      },
      [&](random&) { first->set_value(1); }, [&](random&) { f.cancel(); },
      [&] {
        EXPECT_TRUE(asked.stop_requested());
        second->set_value(2);
        EXPECT_EQ(f.get(), 2);
      });
}

TEST_F(future_stress_test, TimeoutsRaceWithTheValue) {
  manual_clock clock;
  std::unique_ptr<promise<tracked>> p;
  future<tracked> f;
  race(
      [&] {
        p = std::make_unique<promise<tracked>>();
        f = p->get_future().with_timeout(1s, clock);
      },
      [&](random&) { p->set_value(7); }, [&](random&) { clock.advance(1s); },
      [&] {
        EXPECT_EQ(clock.pending(), 0U);
        try {
          EXPECT_EQ(f.get().value, 7);
        } catch (const future_error& e) {
          EXPECT_EQ(e.why(), future_error::timed_out);
        }
      });
}

TEST_F(future_stress_test, StopsRaceWithTheValue) {
  std::stop_source stop;
  std::unique_ptr<promise<tracked>> p;
  future<tracked> f;
  race(
      [&] {
        stop = std::stop_source();
        p = std::make_unique<promise<tracked>>();
        f = p->get_future().with_stop(stop.get_token());
      },
      [&](random&) { p->set_value(7); }, [&](random&) { stop.request_stop(); },
      [&] {
        try {
          EXPECT_EQ(f.get().value, 7);
        } catch (const future_error& e) {
          EXPECT_EQ(e.why(), future_error::cancelled);
        }
      });
}

TEST_F(future_stress_test, AStopRacesWithTheEndOfBothSides) {
  std::stop_source stop;
  std::unique_ptr<promise<tracked>> p;
  future<tracked> f;
  race(
      [&] {
        stop = std::stop_source();
        p = std::make_unique<promise<tracked>>();
        f = p->get_future().with_stop(stop.get_token());
      },
      [&](random&) {
        f = future<tracked>();
        p.reset();
      },
      [&](random&) { stop.request_stop(); }, [&] { EXPECT_FALSE(f.valid()); });
}

TEST_F(future_stress_test, SeveralEndsOfAWhenAnyRace) {
  std::vector<promise<tracked>> promises;
  future<first_settled<tracked>> f;
  race(
      [&] {
        promises = std::vector<promise<tracked>>(4);
        std::vector<future<tracked>> futures;
        for (auto& p : promises) futures.push_back(p.get_future());
        f = when_any(std::move(futures));
      },
      [&](random&) {
        promises[0].set_value(0);
        promises[1].set_exception(std::runtime_error("one"));
      },
      [&](random&) {
        promises[2].set_exception(std::runtime_error("two"));
        promises[3].set_value(3);
      },
      [&] {
        auto winner = f.get();
        EXPECT_TRUE(winner.index == 0 || winner.index == 2);
        EXPECT_EQ(winner.result.has_value(), winner.index == 0);
      });
}

TEST_F(future_stress_test, FailuresOfAWhenAllRaceWithValuesAndWithACancel) {
  std::vector<promise<tracked>> promises;
  future<std::vector<tracked>> f;
  race(
      [&] {
        promises = std::vector<promise<tracked>>(4);
        std::vector<future<tracked>> futures;
        for (auto& p : promises) futures.push_back(p.get_future());
        f = when_all(std::move(futures));
      },
      [&](random& choose) {
        promises[0].set_value(0);
        if (choose.below(2) == 0) {
          promises[1].set_value(1);
        } else {
          promises[1].set_exception(std::runtime_error("one"));
        }
      },
      [&](random& choose) {
        if (choose.below(2) == 0) f.cancel();
        promises[2].set_value(2);
        promises[3].set_value(3);
      },
      [&] {
        try {
          const auto values = f.get();
          for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(values[i].value, static_cast<int>(i));
        } catch (const std::runtime_error&) {
        }
      });
}

TEST_F(future_stress_test, TwoThreadsThatCloseACycleFromBothSidesBothContinue) {
  std::unique_ptr<promise<int>> pa;
  std::unique_ptr<promise<int>> pb;
  future<int> a;
  future<int> b;
  std::atomic<int> cycles{0};
  const auto note = [&](settled<int> s) {
    const auto* const e = s.error_as<future_error>();
    if (e != nullptr && e->why() == future_error::cycle) ++cycles;
    return 0;
  };
  race(
      [&] {
        pa = std::make_unique<promise<int>>();
        pb = std::make_unique<promise<int>>();
        cycles = 0;
        a = pa->get_future()
                .and_then([&, keep = tracked()](int) { return std::move(b); })
                .handle(note);
        b = pb->get_future()
                .and_then([&, keep = tracked()](int) { return std::move(a); })
                .handle(note);
      },
      [&](random&) { pa->set_value(1); }, [&](random&) { pb->set_value(1); },
      [&] { EXPECT_GE(cycles.load(), 1); });
}

TEST_F(future_stress_test, LoopsOfFuturesAreBypassedWhileTheyAreCancelled) {
  std::unique_ptr<promise<int>> last;
  std::vector<promise<void>> steps;
  std::stop_token asked;
  future<int> f;
  std::function<future<int>(std::size_t)> loop = [&](std::size_t i) -> future<int> {
    if (i == steps.size()) return last->get_future();
    return steps[i].get_future().and_then([&, i] { return loop(i + 1); });
  };
  race(
      [&] {
        last = std::make_unique<promise<int>>();
        asked = last->stop_token();
        steps = std::vector<promise<void>>(5);
        f = loop(0);
      },
      [&](random&) {
        for (auto& step : steps) step.set_value();
      },
      [&](random&) { f.cancel(); },
      [&] {
        EXPECT_TRUE(asked.stop_requested());
        last->set_value(1);
        EXPECT_EQ(f.get(), 1);
      });
}

TEST_F(future_stress_test, CopiesOfASharedFutureRaceWithItsEnd) {
  std::unique_ptr<promise<tracked>> p;
  shared_future<tracked> shared;
  race(
      [&] {
        p = std::make_unique<promise<tracked>>();
        shared = shared_future<tracked>(p->get_future());
      },
      [&](random&) { p->set_value(7); },
      [&](random& choose) {
        auto copy = shared;
        shared = shared_future<tracked>();
        switch (choose.below(3)) {
          case 0: EXPECT_EQ(copy.get().value, 7); break;
          case 1:
            (void)copy.then([](const tracked& t) { EXPECT_EQ(t.value, 7); });
            break;
          default: EXPECT_EQ(copy.fork().get().value, 7);
        }
      },
      [] {});
}

TEST_F(future_stress_test, CallbacksThatAreCalledTwiceAndDestroyedAtOnceGiveOneResult) {
  completion<tracked> done;
  future<tracked> f;
  race(
      [&] {
        f = from_callback<tracked>([&](completion<tracked> c) { done = c; });
      },
      [&, own = std::unique_ptr<completion<tracked>>()](random&) mutable {
        own = std::make_unique<completion<tracked>>(done);
        (*own)(1);
        own.reset();
      },
      [&](random&) {
        const auto own_copy = done;
        own_copy(2);
      },
      [&] {
        const auto value = f.get().value;
        EXPECT_TRUE(value == 1 || value == 2);
      });
  done = completion<tracked>();
}

// Chains over two executors that two threads run: built, completed, cancelled, dropped at random.
TEST_F(future_stress_test, RandomChainsOverTwoExecutorsEndOnce) {
  stress run;
  manual_executor one({.capacity = 100'000});
  manual_executor two({.capacity = 100'000});
  std::atomic<int> ended{0};
  int begun = 0;
  {
    std::vector<std::jthread> threads;
    for (auto* const each : {&one, &two}) {
      threads.emplace_back([each] {
        while (each->run_next()) {
        }
      });
    }
    auto choose = run.generator(0);
    for (int i = 0; i < 5'000; ++i) {
      auto& start = choose.below(2) == 0 ? one : two;
      auto f = async(start, [n = i, keep = tracked()](std::stop_token) { return tracked(n); });
      for (auto left = choose.below(5); left > 0; --left) {
        switch (choose.below(5)) {
          case 0: f = std::move(f).via(one); break;
          case 1: f = std::move(f).via(two); break;
          case 2: f = std::move(f).then([](tracked t) { return t; }); break;
          case 3:
            f = std::move(f).and_then([&, keep = tracked()](tracked t) {
              return async(two, [t = std::move(t)] { return t; });
            });
            break;
          default: f = std::move(f).recover([](const future_error&) { return tracked(-1); });
        }
      }
      ++begun;
      auto last = std::move(f).handle([&](settled<tracked>) { ++ended; });
      if (choose.below(3) == 0) last.cancel();
      if (choose.below(3) == 0) last.get();
      run.did();
    }
    eventually([&] { return ended.load() == begun; });
    one.close();
    two.close();
  }
  EXPECT_EQ(ended.load(), begun);
}

}  // namespace
}  // namespace sluice::testing::future_stress_test
